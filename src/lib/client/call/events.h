#ifndef TNK_LIB_CLIENT_CALL_EVENTS_H
#define TNK_LIB_CLIENT_CALL_EVENTS_H

#include "lib/client/call/call.h"
#include "lib/wire/stream/sse.h"

struct tnk__events_frame;

/* How long the end of an answer is waited for behind the end of its stream, so
 * that the connection can be kept. */
#define TNK__EVENTS_LINGER_MS 1000

/*
 * The events of a call whose answer is a stream, while they come; embedded in
 * whoever owns the call. Each attempt begins its stream anew.
 *
 * `on_event` may call the program, and that may end the owner: then the events
 * go with it, but what `event` shows stays whole until on_event returns.
 */
typedef struct tnk__events {
  tnk__sse_t sse;
  struct tnk__events_frame *frame; /* while on_event is called */
  const tnk_allocator_t *alloc;
  /* *is_gone becomes 1 when the events have been deinitialized meanwhile. */
  void (*on_event)(struct tnk__events *self, const tnk__sse_event_t *event,
                   const int *is_gone);
  uint32_t attempt; /* that the stream is of */
  int is_ended;     /* the owner's: nothing more is read */
} tnk__events_t;

void tnk__events_init(tnk__events_t *events, const tnk_allocator_t *alloc,
                      void (*on_event)(tnk__events_t *self,
                                       const tnk__sse_event_t *event,
                                       const int *is_gone));
/* Legal in on_event. */
void tnk__events_deinit(tnk__events_t *events);
/*
 * For on_part of the call: read what has come. 1: go on. 0: the owner has gone.
 * Or a code: TNK_EPROTO, it is no stream of events; TNK_ETOOBIG, an event is
 * larger than 1 MiB; TNK_ENOMEM. `n` receives how many bytes it was.
 */
int tnk__events_take(tnk__events_t *events, tnk__call_t *call, size_t *n);
/* For `done` of the call: the same with what has come last, which may have been
 * before the connection broke. An answer that is no 2xx has no events. */
int tnk__events_finish(tnk__events_t *events, const tnk__call_t *call,
                       const tnk__reply_t *reply);
/* What such a code means, for the end of a sentence; NULL: its own text. */
const char *tnk__events_words(int err);

#endif
