/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_EVENTS_H
#define TNK_LIB_CLIENT_CALL_EVENTS_H

#include "lib/client/call/call.h"
#include "lib/wire/stream/sse.h"

struct tnk__events_frame;

/* Time to wait for the end of a response after the end of its stream, so that
 * the connection can be kept. */
#define TNK__EVENTS_LINGER_MS 1000

/*
 * The events of a call with a streamed response, as they arrive. Embedded in
 * the owner of the call. Each attempt restarts the stream.
 *
 * `on_event` may call the program, and the program may free the owner and the
 * events. The data of `event` stays valid until on_event returns.
 */
typedef struct tnk__events {
  tnk__sse_t sse;
  struct tnk__events_frame *frame; /* while on_event is called */
  const tnk_allocator_t *alloc;
  /* *is_gone becomes 1 if the events were deinitialized in the meantime. */
  void (*on_event)(struct tnk__events *self, const tnk__sse_event_t *event,
                   const int *is_gone);
  uint32_t attempt; /* the attempt that the stream belongs to */
  int is_ended;     /* set by the owner: stop reading */
} tnk__events_t;

void tnk__events_init(tnk__events_t *events, const tnk_allocator_t *alloc,
                      void (*on_event)(tnk__events_t *self,
                                       const tnk__sse_event_t *event,
                                       const int *is_gone));
/* Legal in on_event. */
void tnk__events_deinit(tnk__events_t *events);
/*
 * For on_part of the call: parse the data that has arrived. Returns 1 to
 * continue, 0 if the owner is gone, or a code: TNK_EPROTO if it is not an event
 * stream, TNK_ETOOBIG if an event is larger than 1 MiB, TNK_ENOMEM. `n`
 * receives the number of bytes.
 */
int tnk__events_take(tnk__events_t *events, tnk__call_t *call, size_t *n);
/* For `done` of the call: parse the remaining data, which may have arrived
 * before the connection broke. A response that is not a 2xx has no events. */
int tnk__events_finish(tnk__events_t *events, const tnk__call_t *call,
                       const tnk__reply_t *reply);
/* The meaning of such a code, as the end of a sentence. NULL: use the text of
 * the code. */
const char *tnk__events_words(int err);

#endif
