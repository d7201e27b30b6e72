/* SPDX-License-Identifier: MIT */
/* Answers that break off, and answers that mean nothing. */
#include "task/kinds.h"

static const char poll_path[] = "/api/v1/retrieve_future";
static const char reason[] = "{\"detail\":\"expected 5, got 1\"}";

/* ---- Polls ---- */

/* The head and a part of the body; `user` is the status. */
static void cut_poll(mock_request_t *request, void *user) {
  static const char body[400] = "{\"detail\":\"";

  mock_reply_cut(request, *(const int *)user, NULL, body, sizeof(body), 200);
}

/* The first poll of an operation breaks off; the second brings the result. */
static void check_poll(const script_kind_t *kind, int status) {
  script_t script;
  outcome_t outcome;

  script_open_for(&script, kind, NULL);
  mock_once(script.mock, "POST", poll_path, cut_poll, &status);
  outcome_of(&outcome, kind->start(&script));
  for (int i = 0; i < 20 && outcome.n_done == 0; i++)
    script_advance(&script, 5000);
  if (outcome.n_done != 1 || outcome.status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s after a broken %d: %s", kind->name,
              status, outcome.text);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST_LIMIT(S1_7_a_poll_whose_answer_breaks_off_is_sent_again, 60) {
  static const int statuses[] = {200, 302, 400, 401, 402, 403, 404, 405, 408,
                                 409, 410, 418, 422, 425, 429, 500, 599};

  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    if (kind->owner == OWNER_SERVICE)
      continue;
    for (size_t k = 0; k < sizeof(statuses) / sizeof(statuses[0]); k++)
      check_poll(kind, statuses[k]);
  }
}

/* Only then is it known why the operation failed. */
TEST(S4_14_a_refusal_that_broke_off_is_read_in_the_end) {
  script_t script;
  outcome_t outcome;
  int status = 409;

  script_open_train(&script);
  mock_once(script.mock, "POST", poll_path, cut_poll, &status);
  mock_json_once(script.mock, "POST", poll_path, 409, reason);
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  outcome_fails(&script, &outcome, TNK_ECONFLICT);
  CHECK(strstr(outcome.text, "expected 5") != NULL);
  CHECK_INT(script.training->turns.next, 5);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Submissions ---- */

static void check_attempts(const script_kind_t *kind, const char *answer,
                           size_t n_attempts, int code) {
  script_t script;
  outcome_t outcome;
  char path[64];
  size_t n_before;
  size_t n;

  snprintf(path, sizeof(path), "/api/v1/%s", kind->call);
  script_open_for(&script, kind, NULL);
  mock_json(script.mock, NULL, path, 200, answer);
  n_before = mock_count(script.mock, NULL, path);
  outcome_of(&outcome, kind->start(&script));
  script_settle(&script, &outcome);
  outcome_fails(&script, &outcome, code);
  n = mock_count(script.mock, NULL, path) - n_before;
  if (n != n_attempts)
    test_fail(__FILE__, __LINE__, "%s: %zu attempts at %s", kind->name, n,
              answer);
  outcome_drop(&outcome);
  script_close(&script);
}

/* With the same key, or the server could not tell a repeat. Samples too, but
 * nothing that would be made a second time. */
TEST_LIMIT(S1_7_answers_that_mean_nothing_are_asked_for_thrice, 20) {
  static const char *const answers[] = {
      "",         "<html>", "[]", "{\"request_id\":", "{\"request_id\":\"\"}",
      "{\"a\":1}"};

  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    int is_known = kind->owner != OWNER_SERVICE &&
                   strcmp(kind->name, "unload") != 0; /* by its number */
    for (size_t k = 0; k < sizeof(answers) / sizeof(answers[0]); k++)
      check_attempts(kind, answers[k], is_known ? 3 : 1, TNK_EPROTO);
  }
}

TEST(S1_7_a_repeat_after_a_strange_answer_is_the_same_request) {
  static const char path[] = "/api/v1/optim_step";
  script_t script;
  outcome_t outcome;
  const mock_request_t *requests[2];

  script_open_train(&script);
  mock_json_once(script.mock, "POST", path, 200, "<html>");
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK_INT(mock_count(script.mock, "POST", path), 2);
  for (size_t i = 0; i < 2; i++)
    requests[i] = mock_find(script.mock, "POST", path, i);
  CHECK_STR(mock_header(requests[0], "x-idempotency-key"),
            mock_header(requests[1], "x-idempotency-key"));
  CHECK_INT(requests[0]->body_len, requests[1]->body_len);
  CHECK(memcmp(requests[0]->body, requests[1]->body, requests[0]->body_len) ==
        0);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- A server that is not there ---- */

/* The first failure is told at once, the others only to those who ask. */
TEST(a_server_that_cannot_be_reached_is_told_of_once) {
  script_t script;
  outcome_t outcome;
  char expected[200];

  script_open(&script);
  script.log_text = "there was no response from there yet";
  mock_stop_listening(script.mock);
  outcome_of(&outcome, tnk_service_capabilities(script.service));
  for (int i = 0; i < 40 && script.n_warnings == 0; i++)
    mock_turns(script.mock, 1);
  snprintf(expected, sizeof(expected),
           "cannot connect to 127.0.0.1 port %d: connection refused; there was "
           "no response from there yet, and one attempt follows every 2 s",
           mock_port(script.mock));
  CHECK(strstr(script.last_log, expected) != NULL);
  for (int i = 0; i < 40 && outcome.n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_fails(&script, &outcome, TNK_ECONN);
  CHECK_INT(script.n_log_texts, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_server_that_has_answered_before_is_tried_in_silence) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script.log_text = "; still retrying, ";
  outcome_of(&outcome, tnk_service_capabilities(script.service));
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  CHECK_INT(script.n_log_texts, 0);
  script.log_text = "attempt 2 failed (cannot connect to ";
  mock_stop_listening(script.mock);
  mock_close_idle(script.mock, 0);
  script_turns(&script);
  script.n_warnings = 0;
  outcome_of(&outcome, tnk_service_capabilities(script.service));
  for (int i = 0; i < 20 && script.n_log_texts == 0; i++)
    script_advance(&script, 500);
  CHECK_INT(script.n_log_texts, 1);
  CHECK_INT(script.n_warnings, 0);
  for (int i = 0; i < 40 && outcome.n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_fails(&script, &outcome, TNK_ECONN);
  outcome_drop(&outcome);
  script_close(&script);
}
