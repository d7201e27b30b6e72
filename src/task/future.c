#include "task/future.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "codec/answer.h"
#include "codec/calls_future.h"
#include "task/session.h"

/* A poll's own body is an id of the server and a flag. */
enum { MAX_POLL_BODY = 64 * 1024, MAX_QUEUE_REASON = 256 };

static void send_poll(tnk__future_t *future);

/* Give back all that a future holds; it is idle then. */
static void clean(tnk__future_t *future) {
  tnk__budget_release(&future->session->result_bytes, &future->room);
  tnk__free(&future->session->loop->alloc, future->request_id);
  future->request_id = NULL;
  tnk__free(&future->session->loop->alloc, future->queue_reason);
  future->queue_reason = NULL;
  tnk__buf_deinit(&future->body);
}

static void finish(tnk__future_t *future, const tnk__reply_t *reply) {
  /* The room is given back after `done` only if the owner did not free the
   * future there, so it is given back before: the body is read at once. */
  clean(future);
  future->done(future, reply);
}

/* End with an error that this file found. */
static void fail(tnk__future_t *future, const tnk__reply_t *reply,
                 const tnk_error_t *pub) {
  tnk__reply_t end = *reply;
  tnk_error_t full = *pub;

  full.request_id = future->request_id;
  end.error =
      tnk__error_from(&future->session->loop->alloc, future->call.name, &full);
  end.verdict.action = TNK__ACTION_FAIL;
  end.verdict.err = pub->code;
  finish(future, &end);
  tnk__error_unref(end.error);
}

/* ---- Polling again ---- */

static void on_pause_over(tnk__timer_t *timer) {
  send_poll(tnk__container_of(timer, tnk__future_t, timer));
}

/* 1 when another poll is on its way. */
static int poll_again(tnk__future_t *future, tnk__poll_event_t event,
                      uint64_t server_ms) {
  tnk__loop_t *loop = future->session->loop;
  uint64_t delay_ms;

  if (!tnk__poll_next(&future->poll, event, server_ms, tnk__loop_now_ms(loop),
                      &delay_ms))
    return 0;
  if (delay_ms == 0)
    send_poll(future);
  else
    tnk__timer_start(loop, &future->timer, delay_ms, on_pause_over);
  return 1;
}

/* ---- Room for a large result ---- */

static uint64_t room_cost(tnk__payer_t *payer) {
  return tnk__container_of(payer, tnk__future_t, room)->result_bytes;
}

static void on_room(tnk__waiter_t *waiter) {
  tnk__payer_t *payer = tnk__container_of(waiter, tnk__payer_t, waiter);
  tnk__future_t *future = tnk__container_of(payer, tnk__future_t, room);

  tnk__defer(future->session->loop, &future->go);
}

/* The result is ready and this large: fetch it when there is room. */
static void make_room(tnk__future_t *future, uint64_t size) {
  future->is_final = 1;
  future->result_bytes = size;
  if (size == 0 ||
      tnk__budget_acquire(&future->session->result_bytes, &future->room))
    tnk__defer(future->session->loop, &future->go);
}

/* ---- Answers ---- */

/* Kept for whoever asks what is waited for. Without memory there is no reason
 * to tell, but still the state. */
static void keep_state(tnk__future_t *future, const tnk__answer_t *answer) {
  const tnk__loop_t *loop = future->session->loop;

  future->queue_state = tnk__queue_state_parse(answer->queue_state);
  future->queue_ms = tnk__loop_now_ms(loop);
  tnk__free(&loop->alloc, future->queue_reason);
  future->queue_reason =
      answer->queue_reason != NULL
          ? tnk__strndup(&loop->alloc, answer->queue_reason, MAX_QUEUE_REASON)
          : NULL;
}

/* Comes last: the user may close everything from in here. */
static void notify(tnk__future_t *future, const tnk__answer_t *answer) {
  if (answer->queue_state != NULL || answer->queue_reason != NULL)
    keep_state(future, answer);
  if (future->on_state != NULL &&
      (answer->queue_state != NULL || answer->queue_reason != NULL))
    future->on_state(future, answer->queue_state, answer->queue_reason);
}

static void on_failed_answer(tnk__future_t *future, const tnk__reply_t *reply,
                             const tnk__answer_t *answer) {
  tnk_error_t pub = {.code = TNK_EFAILED,
                     .category = answer->failure.category,
                     .message = answer->failure.message,
                     .http_status = reply->status,
                     .n_attempts = 1};

  tnk__call_hide_key(&future->call, pub.message);
  fail(future, reply, &pub);
}

static void on_json(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__answer_t answer;
  tnk__arena_t arena;
  int err;

  tnk__arena_init(&arena, &future->session->loop->alloc, TNK__MIB);
  err = tnk__answer_read(&answer, &arena, reply->body, reply->body_len);
  if (err != TNK_OK) {
    fail(future, reply,
         &(tnk_error_t){.code = err, .http_status = reply->status});
  } else if (answer.kind == TNK__ANSWER_PENDING) {
    poll_again(future, TNK__POLL_PENDING,
               reply->retry_after_ms > answer.retry_after_ms
                   ? reply->retry_after_ms
                   : answer.retry_after_ms);
    notify(future, &answer);
  } else if (answer.kind == TNK__ANSWER_METADATA) {
    if (future->is_final)
      fail(future, reply,
           &(tnk_error_t){.code = TNK_EPROTO, .http_status = reply->status});
    else
      make_room(future, answer.result_bytes);
  } else if (answer.kind == TNK__ANSWER_FAILED) {
    on_failed_answer(future, reply, &answer);
  } else {
    tnk__reply_t end = *reply;
    end.body = answer.result;
    end.body_len = answer.result_len;
    finish(future, &end);
  }
  tnk__arena_deinit(&arena);
}

/* An answer that is no end, if the pace allows to go on. */
static void on_unfinished(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__answer_t answer = {0};
  tnk__arena_t arena;
  int has_json = 0;

  tnk__arena_init(&arena, &future->session->loop->alloc, TNK__MIB);
  if (reply->status == 408) /* it may say why it takes so long */
    has_json = tnk__answer_read(&answer, &arena, reply->body,
                                reply->body_len) == TNK_OK;
  if (!poll_again(future, tnk__poll_event(reply->outcome, has_json),
                  reply->retry_after_ms))
    finish(future, reply);
  else if (has_json)
    notify(future, &answer);
  tnk__arena_deinit(&arena);
}

static void on_polled(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__future_t *future = tnk__container_of(call, tnk__future_t, call);

  if (reply->error == NULL && !reply->is_proto)
    on_json(future, reply);
  else if (reply->verdict.action == TNK__ACTION_REPOLL)
    on_unfinished(future, reply);
  else
    finish(future, reply);
}

/* ---- The request ---- */

static void send_poll(tnk__future_t *future) {
  tnk__loop_t *loop = future->session->loop;
  tnk__call_t *call = &future->call;
  uint64_t n = tnk__poll_sent(&future->poll, tnk__loop_now_ms(loop));

  tnk__buf_clear(&future->body);
  tnk__retrieve_future_write(&future->body, future->request_id,
                             !future->is_final);
  snprintf(future->iteration, sizeof(future->iteration), "%llu",
           (unsigned long long)n);
  call->body = future->body.data;
  call->body_len = future->body.len;
  call->headers = future->headers;
  call->n_headers = n == 0 ? 3 : 2; /* the round trip only the first time */
  if (future->body.err == TNK_OK) {
    tnk__call_start(call, on_polled);
    return;
  }
  future->is_final = -1; /* memory: told from the deferred queue */
  tnk__defer(loop, &future->go);
}

static void on_go(tnk__deferred_t *go) {
  tnk__future_t *future = tnk__container_of(go, tnk__future_t, go);
  tnk__reply_t reply = {.body = (const uint8_t *)"",
                        .outcome = TNK__OUTCOME_UNSENT};

  if (future->is_final >= 0)
    send_poll(future);
  else
    fail(future, &reply, &(tnk_error_t){.code = TNK_ENOMEM});
}

void tnk__future_init(tnk__future_t *future, struct tnk__session *session,
                      const char *name, const char *type) {
  memset(future, 0, sizeof(*future));
  future->session = session;
  future->type = type;
  tnk__call_init(&future->call, &session->endpoint, TNK__ROUTE_RETRIEVE_FUTURE,
                 name);
  tnk__payer_init(&future->room, on_room, room_cost);
  tnk__deferred_init(&future->go, on_go);
  tnk__buf_init(&future->body, &session->loop->alloc, MAX_POLL_BODY);
}

void tnk__future_start(tnk__future_t *future, const char *request_id,
                       uint64_t took_ms,
                       void (*done)(tnk__future_t *self,
                                    const tnk__reply_t *reply)) {
  if (future->is_sample)
    future->call.route = tnk__route(TNK__ROUTE_RETRIEVE_SAMPLE);
  if (future->is_proto)
    future->call.accept = "application/x-protobuf";
  future->done = done;
  future->is_final = 0;
  snprintf(future->roundtrip, sizeof(future->roundtrip), "%llu.%03u",
           (unsigned long long)(took_ms / 1000), (unsigned)(took_ms % 1000));
  future->headers[0] =
      (tnk_pair_t){"X-Tinker-Request-Iteration", future->iteration};
  future->headers[1] = (tnk_pair_t){"X-Tinker-Request-Type", future->type};
  future->headers[2] =
      (tnk_pair_t){"X-Tinker-Create-Promise-Roundtrip-Time", future->roundtrip};
  tnk__poll_init(&future->poll);
  future->accepted_ms = tnk__loop_now_ms(future->session->loop);
  future->queue_ms = 0;
  future->request_id = tnk__strdup(&future->session->loop->alloc, request_id);
  if (future->request_id == NULL) {
    future->is_final = -1;
    tnk__defer(future->session->loop, &future->go);
  } else {
    send_poll(future);
  }
}

void tnk__future_cancel(tnk__future_t *future) {
  if (future->session == NULL)
    return; /* never bound */
  tnk__call_cancel(&future->call);
  tnk__timer_stop(&future->timer);
  tnk__defer_cancel(&future->go);
  clean(future);
}

/* ---- What it waits for ---- */

static const char *state_name(tnk_queue_state_t state) {
  switch (state) {
  case TNK_QUEUE_ACTIVE:
    return "active";
  case TNK_QUEUE_PAUSED_CAPACITY:
    return "paused for lack of capacity";
  case TNK_QUEUE_PAUSED_RATE_LIMIT:
    return "paused by a rate limit";
  default:
    return "in an unknown state";
  }
}

static void explain_queue(const tnk__future_t *future, uint64_t now,
                          tnk__text_t *out) {
  if (future->queue_ms == 0)
    return;
  tnk__text_printf(out, "; ");
  tnk__text_time(out, now - future->queue_ms);
  tnk__text_printf(out, " ago its queue was %s",
                   state_name(future->queue_state));
  if (future->queue_reason != NULL && future->queue_reason[0] != '\0')
    tnk__text_printf(out, " (%s)", future->queue_reason);
}

static void explain_room(const tnk__future_t *future, tnk__text_t *out) {
  const tnk__budget_t *budget = &future->session->result_bytes;

  tnk__text_printf(out,
                   "its result of %llu bytes is ready and waits for room: "
                   "%lld of the %lld bytes for results are taken",
                   (unsigned long long)future->result_bytes,
                   (long long)(budget->size - budget->balance),
                   (long long)budget->size);
}

void tnk__future_explain(const tnk__future_t *future, tnk__text_t *out) {
  const uint64_t now = tnk__loop_now_ms(future->session->loop);
  const unsigned long long n = future->poll.iteration;

  tnk__text_printf(out, "was accepted ");
  tnk__text_time(out, now - future->accepted_ms);
  tnk__text_printf(out, " ago%s%s; ", future->request_id != NULL ? " as " : "",
                   future->request_id != NULL ? future->request_id : "");
  if (tnk__waiter_is_queued(&future->room.waiter)) {
    explain_room(future, out);
  } else if (tnk__timer_is_active(&future->timer)) {
    tnk__text_printf(out, "poll %llu of its result follows in ", n + 1);
    tnk__text_time(out, future->timer.due_ms - now);
  } else if (tnk__call_is_active(&future->call)) {
    tnk__text_printf(out, "poll %llu of its result ", n);
    tnk__call_explain(&future->call, out);
  } else {
    tnk__text_printf(out, "its result is about to be fetched");
  }
  explain_queue(future, now, out);
}
