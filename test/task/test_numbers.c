/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * What becomes of a sequence number when its request ends in an odd way: the
 * next operation shows which number comes next.
 */

static void expect_next(script_t *script, long long seq) {
  outcome_t outcome;
  size_t n = script->n_sent;

  outcome_of(&outcome, tnk_training_optim_step(script->training, NULL));
  while (script->n_sent == n)
    script_advance(script, 100);
  CHECK_STR(script->sent[n].call, "optim_step");
  CHECK_INT(script->sent[n].seq, seq);
  outcome_ok(script, &outcome);
  outcome_drop(&outcome);
}

static void open_training(script_t *script) {
  script_open_train(script);
}

/* Advance until it is over. */
static void wait_long(script_t *script, const outcome_t *outcome) {
  while (outcome->n_done == 0)
    script_advance(script, 500);
}

/* The 2xx breaks off, and what follows is a refusal that would give a number
 * back if it were alone. */
static void accept_and_break_off(mock_request_t *request, void *user) {
  static const char body[] = "{\"request_id\":\"optim_step:1:0\"}";

  script_note(user, request);
  mock_reply_cut(request, 200, NULL, body, sizeof(body) - 1, 60);
}

static void refuse(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 403, "{\"detail\":\"no\"}");
}

TEST(S4_14_a_number_is_used_although_its_acceptance_broke_off) {
  script_t script;
  outcome_t outcome;

  open_training(&script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", accept_and_break_off,
            &script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", refuse, &script);
  outcome_of(&outcome, tnk_training_optim_step(script.training, NULL));
  wait_long(&script, &outcome);
  CHECK_INT(outcome.status, TNK_EAUTH);
  outcome_drop(&outcome);
  expect_next(&script, 2);
  script_close(&script);
}

/* A refusal whose body breaks off is a refusal. */
static void refuse_and_break_off(mock_request_t *request, void *user) {
  static const char body[] = "{\"detail\":\"no, and for this reason\"}";

  (void)user;
  mock_reply_cut(request, 422, NULL, body, sizeof(body) - 1, 70);
}

TEST(S4_14_a_number_is_free_although_its_refusal_broke_off) {
  script_t script;
  outcome_t outcome;

  open_training(&script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", refuse_and_break_off,
            NULL);
  outcome_of(&outcome, tnk_training_optim_step(script.training, NULL));
  wait_long(&script, &outcome);
  CHECK(outcome.status < 0);
  outcome_drop(&outcome);
  expect_next(&script, 1);
  script_close(&script);
}

static void talk_nonsense(mock_request_t *request, void *user) {
  script_note(user, request);
  mock_nonsense(request);
}

TEST(S4_14_an_answer_that_is_not_http_is_asked_again) {
  script_t script;
  outcome_t outcome;

  open_training(&script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", talk_nonsense, &script);
  outcome_of(&outcome, tnk_training_optim_step(script.training, NULL));
  wait_long(&script, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(script.n_sent, 2);
  CHECK_INT(script.sent[1].seq, 1);
  outcome_drop(&outcome);
  expect_next(&script, 2);
  script_close(&script);
}

/* ---- Canceled on the wire ---- */

TEST(S4_14_a_canceled_request_on_the_wire_keeps_its_number) {
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;

  open_training(&script);
  mock_once(script.mock, "POST", "/api/v1/optim_step", mock_hold, NULL);
  promise = tnk_promise_ref(tnk_training_optim_step(script.training, NULL));
  outcome_of(&outcome, promise);
  while (mock_n_held(script.mock) == 0)
    mock_turns(script.mock, 1);
  tnk_promise_cancel(promise);
  mock_turns(script.mock, 5);
  CHECK_INT(outcome.status, TNK_ECANCELED);
  mock_release(script.mock, 200, "{\"request_id\":\"optim_step:1:0\"}");
  expect_next(&script, 2);
  tnk_promise_unref(promise);
  outcome_drop(&outcome);
  script_close(&script);
}

/* At whichever turn of the loop the cancel falls: no number is used twice and
 * none is left out. */
TEST(S4_14_a_cancel_at_any_turn_leaves_the_numbers_whole) {
  for (int n = 0; n < 25; n++) {
    script_t script;
    outcome_t outcome;
    tnk_promise_t *promise;
    long long last;

    open_training(&script);
    promise = tnk_promise_ref(tnk_training_optim_step(script.training, NULL));
    outcome_of(&outcome, promise);
    mock_turns(script.mock, n);
    tnk_promise_cancel(promise);
    mock_turns(script.mock, 40);
    CHECK_INT(outcome.n_done, 1);
    CHECK(script.n_sent <= 1);
    last = script.n_sent == 1 ? 1 : 0;
    expect_next(&script, last + 1);
    tnk_promise_unref(promise);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* ---- What the server says of numbers ---- */

static void fail_future(mock_request_t *request, int status, const char *text) {
  char json[200];

  snprintf(json, sizeof(json), "{\"detail\":\"%s\"}", text);
  mock_reply_json(request, status, json);
}

static void conflict_2_4(mock_request_t *request, void *user) {
  (void)user;
  fail_future(request, 409, "Sequence conflict: expected 2, got 4");
}

static void conflict_2_9(mock_request_t *request, void *user) {
  (void)user;
  fail_future(request, 409, "Sequence conflict: expected 2, got 9");
}

static void shapes_2_4(mock_request_t *request, void *user) {
  (void)user;
  fail_future(request, 422, "shape: expected 2, got 4");
}

/* It goes well once, then fails twice, which this server does not count. */
TEST(S4_14_a_conflict_is_reported_once_and_healed) {
  script_t script;
  outcome_t outcome;

  open_training(&script);
  expect_next(&script, 1);
  for (int i = 0; i < 3; i++) {
    mock_once(script.mock, "POST", "/api/v1/retrieve_future",
              i < 2 ? shapes_2_4 : conflict_2_4, NULL);
    outcome_of(&outcome, tnk_training_optim_step(script.training, NULL));
    wait_long(&script, &outcome);
    CHECK_INT(outcome.status, i < 2 ? TNK_EFAILED : TNK_ECONFLICT);
    outcome_drop(&outcome);
  }
  expect_next(&script, 2);
  expect_next(&script, 3);
  script_close(&script);
}

/* Three steps that go well and one whose future ends as told. */
static void run_four(script_t *script, mock_handler_t handler, int status) {
  outcome_t outcome;

  open_training(script);
  for (long long seq = 1; seq <= 3; seq++)
    expect_next(script, seq);
  mock_once(script->mock, "POST", "/api/v1/retrieve_future", handler, NULL);
  outcome_of(&outcome, tnk_training_optim_step(script->training, NULL));
  wait_long(script, &outcome);
  CHECK_INT(outcome.status, status);
  outcome_drop(&outcome);
}

TEST(S4_14_a_conflict_about_another_number_changes_nothing) {
  script_t script;

  run_four(&script, conflict_2_9, TNK_ECONFLICT);
  expect_next(&script, 5);
  script_close(&script);
}

TEST(S4_14_an_error_about_shapes_is_no_conflict_of_numbers) {
  script_t script;

  run_four(&script, shapes_2_4, TNK_EFAILED);
  expect_next(&script, 5);
  script_close(&script);
}
