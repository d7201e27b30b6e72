/* SPDX-License-Identifier: MIT */
#include "lib/client/call/events.h"

#include <strings.h>

#include "lib/base/alloc.h"

/* State that outlives the owner while on_event is called. */
typedef struct tnk__events_frame {
  tnk__sse_t sse; /* parser of the deinitialized events */
  int is_gone;
} frame_t;

void tnk__events_init(tnk__events_t *events, const tnk_allocator_t *alloc,
                      void (*on_event)(tnk__events_t *self,
                                       const tnk__sse_event_t *event,
                                       const int *is_gone)) {
  *events = (tnk__events_t){.alloc = alloc, .on_event = on_event};
  tnk__sse_init(&events->sse, alloc, TNK__SSE_MAX_EVENT);
}

void tnk__events_deinit(tnk__events_t *events) {
  if (events->frame == NULL) {
    tnk__sse_deinit(&events->sse);
    return;
  }
  events->frame->sse = events->sse;
  events->frame->is_gone = 1;
}

static int give(tnk__events_t *events, const uint8_t *at, size_t n) {
  const uint8_t *end = n > 0 ? at + n : at;
  tnk__sse_event_t event;
  frame_t frame = {.is_gone = 0};
  int got = 0;

  events->frame = &frame;
  while (!frame.is_gone && !events->is_ended &&
         (got = tnk__sse_next(&events->sse, &at, end, &event)) == 1)
    events->on_event(events, &event, &frame.is_gone);
  if (frame.is_gone) {
    tnk__sse_deinit(&frame.sse);
    return 0;
  }
  events->frame = NULL;
  return got >= 0 ? 1 : got;
}

static void begin(tnk__events_t *events, const tnk__call_t *call) {
  if (events->attempt == call->tries.n_attempts)
    return;
  events->attempt = call->tries.n_attempts;
  tnk__sse_deinit(&events->sse);
  tnk__sse_init(&events->sse, events->alloc, TNK__SSE_MAX_EVENT);
}

static int is_stream(const char *type) {
  return type != NULL && strncasecmp(type, "text/event-stream", 17) == 0;
}

int tnk__events_take(tnk__events_t *events, tnk__call_t *call, size_t *n) {
  tnk__buf_t piece;
  int got;

  *n = 0;
  begin(events, call);
  if (!is_stream(tnk__exchange_header(&call->exchange, "content-type")))
    return TNK_EPROTO;
  tnk__buf_init(&piece, events->alloc, 0);
  tnk__exchange_take_body(&call->exchange, &piece);
  *n = piece.len;
  got = give(events, piece.data, piece.len);
  tnk__buf_deinit(&piece);
  return got;
}

int tnk__events_finish(tnk__events_t *events, const tnk__call_t *call,
                       const tnk__reply_t *reply) {
  tnk__buf_t piece;
  int got;

  begin(events, call);
  if (reply->result == NULL || reply->status / 100 != 2)
    return 1;
  if (!is_stream(tnk__http_result_header(reply->result, "content-type")))
    return TNK_EPROTO;
  piece = *reply->buf;
  tnk__buf_init(reply->buf, piece.alloc, 0);
  got = give(events, piece.data, piece.len);
  tnk__buf_deinit(&piece);
  return got;
}

const char *tnk__events_words(int err) {
  if (err == TNK_EPROTO)
    return "the response is not an event stream,";
  return err == TNK_ETOOBIG ? "an event of the stream is larger than 1 MiB,"
                            : NULL;
}
