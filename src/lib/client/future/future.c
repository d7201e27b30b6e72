/* SPDX-License-Identifier: MIT */
#include "lib/client/future/future.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/call/headers.h"
#include "lib/client/session/limits.h"
#include "lib/client/session/session.h"
#include "lib/wire/message/answer.h"
#include "lib/wire/message/calls_future.h"

/* A poll's body is an id from the server and a flag. The id determines its
 * size. */
enum { MAX_POLL = 64 * 1024, POLL_FRAME = 48, MAX_QUEUE_REASON = 256 };

static void send_poll(tnk__future_t *future);
static void wait_for_word(tnk__future_t *future);

static void on_go(tnk__deferred_t *go);

static void go_later(tnk__future_t *future) {
  future->state = TNK__FUTURE_GOING;
  future->call.deferred.fn = on_go;
  tnk__defer(future->call.endpoint->context, &future->call.deferred);
}

/* ---- Slots for fetches and checks ---- */

static void leave_slot(tnk__future_t *future) {
  if (future->has_slot)
    tnk__semaphore_release(future->slots);
  else if (future->slots != NULL)
    tnk__semaphore_cancel(future->slots, &future->payer.waiter);
  future->has_slot = 0;
  future->slots = NULL;
}

static void on_slot(tnk__waiter_t *waiter) {
  tnk__payer_t *payer = tnk__container_of(waiter, tnk__payer_t, waiter);
  tnk__future_t *future = tnk__container_of(payer, tnk__future_t, payer);

  future->has_slot = 1;
  go_later(future);
}

/* Poll once there is a slot. Its bytes have been granted by now, so the queue
 * node is free. */
static void poll_in_slot(tnk__future_t *future, tnk__semaphore_t *slots) {
  tnk__waiter_init(&future->payer.waiter, on_slot);
  future->slots = slots;
  future->state = TNK__FUTURE_IN_LINE;
  if (tnk__semaphore_acquire(slots, &future->payer.waiter)) {
    future->has_slot = 1;
    send_poll(future);
  } else {
    tnk__call_waits(&future->call, TNK_WAITS_FOR_SLOT);
  }
}

/* ---- The end ---- */

/* Return all resources of a future; it is idle then. */
static void clean(tnk__future_t *future, tnk__leave_t how) {
  tnk__awaited_leave(&future->awaited, how);
  leave_slot(future);
  future->polls = TNK__POLLS_WAIT;
  tnk__budget_release(&future->limits->result_bytes, &future->payer);
  tnk__free(&future->call.endpoint->context->alloc, future->request_id);
  future->request_id = NULL;
  tnk__free(&future->call.endpoint->context->alloc, future->queue_reason);
  future->queue_reason = NULL;
  future->state = TNK__FUTURE_IDLE;
}

static void finish(tnk__future_t *future, const tnk__reply_t *reply) {
  if (reply->error == NULL && future->call.owner.operation != 0)
    tnk__call_tell(&future->call,
                   &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                                  .bytes = reply->body_len,
                                  .status = reply->status,
                                  .request_id = future->request_id});
  /* The bytes of a large result are returned before `done`, because the owner
   * may free the future in there. It reads the body at once. */
  clean(future, reply->error == NULL || reply->verdict.err == TNK_EFAILED
                    ? TNK__LEAVE_RECEIVED
                    : TNK__LEAVE_LOST);
  future->done(future, reply);
}

/* End with an error of this file. */
static void fail(tnk__future_t *future, const tnk__reply_t *reply,
                 const tnk_error_t *pub) {
  tnk__reply_t end = *reply;
  tnk_error_t full = *pub;

  full.request_id = future->request_id;
  end.error = tnk__error_with(&future->call.endpoint->context->alloc,
                              future->call.owner.name, &full,
                              pub->code == TNK_EPROTO ? reply->page : NULL);
  end.verdict.action = TNK__ACTION_FAIL;
  end.verdict.err = pub->code;
  finish(future, &end);
  tnk__error_unref(end.error);
}

/* ---- Polling again ---- */

static void on_pause_over(tnk__timer_t *timer) {
  tnk__future_t *future = tnk__container_of(timer, tnk__future_t, call.timer);

  tnk__reach_leave(&future->call.reacher);
  send_poll(future);
}

static void pause_for(tnk__future_t *future, uint64_t delay_ms,
                      uint64_t asked_ms) {
  future->state = TNK__FUTURE_PAUSING;
  tnk__call_waits(&future->call, TNK_WAITS_FOR_POLL);
  tnk__timer_start(future->call.endpoint->context, &future->call.timer,
                   delay_ms, on_pause_over);
  tnk__reach_wait(future->call.endpoint, &future->call.reacher, asked_ms);
}

/* Returns 1 if another poll is scheduled. */
static int poll_again(tnk__future_t *future, tnk__poll_event_t event,
                      uint64_t server_ms) {
  tnk__context_t *context = future->call.endpoint->context;
  uint64_t delay_ms;

  if (!tnk__poll_next(&future->poll, event, server_ms,
                      tnk__context_now_ms(context),
                      tnk__context_uniform(context), &delay_ms))
    return 0;
  leave_slot(future); /* slots are only for short polls */
  if (future->polls == TNK__POLLS_CHECK)
    wait_for_word(future);
  else if (delay_ms == 0)
    send_poll(future);
  else
    pause_for(future, delay_ms, server_ms);
  return 1;
}

/* ---- Memory for a large result ---- */

static uint64_t room_cost(tnk__payer_t *payer) {
  return tnk__container_of(payer, tnk__future_t, payer)->result_bytes;
}

static void on_room(tnk__waiter_t *waiter) {
  tnk__payer_t *payer = tnk__container_of(waiter, tnk__payer_t, waiter);

  go_later(tnk__container_of(payer, tnk__future_t, payer));
}

/* The result is ready. Fetch it when the budget admits its size. */
static void make_room(tnk__future_t *future, uint64_t size) {
  future->is_final = 1;
  future->result_bytes = size;
  tnk__waiter_init(&future->payer.waiter, on_room);
  future->state = TNK__FUTURE_PAYING;
  if (size == 0 ||
      tnk__budget_acquire(&future->limits->result_bytes, &future->payer))
    go_later(future);
  else
    tnk__call_waits(&future->call, TNK_WAITS_FOR_BYTES);
}

/* ---- Completions from a poller ---- */

static void fetch(tnk__future_t *future, uint64_t result_bytes) {
  future->polls = TNK__POLLS_FETCH;
  future->wants_slot = 1;
  if (result_bytes > 0)
    make_room(future, result_bytes);
  else
    go_later(future);
}

/* Long silence: the notification may have been lost. */
static void on_silence(tnk__timer_t *timer) {
  tnk__future_t *future = tnk__container_of(timer, tnk__future_t, call.timer);

  poll_in_slot(future, &future->limits->checks);
}

static void wait_for_word(tnk__future_t *future) {
  tnk__context_t *context = future->call.endpoint->context;

  if (future->is_complete) {
    fetch(future, future->result_bytes);
    return;
  }
  future->polls = TNK__POLLS_CHECK;
  future->state = TNK__FUTURE_AWAITING;
  if (future->call.owner.operation != 0)
    tnk__call_tell(&future->call, &(tnk_event_t){.phase = TNK_PHASE_HELD});
  tnk__timer_start(context, &future->call.timer,
                   tnk__batch_check_ms(tnk__context_uniform(context)),
                   on_silence);
}

/* An active check continues: it may return the result. */
static void on_woken(tnk__awaited_t *awaited, int is_complete,
                     uint64_t result_bytes) {
  tnk__future_t *future = tnk__container_of(awaited, tnk__future_t, awaited);

  if (future->polls == TNK__POLLS_FETCH)
    return;
  if (tnk__call_is_active(&future->call)) {
    future->is_complete = is_complete != 0;
    future->result_bytes = result_bytes;
    if (!is_complete)
      future->polls = TNK__POLLS_WAIT;
    return;
  }
  leave_slot(future);
  tnk__timer_stop(&future->call.timer);
  tnk__defer_cancel(&future->call.deferred);
  if (is_complete) {
    fetch(future, result_bytes);
  } else {
    future->polls = TNK__POLLS_WAIT;
    send_poll(future);
  }
}

/* ---- Responses ---- */

/* Kept for explanations of the wait. Without memory only the state is kept. */
static void keep_state(tnk__future_t *future, const tnk__answer_t *answer) {
  const tnk__context_t *context = future->call.endpoint->context;

  future->queue_state = tnk__queue_state_parse(answer->queue_state);
  future->queue_ms = tnk__context_now_ms(context);
  tnk__free(&context->alloc, future->queue_reason);
  future->queue_reason =
      answer->queue_reason != NULL
          ? tnk__strndup(&context->alloc, answer->queue_reason,
                         MAX_QUEUE_REASON)
          : NULL;
}

/* Must be last: the program may close everything in the callback. */
static void notify(tnk__future_t *future, const tnk__answer_t *answer) {
  tnk__call_hide(&future->call, answer->queue_reason);
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

  tnk__call_hide(&future->call, pub.message);
  fail(future, reply, &pub);
}

static void on_metadata(tnk__future_t *future, uint64_t result_bytes) {
  if (future->polls == TNK__POLLS_CHECK)
    future->polls = TNK__POLLS_FETCH;
  make_room(future, result_bytes);
}

static void on_json(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__answer_t answer;
  tnk__arena_t arena;
  int err;

  /* A wrapped result is encoded again, where 0.1 becomes 19 digits. */
  tnk__arena_init(&arena, &future->call.endpoint->context->alloc,
                  TNK__MIB + 8 * reply->body_len);
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
      on_metadata(future, answer.result_bytes);
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

/* A response that does not end the future, if the pace allows another poll. */
static void on_unfinished(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__answer_t answer = {0};
  tnk__arena_t arena;
  int has_json = 0;

  tnk__arena_init(&arena, &future->call.endpoint->context->alloc, TNK__MIB);
  if (reply->status == 408) /* it may contain the reason for the delay */
    has_json = tnk__answer_read(&answer, &arena, reply->body,
                                reply->body_len) == TNK_OK;
  if (!poll_again(future, tnk__poll_event(reply->outcome, has_json),
                  reply->retry_after_ms)) {
    finish(future, reply);
  } else {
    if (reply->status != 408) { /* a 408 is a response: not yet */
      tnk__call_count_repeat(&future->call, reply->outcome);
      future->n_failed += future->n_failed < UINT32_MAX;
    } else {
      future->n_failed = 0;
    }
    if (has_json)
      notify(future, &answer);
  }
  tnk__arena_deinit(&arena);
}

static void on_polled(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__future_t *future = tnk__container_of(call, tnk__future_t, call);

  if (reply->error == NULL)
    future->n_failed = 0;
  if (reply->error == NULL && !reply->is_proto)
    on_json(future, reply);
  else if (reply->verdict.action == TNK__ACTION_REPOLL)
    on_unfinished(future, reply);
  else
    finish(future, reply);
}

/* ---- The request ---- */

/* One allocation: the id with its terminator, then the body of a poll, with the
 * flag whether the result must be returned. TNK_OK or TNK_ENOMEM. */
static int write_poll(tnk__future_t *future, const char *request_id) {
  const tnk_allocator_t *alloc = &future->call.endpoint->context->alloc;
  const size_t n_id = strlen(request_id) + 1;
  tnk__buf_t buf;

  tnk__buf_init(&buf, alloc, MAX_POLL);
  tnk__buf_reserve(&buf, 2 * n_id + POLL_FRAME);
  tnk__buf_append(&buf, request_id, n_id);
  tnk__retrieve_future_write(&buf, request_id, !future->is_final);
  if (buf.err != TNK_OK) {
    tnk__buf_deinit(&buf);
    return TNK_ENOMEM;
  }
  tnk__buf_trim(&buf);
  tnk__free(alloc, future->request_id);
  future->body_len = (uint32_t)(buf.len - n_id);
  future->request_id = (char *)buf.data;
  future->says_final = future->is_final;
  return TNK_OK;
}

static void add_headers(const tnk__call_t *call, tnk__headers_t *headers) {
  const tnk__future_t *future =
      tnk__container_of_const(call, tnk__future_t, call);
  const uint64_t n = future->poll.iteration - 1; /* number of the current
                                                    poll */

  tnk__headers_add_uint(headers, "X-Tinker-Request-Iteration", n);
  tnk__headers_add_text(headers, "X-Tinker-Request-Type", future->type);
  if (n == 0)
    tnk__headers_add_seconds(headers, "X-Tinker-Create-Promise-Roundtrip-Time",
                             future->took_ms);
}

/* Report the failure in a later turn of the loop. */
static void fail_later(tnk__future_t *future) {
  go_later(future);
  future->state = TNK__FUTURE_FAILING;
}

static void send_poll(tnk__future_t *future) {
  tnk__context_t *context = future->call.endpoint->context;
  tnk__call_t *call = &future->call;

  future->state = TNK__FUTURE_POLLING;
  tnk__poll_sent(&future->poll, tnk__context_now_ms(context));
  if (future->says_final != future->is_final &&
      write_poll(future, future->request_id) != TNK_OK) {
    fail_later(future);
    return;
  }
  call->request.body =
      (const uint8_t *)future->request_id + strlen(future->request_id) + 1;
  call->request.body_len = future->body_len;
  tnk__call_start(call, on_polled);
}

static void on_go(tnk__deferred_t *go) {
  tnk__future_t *future = tnk__container_of(go, tnk__future_t, call.deferred);
  tnk__reply_t reply = {.body = (const uint8_t *)"",
                        .outcome = TNK__OUTCOME_UNSENT};

  if (future->state == TNK__FUTURE_FAILING) {
    fail(future, &reply, &(tnk_error_t){.code = TNK_ENOMEM});
  } else if (future->wants_slot) {
    future->wants_slot = 0;
    poll_in_slot(future, &future->limits->fetches);
  } else {
    send_poll(future);
  }
}

/* Clear and bind. The call is bound to `route`; the job uses it first. Error
 * messages begin with `name`. `type` is the protocol's name of the kind of
 * request. Both are static. */
static void future_init(tnk__future_t *future, tnk__endpoint_t *endpoint,
                        struct tnk__limits *limits, tnk__route_id_t route,
                        const char *name, const char *type) {
  memset(future, 0, sizeof(*future));
  future->limits = limits;
  future->awaited.woken = on_woken;
  future->type = type;
  tnk__call_init(&future->call, endpoint, route, name);
  tnk__payer_init(&future->payer, NULL, NULL);
}

/* The first stage, with the poller if there is one. */
static void begin(tnk__future_t *future) {
  uint64_t result_bytes = 0;
  tnk__await_t how = TNK__AWAIT_DIRECT;

  if (future->poller != NULL)
    how = tnk__poller_wait(future->poller, &future->awaited, future->request_id,
                           &result_bytes);
  if (how == TNK__AWAIT_WAIT)
    wait_for_word(future);
  else if (how == TNK__AWAIT_COMPLETE)
    fetch(future, result_bytes);
  else
    send_poll(future);
}

/*
 * Poll until the request with that id (copied) has ended. took_ms is the time
 * from the start of the operation to its acceptance. In `done` the reply has an
 * error, or its body is the result.
 */
static void
future_start(tnk__future_t *future, const char *request_id, uint64_t took_ms,
             void (*done)(tnk__future_t *self, const tnk__reply_t *reply)) {
  tnk__call_rebind(&future->call, future->is_sample
                                      ? TNK__ROUTE_RETRIEVE_SAMPLE
                                      : TNK__ROUTE_RETRIEVE_FUTURE);
  future->call.request.wants_proto = future->is_proto != 0;
  future->call.request.add_headers = add_headers;
  tnk__payer_init(&future->payer, on_room, room_cost);
  future->done = done;
  future->is_final = 0;
  future->wants_slot = 0;
  future->is_complete = 0;
  tnk__poll_init(&future->poll);
  future->accepted_ms = tnk__context_now_ms(future->call.endpoint->context);
  future->took_ms = took_ms;
  future->queue_ms = 0;
  future->n_failed = 0;
  if (write_poll(future, request_id) != TNK_OK)
    fail_later(future);
  else
    begin(future);
}

/* Returns whether it was started and `done` is still to come: any state except
 * IDLE. */
static int future_is_active(const tnk__future_t *future) {
  return future->state != TNK__FUTURE_IDLE;
}

/* Stop without `done` and free its resources; legal in every state. */
static void future_cancel(tnk__future_t *future) {
  if (future->limits == NULL)
    return; /* never bound */
  tnk__call_cancel(&future->call);
  if (future_is_active(future))
    clean(future, TNK__LEAVE_CANCELED);
}

/* ---- Reasons of a wait ---- */

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

/* After a long wait users want to know whether the server is reachable. */
static void explain_failures(const tnk__future_t *future, tnk__text_t *out) {
  if (future->n_failed == 0)
    return;
  if (future->n_failed == 1)
    tnk__text_printf(out, "; the last poll failed (");
  else
    tnk__text_printf(out, "; the last %u polls failed (", future->n_failed);
  tnk__call_explain_last(&future->call, out);
  tnk__text_printf(out, ")");
}

static void explain_room(const tnk__future_t *future, tnk__text_t *out) {
  const tnk__budget_t *budget = &future->limits->result_bytes;

  tnk__text_printf(out,
                   "its result of %llu bytes is ready and waits for room: "
                   "%lld of the %lld bytes for results are taken",
                   (unsigned long long)future->result_bytes,
                   (long long)(budget->size - budget->balance),
                   (long long)budget->size);
}

static void explain_line(const tnk__future_t *future, tnk__text_t *out) {
  tnk__text_printf(out, "%s and waits for one of %zu slots",
                   future->polls == TNK__POLLS_CHECK
                       ? "it needs a poll of its own"
                       : "its result is ready",
                   future->slots->limit);
}

static void explain_state(const tnk__future_t *future, uint64_t now,
                          tnk__text_t *out) {
  const unsigned long long n = future->poll.iteration;

  switch ((tnk__future_state_t)future->state) {
  case TNK__FUTURE_POLLING:
    tnk__text_printf(out, "poll %llu of its result ", n);
    tnk__call_explain(&future->call, out);
    break;
  case TNK__FUTURE_PAUSING:
    tnk__text_printf(out, "poll %llu of its result follows in ", n + 1);
    tnk__text_time(out, tnk__timer_left_ms(&future->call.timer, now));
    tnk__reach_explain(future->call.endpoint, &future->call.reacher, out);
    break;
  case TNK__FUTURE_AWAITING:
    tnk__poller_explain(future->poller, out);
    tnk__text_printf(out, "; its own poll follows in ");
    tnk__text_time(out, tnk__timer_left_ms(&future->call.timer, now));
    break;
  case TNK__FUTURE_IN_LINE:
    explain_line(future, out);
    break;
  case TNK__FUTURE_PAYING:
    explain_room(future, out);
    break;
  case TNK__FUTURE_IDLE:
  case TNK__FUTURE_GOING:
  case TNK__FUTURE_FAILING:
    tnk__text_printf(out, "its result is about to be fetched");
    break;
  }
}

/* Write the end of a sentence: the reason why an active future waits. */
static void future_explain(const tnk__future_t *future, tnk__text_t *out) {
  const uint64_t now = tnk__context_now_ms(future->call.endpoint->context);

  tnk__text_printf(out, "was accepted ");
  tnk__text_time(out, now - future->accepted_ms);
  tnk__text_printf(out, " ago%s%s; ", future->request_id != NULL ? " as " : "",
                   future->request_id != NULL ? future->request_id : "");
  explain_state(future, now, out);
  explain_failures(future, out);
  explain_queue(future, now, out);
}

/* ---- Jobs: a call and its future ---- */

/* Returns whether an accepted request was run. A refused poll shows a failure
 * of the request, but seldom whether before or after it was run. Errors of the
 * polling, the credential or the connection say nothing about the request. */
static tnk_ran_t ran_of(const tnk__job_t *job, const tnk__reply_t *reply) {
  if (reply->error == NULL)
    return TNK_RAN_YES;
  if (reply->verdict.err == TNK_EFAILED)
    return TNK_RAN_UNKNOWN;
  switch (reply->status) {
  case 409: /* about its number: it came out of turn */
    return reply->has_expected && !job->was_doubtful ? TNK_RAN_NO
                                                     : TNK_RAN_UNKNOWN;
  case 401:
  case 402:
  case 405:
  case 408:
  case 429:
    return TNK_RAN_YES;
  default:
    return reply->status / 100 == 4 ? TNK_RAN_UNKNOWN : TNK_RAN_YES;
  }
}

static void on_result(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__job_t *job = tnk__container_of(future, tnk__job_t, future);

  job->ran = (uint8_t)ran_of(job, reply);
  job->done(job, reply);
}

/* The service has accepted the request, but there will be no result. */
static void fail_job(tnk__job_t *job, const tnk__reply_t *reply,
                     const tnk_error_t *pub) {
  tnk__reply_t end = *reply;

  end.error = tnk__error_with(&job->future.call.endpoint->context->alloc,
                              job->future.call.owner.name, pub,
                              pub->code == TNK_EPROTO ? reply->page : NULL);
  end.verdict = (tnk__verdict_t){.action = TNK__ACTION_FAIL,
                                 .err = pub->code,
                                 .effect = TNK__EFFECT_ACCEPTED};
  job->done(job, &end);
  tnk__error_unref(end.error);
}

/* The response to the submission is the result, or the reason for its
 * failure. */
static void answered_at_once(tnk__job_t *job, const tnk__answer_t *answer,
                             const tnk__reply_t *reply) {
  tnk__reply_t end = *reply;
  tnk_error_t pub = {.code = TNK_EPROTO,
                     .http_status = reply->status,
                     .n_attempts = job->future.call.tries.n_attempts};

  if (answer->kind == TNK__ANSWER_RESULT) {
    end.body = answer->result;
    end.body_len = answer->result_len;
    if (job->future.call.owner.operation != 0)
      tnk__call_tell(&job->future.call,
                     &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                                    .bytes = end.body_len,
                                    .status = end.status});
    job->done(job, &end);
    return;
  }
  if (answer->kind == TNK__ANSWER_FAILED) {
    pub.code = TNK_EFAILED;
    pub.category = answer->failure.category;
    pub.message = answer->failure.message;
    tnk__call_hide(&job->future.call, pub.message);
    job->ran = TNK_RAN_UNKNOWN;
  }
  fail_job(job, reply, &pub);
}

/* Read a 2xx: the id of the future, or the result. */
static int read_answer(tnk__accepted_t *accepted, tnk__answer_t *answer,
                       tnk__arena_t *arena, const tnk__reply_t *reply) {
  int err = tnk__accepted_read(accepted, arena, reply->body, reply->body_len);

  if (err == TNK_OK && accepted->request_id == NULL)
    err = tnk__answer_read(answer, arena, reply->body, reply->body_len);
  return err;
}

static void on_submitted(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__job_t *job = tnk__container_of(call, tnk__job_t, future.call);
  tnk__context_t *context = call->endpoint->context;
  tnk__accepted_t accepted = {0};
  tnk__answer_t answer = {0};
  tnk__arena_t arena;
  int err;

  if (reply->error != NULL) {
    job->done(job, reply);
    return;
  }
  tnk__arena_init(&arena, &context->alloc, TNK__MIB);
  err = read_answer(&accepted, &answer, &arena, reply);
  if (err == TNK_EPROTO && tnk__call_repeat_unreadable(call, reply)) {
    tnk__arena_deinit(&arena);
    return;
  }
  /* A 2xx is an acceptance, even if its body is unusable. */
  job->is_accepted = 1;
  job->was_doubtful = tnk__call_was_doubtful(call) != 0;
  job->ran = err == TNK_EPROTO ? TNK_RAN_UNKNOWN : TNK_RAN_YES;
  if (call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_ACCEPTED,
                                        .status = reply->status,
                                        .request_id = accepted.request_id});
  if (job->accepted != NULL && !job->accepted(job, &accepted))
    ; /* the owner does not want the result any more */
  else if (err != TNK_OK)
    fail_job(job, reply,
             &(tnk_error_t){.code = err,
                            .http_status = reply->status,
                            .n_attempts = call->tries.n_attempts});
  else if (accepted.request_id != NULL)
    future_start(&job->future, accepted.request_id,
                 tnk__context_now_ms(context) - call->tries.retry.started_ms,
                 on_result);
  else
    answered_at_once(job, &answer, reply);
  tnk__arena_deinit(&arena);
}

void tnk__job_init(tnk__job_t *job, struct tnk__session *session,
                   tnk__route_id_t route, const char *name, const char *type) {
  memset(job, 0, sizeof(*job));
  future_init(&job->future, &session->endpoint, &session->limits, route, name,
              type);
}

void tnk__job_start(tnk__job_t *job, const void *body, size_t n,
                    void (*done)(tnk__job_t *self, const tnk__reply_t *reply)) {
  job->done = done;
  job->is_accepted = 0;
  job->future.call.request.body = body;
  job->future.call.request.body_len = n;
  tnk__call_start(&job->future.call, on_submitted);
}

tnk_ran_t tnk__job_ran(const tnk__job_t *job) {
  if (job->future.limits == NULL)
    return TNK_RAN_NO;
  return job->is_accepted ? (tnk_ran_t)job->ran
                          : tnk__call_ran(&job->future.call);
}

void tnk__job_cancel(tnk__job_t *job) {
  future_cancel(&job->future);
}

void tnk__job_explain(const tnk__job_t *job, tnk__text_t *out) {
  if (job->is_accepted)
    future_explain(&job->future, out);
  else
    tnk__call_explain(&job->future.call, out);
}

int tnk__job_is_active(const tnk__job_t *job) {
  return future_is_active(&job->future) ||
         tnk__call_is_active(&job->future.call);
}

/* ---- Fields lent while idle ---- */

tnk__timer_t *tnk__job_timer(tnk__job_t *job) {
  return &job->future.call.timer;
}

tnk__deferred_t *tnk__job_deferred(tnk__job_t *job) {
  return &job->future.call.deferred;
}

tnk__payer_t *tnk__job_payer(tnk__job_t *job) {
  return &job->future.payer;
}

const tnk__timer_t *tnk__job_timer_const(const tnk__job_t *job) {
  return &job->future.call.timer;
}

const tnk__payer_t *tnk__job_payer_const(const tnk__job_t *job) {
  return &job->future.payer;
}

tnk__job_t *tnk__job_of_timer(tnk__timer_t *timer) {
  return tnk__container_of(timer, tnk__job_t, future.call.timer);
}

tnk__job_t *tnk__job_of_deferred(tnk__deferred_t *deferred) {
  return tnk__container_of(deferred, tnk__job_t, future.call.deferred);
}

tnk__job_t *tnk__job_of_waiter(tnk__waiter_t *waiter) {
  return tnk__container_of(waiter, tnk__job_t, future.payer.waiter);
}
