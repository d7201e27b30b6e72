/* SPDX-License-Identifier: MIT */
/* Order, numbers and chunks of training operations. */
#include "task/kinds.h"

static const char one_by_one[] =
    "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}";
static const char side_by_side[] =
    "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":true}";

static void open_with_flags(script_t *script, const char *flags) {
  script_open(script);
  script_flags(script, flags);
  script_train(script);
}

/* Accepts after 50 ms on the fake clock. */
static void accept_slowly(mock_request_t *request, void *user) {
  script_sent_t *sent = script_note(user, request);
  char text[128];

  snprintf(text, sizeof(text), "{\"request_id\":\"%s:%lld:%zu\"}", sent->call,
           sent->seq, sent->n_data);
  mock_reply_json_after(request, 50, 200, text);
}

/* Fake milliseconds until it is over. */
static uint64_t time_of(script_t *script, const outcome_t *outcome) {
  uint64_t ms = 0;

  script_turns(script);
  while (outcome->n_done == 0) {
    CHECK(ms < 10000);
    script_advance(script, 10);
    ms += 10;
  }
  return ms;
}

/* ---- Order ---- */

TEST(S1_2_chunks_in_a_row_cost_a_round_trip_each) {
  script_t script;
  outcome_t outcome;
  uint64_t ms;

  open_with_flags(&script, one_by_one);
  mock_on(script.mock, "POST", "/api/v1/forward_backward", accept_slowly,
          &script);
  outcome_of(&outcome, script_pass(&script, 10));
  ms = time_of(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK(ms >= 500);
  CHECK_INT(script.n_sent, 10);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S1_2_chunks_side_by_side_cost_two_round_trips) {
  script_t script;
  outcome_t outcome;
  uint64_t ms;

  open_with_flags(&script, side_by_side);
  mock_on(script.mock, "POST", "/api/v1/forward_backward", accept_slowly,
          &script);
  outcome_of(&outcome, script_pass(&script, 10));
  ms = time_of(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK(ms < 150);
  CHECK_INT(script.n_sent, 10);
  /* The first part goes last: it is what the server waits for. */
  script_check_sent(&script, 9, "forward_backward", 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_9_a_long_submission_holds_up_no_other_client) {
  script_t script;
  tnk_training_t *first;
  outcome_t slow;
  outcome_t other;

  open_with_flags(&script, one_by_one);
  first = script.training;
  script_train(&script);
  mock_once(script.mock, "POST", "/api/v1/forward_backward", mock_hold, NULL);
  outcome_of(&slow,
             tnk_training_forward_backward(first, script_data(3), 3, NULL));
  script_turns(&script);
  script_ok(&script, &other, script_step(&script));
  CHECK_INT(slow.n_done, 0);
  CHECK_INT(mock_release(script.mock, 200,
                         "{\"request_id\":\"forward_backward:1:1\"}"),
            1);
  outcome_ok(&script, &slow);
  outcome_drop(&slow);
  outcome_drop(&other);
  script_close(&script);
}

TEST(S3_1_sends_are_in_order_and_results_in_any) {
  script_t script;
  script_held_t polls = {.n = 0};
  outcome_t outcomes[2];

  script_open_train(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &polls);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  mock_wait_flag(script.mock, &polls.n, 2);
  script_check_sent(&script, 0, "forward_backward", 1);
  script_check_sent(&script, 1, "optim_step", 2);
  script_result(polls.requests[1], &script);
  outcome_ok(&script, &outcomes[1]);
  CHECK_INT(outcomes[0].n_done, 0);
  script_result(polls.requests[0], &script);
  outcome_ok(&script, &outcomes[0]);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S4_14_a_slow_first_send_does_not_reorder) {
  script_t script;
  outcome_t outcomes[3];

  script_open(&script);
  script_flags(&script, one_by_one);
  script_train(&script);
  mock_once(script.mock, "POST", "/api/v1/forward_backward", accept_slowly,
            &script);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  outcome_of(&outcomes[2],
             tnk_training_forward(script.training, script_data(2), 2, NULL));
  script_turns(&script);
  CHECK_INT(script.n_sent, 1);
  script_advance(&script, 50);
  for (int i = 0; i < 3; i++)
    outcome_ok(&script, &outcomes[i]);
  CHECK_INT(script.n_sent, 4);
  script_check_sent(&script, 0, "forward_backward", 1);
  script_check_sent(&script, 1, "optim_step", 2);
  script_check_sent(&script, 2, "forward_backward", 3);
  script_check_sent(&script, 3, "forward_backward", 4);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

TEST(S4_14_a_send_that_is_repeated_keeps_number_key_and_place) {
  script_t script;
  outcome_t outcomes[2];
  const char *path = "/api/v1/forward_backward";
  const char *key;

  script_open_train(&script);
  mock_json_once(script.mock, "POST", path, 503, "{}");
  mock_once(script.mock, "POST", path, mock_reset, NULL);
  mock_json_once(script.mock, "POST", path, 429, "{}");
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  /* The one that was reset goes out again at once on a new connection. */
  for (int i = 0; i < 2; i++) {
    script_turns(&script);
    CHECK_INT(mock_count(script.mock, "POST", "/api/v1/optim_step"), 0);
    script_advance(&script, 31000);
  }
  outcome_ok(&script, &outcomes[0]);
  outcome_ok(&script, &outcomes[1]);
  CHECK_INT(mock_count(script.mock, "POST", path), 4);
  key =
      mock_header(mock_find(script.mock, "POST", path, 0), "X-Idempotency-Key");
  CHECK(key != NULL);
  for (size_t i = 1; i < 4; i++) {
    const mock_request_t *again = mock_find(script.mock, "POST", path, i);
    const mock_request_t *first = mock_find(script.mock, "POST", path, 0);
    CHECK_STR(mock_header(again, "X-Idempotency-Key"), key);
    CHECK_MEM(again->body, again->body_len, first->body, first->body_len);
  }
  /* The key is of that send alone. */
  CHECK(strcmp(
            mock_header(mock_find(script.mock, "POST", "/api/v1/optim_step", 0),
                        "X-Idempotency-Key"),
            key) != 0);
  script_check_sent(&script, 0, "forward_backward", 1);
  script_check_sent(&script, 1, "optim_step", 2);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

typedef struct {
  script_t *script;
  outcome_t *outcomes;
} calls_t;

static void call_two(tnk_promise_t *promise, int status, void *user) {
  calls_t *calls = user;

  (void)promise;
  CHECK_INT(status, TNK_OK);
  outcome_of(&calls->outcomes[1], script_step(calls->script));
  outcome_of(&calls->outcomes[2], script_pass(calls->script, 1));
}

TEST(S4_14_calls_from_a_callback_keep_their_order) {
  script_t script;
  outcome_t outcomes[3];
  calls_t calls = {&script, outcomes};
  tnk_promise_t *promise;

  memset(outcomes, 0, sizeof(outcomes));
  script_open_train(&script);
  promise = script_pass(&script, 1);
  tnk_then(tnk_promise_ref(promise), call_two, &calls);
  script_ok(&script, &outcomes[0], promise);
  outcome_ok(&script, &outcomes[1]);
  outcome_ok(&script, &outcomes[2]);
  script_check_sent(&script, 1, "optim_step", 2);
  script_check_sent(&script, 2, "forward_backward", 3);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

/* ---- Chunks ---- */

TEST(S3_4_the_servers_limits_cut_the_data) {
  script_t script;
  outcome_t outcome;

  open_with_flags(
      &script, "{\"fwdbwd_max_chunk_len\":2,\"parallel_fwdbwd_chunks\":false}");
  script_ok(&script, &outcome, script_pass(&script, 5));
  CHECK_INT(script.n_sent, 3);
  CHECK_INT(script.sent[0].n_data, 2);
  CHECK_INT(script.sent[1].n_data, 2);
  CHECK_INT(script.sent[2].n_data, 1);
  CHECK_INT(tnk_pass_count(tnk_promise_pass(outcome.promise)), 5);
  /* Sums add up, means are weighted by the number of examples. */
  CHECK_NEAR(tnk_pass_loss(tnk_promise_pass(outcome.promise)), 5.0, 0);
  CHECK_NEAR(tnk_metrics_get(
                 tnk_pass_metrics(tnk_promise_pass(outcome.promise)), "x:mean"),
             (2 * 2 + 2 * 2 + 1 * 1) / 5.0, 1e-9);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_4_one_example_over_the_limit_goes_alone) {
  script_t script;
  outcome_t outcome;

  open_with_flags(&script, "{\"fwdbwd_max_chunk_bytes_count\":1,"
                           "\"parallel_fwdbwd_chunks\":false}");
  script_ok(&script, &outcome, script_pass(&script, 3));
  CHECK_INT(script.n_sent, 3);
  for (size_t i = 0; i < 3; i++)
    CHECK_INT(script.sent[i].n_data, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* The answer names the number of its request. */
static void answer_with_number(mock_request_t *request) {
  const char *id = strstr((const char *)request->body, ":") + 1;
  char text[256];

  id = strstr(id, "forward_backward:") + strlen("forward_backward:");
  snprintf(text, sizeof(text),
           "{\"loss_fn_output_type\":\"ArrayRecord\",\"metrics\":{},"
           "\"loss_fn_outputs\":[{\"logprobs\":{\"data\":[-%ld.0],"
           "\"dtype\":\"float32\",\"shape\":[1]}}]}",
           atol(id));
  mock_reply_json(request, 200, text);
}

TEST(S3_6b_outputs_keep_the_order_of_the_data) {
  static const int order[] = {2, 0, 1};
  script_t script;
  script_held_t polls = {.n = 0};
  outcome_t outcome;

  open_with_flags(&script, one_by_one);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &polls);
  outcome_of(&outcome, script_pass(&script, 3));
  mock_wait_flag(script.mock, &polls.n, 3);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(outcome.n_done, 0);
    answer_with_number(polls.requests[order[i]]);
    script_turns(&script);
  }
  outcome_ok(&script, &outcome);
  for (size_t i = 0; i < 3; i++) {
    const tnk_tensor_t *logprobs =
        tnk_pass_tensor(tnk_promise_pass(outcome.promise), i, "logprobs");
    CHECK(logprobs != NULL && logprobs->n_values == 1);
    CHECK_NEAR(((const float *)logprobs->data)[0], -(double)(i + 1), 0);
  }
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_5_an_answer_without_a_request_id_is_no_success) {
  script_t script;
  outcome_t outcomes[2];

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/forward_backward", 200,
            "{\"request_id\":\"\"}");
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  script_settle(&script, &outcomes[0]);
  outcome_fails(&script, &outcomes[0], TNK_EPROTO);
  outcome_ok(&script, &outcomes[1]);
  /* Whatever it means, the server has taken number 1. */
  script_check_sent(&script, 0, "optim_step", 2);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S3_26c_a_refused_chunk_stops_those_after_it) {
  script_t script;
  script_held_t polls = {.n = 0};
  outcome_t outcomes[2];
  const char *path = "/api/v1/forward_backward";

  open_with_flags(&script, one_by_one);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &polls);
  mock_once(script.mock, "POST", path, script_accept, &script);
  mock_json_once(script.mock, "POST", path, 422, "{\"detail\":\"bad\"}");
  script_fails(&script, &outcomes[0], script_pass(&script, 3), TNK_EREQUEST);
  script_turns(&script);
  CHECK_INT(mock_count(script.mock, "POST", path), 2);
  /* Nobody waits for the chunk that was accepted. */
  CHECK_INT(polls.n, 1);
  CHECK(polls.requests[0]->is_gone);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_result,
          &script);
  script_ok(&script, &outcomes[1], script_step(&script));
  script_check_sent(&script, 1, "optim_step", 2);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S3_6a_a_chunk_that_fails_while_polled_rejects_once) {
  static const char *const answers[] = {
      "{\"error\":\"no memory\",\"category\":\"server\"}", "[1,", "{}"};
  static const int codes[] = {TNK_EFAILED, TNK_EPROTO, TNK_EPROTO};

  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
    script_t script;
    script_held_t polls = {.n = 0};
    outcome_t outcomes[2];
    open_with_flags(&script, one_by_one);
    mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold,
            &polls);
    outcome_of(&outcomes[0], script_pass(&script, 3));
    mock_wait_flag(script.mock, &polls.n, 3);
    mock_reply_json(polls.requests[1], 200, answers[i]);
    outcome_fails(&script, &outcomes[0], codes[i]);
    script_turns(&script);
    CHECK(polls.requests[0]->is_gone && polls.requests[2]->is_gone);
    mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_result,
            &script);
    script_ok(&script, &outcomes[1], script_step(&script));
    script_check_sent(&script, 3, "optim_step", 4);
    outcome_drop_all(outcomes, 2);
    script_close(&script);
  }
}

TEST(S3_6a_bad_protobuf_of_one_chunk_rejects_once) {
  script_t script;
  script_held_t polls = {.n = 0};
  outcome_t outcome;

  open_with_flags(&script, one_by_one);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_hold, &polls);
  outcome_of(&outcome, script_pass(&script, 2));
  mock_wait_flag(script.mock, &polls.n, 2);
  mock_reply(polls.requests[1], 200, "Content-Type: application/x-protobuf\r\n",
             "\xff\xff\xff", 3);
  outcome_fails(&script, &outcome, TNK_EPROTO);
  script_turns(&script);
  CHECK(polls.requests[0]->is_gone);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S3_6a_a_refusal_among_chunks_side_by_side) {
  script_t script;
  outcome_t outcomes[4];
  const char *path = "/api/v1/forward_backward";

  open_with_flags(&script, side_by_side);
  mock_json_once(script.mock, "POST", path, 400, "{\"detail\":\"bad\"}");
  outcome_of(&outcomes[0], script_pass(&script, 3));
  for (int i = 1; i < 4; i++)
    outcome_of(&outcomes[i], script_step(&script));
  outcome_fails(&script, &outcomes[0], TNK_EREQUEST);
  for (int i = 1; i < 4; i++)
    outcome_ok(&script, &outcomes[i]);
  /* Number 2 was refused, 3 accepted, 1 never sent: the next fill up. */
  CHECK_INT(mock_count(script.mock, "POST", path), 2);
  script_check_sent(&script, 0, "forward_backward", 3);
  script_check_sent(&script, 1, "optim_step", 1);
  script_check_sent(&script, 2, "optim_step", 2);
  script_check_sent(&script, 3, "optim_step", 4);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

/* ---- A result that is lost ---- */

/* Run, but the answers to the second chunk say nothing. */
static void accept_garbled(mock_request_t *request, void *user) {
  script_sent_t sent;

  script_read(request, &sent);
  if (sent.seq != 2) {
    script_accept(request, user);
    return;
  }
  script_note(user, request);
  mock_reply_json(request, 200, "{\"request_id\":");
}

static void forget(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "forward_backward:2:") == NULL)
    script_result(request, user);
  else
    mock_reply_json(request, 404, "{\"detail\":\"no such future\"}");
}

/* The other chunks go all the same: half a batch would change the weights to
 * what nobody has asked for. */
TEST(the_rest_follows_a_chunk_whose_result_is_lost) {
  static const char *const flags[] = {one_by_one, side_by_side};
  static const struct {
    const char *path;
    void (*handler)(mock_request_t *, void *);
    int err;
    int n_sent;
  } rows[] = {
      {"/api/v1/forward_backward", accept_garbled, TNK_EPROTO, 6},
      {"/api/v1/retrieve_future", forget, TNK_ESESSION, 4},
  };

  for (size_t i = 0; i < 4; i++) {
    script_t script;
    outcome_t lost;
    outcome_t step;

    open_with_flags(&script, flags[i / 2]);
    mock_on(script.mock, "POST", rows[i % 2].path, rows[i % 2].handler,
            &script);
    outcome_of(&lost, script_pass(&script, 3));
    outcome_of(&step, script_step(&script));
    script_settle(&script, &lost);
    outcome_fails(&script, &lost, rows[i % 2].err);
    outcome_ok(&script, &step);
    CHECK_INT(script.n_sent, rows[i % 2].n_sent);
    script_check_sent(&script, script.n_sent - 1, "optim_step", 4);
    outcome_drop(&lost);
    outcome_drop(&step);
    script_close(&script);
  }
}
