/* SPDX-License-Identifier: MIT */
/* Headers: what goes out with each attempt and each poll, and what is read. */
#include "task/script.h"

static const char step_path[] = "/api/v1/optim_step";
static const char sample_path[] = "/api/v1/asample";
static const char poll_path[] = "/api/v1/retrieve_future";

static const char *header_of(const script_t *script, const char *path, size_t i,
                             const char *name) {
  const mock_request_t *request = mock_find(script->mock, "POST", path, i);

  CHECK(request != NULL);
  return mock_header(request, name);
}

/* Let time pass until it has ended. */
static void pass_time(script_t *script, const outcome_t *outcome) {
  script_turns(script);
  for (int i = 0; i < 100 && outcome->n_done == 0; i++)
    script_advance(script, 1000);
}

/* ---- Of attempts ---- */

TEST(B5_attempts_say_how_many_there_were) {
  static const char *const counts[] = {"0", "1", "2"};
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  mock_json_once(script.mock, "POST", step_path, 503, "{}");
  mock_json_once(script.mock, "POST", step_path, 503, "{}");
  outcome_of(&outcome, script_step(&script));
  pass_time(&script, &outcome);
  outcome_ok(&script, &outcome);
  for (size_t i = 0; i < 3; i++)
    CHECK_STR(header_of(&script, step_path, i, "x-stainless-retry-count"),
              counts[i]);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(B7_samples_ask_for_backpressure_and_nothing_else_does) {
  script_t script;
  outcome_t outcome;

  script_open_train(&script);
  script_sampler(&script);
  script_ok(&script, &outcome, script_sample(&script));
  outcome_drop(&outcome);
  script_ok(&script, &outcome, script_step(&script));
  outcome_drop(&outcome);
  CHECK_STR(
      header_of(&script, sample_path, 0, "x-tinker-sampling-backpressure"),
      "1");
  CHECK(header_of(&script, step_path, 0, "x-tinker-sampling-backpressure") ==
        NULL);
  script_close(&script);
}

/* ---- Of polls ---- */

TEST(B6_polls_are_counted_and_the_first_tells_of_the_way_there) {
  static const char *const counts[] = {"0", "1", "2"};
  script_t script;
  outcome_t outcome;
  size_t n;

  script_open_train(&script);
  n = mock_count(script.mock, "POST", poll_path);
  mock_json_once(script.mock, "POST", poll_path, 408, "{}");
  mock_json_once(script.mock, "POST", poll_path, 200,
                 "{\"type\":\"try_again\"}");
  outcome_of(&outcome, script_step(&script));
  pass_time(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK_INT(mock_count(script.mock, "POST", poll_path), n + 3);
  for (size_t i = 0; i < 3; i++) {
    CHECK_STR(
        header_of(&script, poll_path, n + i, "x-tinker-request-iteration"),
        counts[i]);
    CHECK_STR(header_of(&script, poll_path, n + i, "x-tinker-request-type"),
              "OptimStep");
    CHECK_INT(header_of(&script, poll_path, n + i,
                        "x-tinker-create-promise-roundtrip-time") != NULL,
              i == 0);
  }
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Of answers ---- */

/* The header decides over the status. */
TEST(C2_a_server_says_what_is_to_be_tried_again) {
  static const struct {
    int status;
    const char *header;
    int code;
    size_t n;
  } rows[] = {{422, "x-should-retry: true\r\n", TNK_OK, 2},
              {422, NULL, TNK_EREQUEST, 1},
              {503, "x-should-retry: false\r\n", TNK_ESERVER, 1},
              {503, NULL, TNK_OK, 2}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    script_t script;
    outcome_t outcome;

    script_open_train(&script);
    mock_once(script.mock, "POST", step_path, mock_hold, NULL);
    outcome_of(&outcome, script_step(&script));
    script_turns(&script);
    mock_reply(mock_find(script.mock, "POST", step_path, 0), rows[i].status,
               rows[i].header, "{}", 2);
    pass_time(&script, &outcome);
    CHECK_INT(outcome.n_done, 1);
    CHECK_INT(outcome.status, rows[i].code);
    CHECK_INT(mock_count(script.mock, "POST", step_path), rows[i].n);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

static const char *deprecation;

static void deprecated(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, deprecation, "{\"status\":\"ok\"}", 15);
}

TEST(P2_1_notes_of_what_is_deprecated_are_logged) {
  static const struct {
    const char *headers;
    int n_warnings;
    int n_errors;
  } rows[] = {{"x-deprecation-note: Use /v2\r\n", 1, 0},
              {"x-deprecation-note: Use /v2\r\n"
               "x-deprecation-level: warning\r\n",
               1, 0},
              {"X-Deprecation-Note: Use /v2\r\n"
               "X-Deprecation-Level: Error\r\n",
               0, 1},
              {"x-deprecation-note: \r\n", 0, 0},
              {"x-deprecation-level: error\r\n", 0, 0}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    deprecation = rows[i].headers;
    mock_on(script.mock, "GET", "/api/v1/healthz", deprecated, NULL);
    script_ok(&script, &outcome, tnk_service_health(script.service));
    CHECK_INT(script.n_warnings, rows[i].n_warnings);
    CHECK_INT(script.n_errors, rows[i].n_errors);
    if (rows[i].n_warnings + rows[i].n_errors > 0)
      CHECK_STR(script.last_log, "healthz: deprecated: Use /v2");
    outcome_drop(&outcome);
    script_close(&script);
  }
}
