#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_write.h"
#include "tools/local/sample/sampler.h"

/*
 * Samples as streams of events: one event for each token, and one for the end.
 * All events are sent when the sample is complete.
 */

/* A client that waits for its stream. */
typedef struct {
  local_waiter_t waiter;
  local_future_t *future;
  tnk__srv_req_t *req;
} held_t;

/* ---- Writing ---- */

static void begin(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__buf_text(out, "data: ");
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
}

static void end(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__json_end(w);
  tnk__json_finish(w);
  tnk__buf_text(out, "\n\n");
}

void local_stream_write(tnk__buf_t *out, const local_sample_t *sample) {
  const tnk__lm_sample_t drawn = tnk__lm_draw_sample(sample->draw, 0);
  tnk__json_writer_t w;

  for (size_t i = 0; i < drawn.n_tokens; i++) {
    begin(&w, out);
    tnk__json_put_int(&w, "token_id", drawn.tokens[i]);
    tnk__json_put_int(&w, "index", (int64_t)i);
    tnk__json_key(&w, "logprob");
    tnk__json_float(&w, drawn.logprobs[i]);
    end(&w, out);
  }
  begin(&w, out);
  tnk__json_put_text(&w, "finish_reason",
                     drawn.reason == TNK__LM_LENGTH ? "length" : "stop");
  tnk__json_put_int(&w, "total_tokens", (int64_t)drawn.n_tokens);
  end(&w, out);
  tnk__buf_text(out, "data: [DONE]\n\n");
}

/* ---- Waiting ---- */

static void reply(const local_future_t *future, tnk__srv_req_t *req) {
  uint8_t *copy;

  if (future->status != 200) {
    local_reply_error(req, future->status, "%s",
                      future->result != NULL ? (const char *)future->result
                                             : "Request failed");
    return;
  }
  copy = tnk__malloc(future->server->alloc, future->n_result);
  if (copy == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  memcpy(copy, future->result, future->n_result);
  tnk__srv_req_reply(req, 200, "text/event-stream",
                     "Cache-Control: no-cache\r\n", copy, future->n_result);
}

static held_t end_wait(held_t *held) {
  const held_t was = *held;

  tnk__list_remove(&held->waiter.link);
  tnk__free(was.future->server->alloc, held);
  return was;
}

static void on_settled(local_waiter_t *waiter) {
  const held_t was = end_wait(tnk__container_of(waiter, held_t, waiter));

  reply(was.future, was.req);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  local_future_t *future = end_wait(user).future;

  (void)req;
  if (future->server->closing || future->state != LOCAL_FUTURE_PENDING ||
      future->cancel == NULL || !tnk__list_empty(&future->waiters))
    return;
  future->is_cancelled = 1;
  future->cancel(future->owner);
}

void local_stream_answer(tnk__srv_req_t *req, local_future_t *future) {
  held_t *held;

  if (future->state == LOCAL_FUTURE_SETTLED) {
    reply(future, req);
    return;
  }
  held = tnk__calloc(future->server->alloc, 1, sizeof(*held));
  if (held == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  held->waiter.wake = on_settled;
  held->future = future;
  held->req = req;
  tnk__list_append(&future->waiters, &held->waiter.link);
  tnk__srv_req_park(req, on_gone, held);
}
