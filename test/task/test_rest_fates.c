/* SPDX-License-Identifier: MIT */
/*
 * Answers that stay as they are, and ids that are none: each row of the
 * protocol's tables about the calls for what a service keeps, by its name.
 */
#include "task/rest.h"

#define RUN "/api/v1/training_runs/r:1"
#define SESSION "/api/v1/sessions/s-1"
#define PATH "tinker://r:1/weights/a"
#define CHECKPOINT RUN "/checkpoints/weights/a"

/* Ten repeats, 0.5 s doubling to 10 s between them. */
enum { N_ATTEMPTS = 11, MAX_MS = 70000 };

typedef struct {
  const char *method;
  const char *target;
  tnk_promise_t *(*start)(tnk_service_t *service);
} call_t;

static tnk_promise_t *get_run(tnk_service_t *service) {
  return tnk_rest_get_run(service, "r:1", TNK_SCOPE_OWNED);
}

static tnk_promise_t *publish(tnk_service_t *service) {
  return tnk_rest_publish_checkpoint(service, PATH);
}

static tnk_promise_t *set_ttl(tnk_service_t *service) {
  return tnk_rest_set_checkpoint_ttl(service, PATH, 3600);
}

static tnk_promise_t *search(tnk_service_t *service) {
  return tnk_rest_search_sessions(service, NULL);
}

static tnk_promise_t *move(tnk_service_t *service) {
  return tnk_rest_move_session(service, "s-1", "project");
}

static const call_t calls[] = {
    {"GET", RUN, get_run},
    {"POST", CHECKPOINT "/publish", publish},
    {"PUT", CHECKPOINT "/ttl", set_ttl},
    {"POST", "/api/v1/sessions/search", search},
};
enum { N_CALLS = sizeof(calls) / sizeof(calls[0]), PUBLISH = 1 };

/* What became of a call whose answer never changes. */
typedef struct {
  int status;
  size_t n_requests;
  unsigned ms; /* until it was told */
  int n_told;  /* lines in the log that say that it is repeated */
  char explained[256];
} fate_t;

typedef struct {
  int status;
  const char *headers;
  const char *body;
} answer_t;

static void give(mock_request_t *request, void *user) {
  const answer_t *answer = user;

  mock_reply(request, answer->status, answer->headers, answer->body,
             strlen(answer->body));
}

static fate_t fate_of(const call_t *call, answer_t answer) {
  fate_t fate = {0};
  tnk_promise_t *promise;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script.log_text = "attempt";
  mock_on(script.mock, call->method, call->target, give, &answer);
  promise = call->start(script.service);
  outcome_of(&outcome, promise);
  script_later(&script, 0);
  if (outcome.n_done == 0)
    tnk_promise_explain(promise, fate.explained, sizeof(fate.explained));
  for (; outcome.n_done == 0 && fate.ms < 400000; fate.ms += 100)
    script_later(&script, 100);
  CHECK_INT(outcome.n_done, 1);
  fate.status = outcome.status;
  fate.n_requests = mock_count(script.mock, call->method, call->target);
  fate.n_told = script.n_log_texts;
  outcome_drop(&outcome);
  script_close(&script);
  return fate;
}

/* Given up after a minute, and neither silent nor unexplained until then. */
static void check_given_up(const call_t *call, answer_t answer, int status) {
  const fate_t fate = fate_of(call, answer);

  CHECK_INT(fate.status, status);
  CHECK_INT(fate.n_requests, N_ATTEMPTS);
  CHECK(fate.ms > 1000 && fate.ms < MAX_MS);
  CHECK(fate.n_told >= N_ATTEMPTS - 1);
  CHECK(strstr(fate.explained, "attempt 2 follows") != NULL);
}

/* ---- Answers that stay as they are ---- */

TEST(P9_12_a_refusal_is_told_at_once) {
  static const int refusals[] = {400, 401, 403, 404, 418, 422};

  for (size_t k = 0; k < sizeof(refusals) / sizeof(refusals[0]); k++)
    for (size_t i = 0; i < N_CALLS; i++) {
      const fate_t fate = fate_of(
          &calls[i], (answer_t){refusals[k], NULL, "{\"detail\":\"\"}"});

      CHECK(fate.status != TNK_OK);
      CHECK_INT(fate.n_requests, 1);
      CHECK_INT(fate.ms, 0);
    }
}

TEST(P9_12_a_400_without_a_body_is_given_up) {
  for (size_t i = 0; i < N_CALLS; i++)
    check_given_up(&calls[i], (answer_t){400, NULL, ""}, TNK_EREQUEST);
}

TEST(P9_12_a_409_is_no_error_of_publish_alone) {
  for (size_t i = 0; i < N_CALLS; i++)
    if (i != PUBLISH)
      check_given_up(&calls[i], (answer_t){409, NULL, "{}"}, TNK_ECONFLICT);
}

TEST(P9_12_a_429_is_given_up) {
  const answer_t answer = {429, "Retry-After: 1\r\n", "{}"};

  for (size_t i = 0; i < N_CALLS; i++) {
    check_given_up(&calls[i], answer, TNK_ERATE);
    /* As the server wishes. */
    CHECK_INT(fate_of(&calls[i], answer).ms, (N_ATTEMPTS - 1) * 1000);
  }
}

TEST(P9_12_a_500_is_given_up) {
  for (size_t i = 0; i < N_CALLS; i++)
    check_given_up(&calls[i], (answer_t){500, NULL, "{}"}, TNK_ESERVER);
}

TEST(P9_12_402_is_told_at_once_of_questions_too) {
  for (size_t i = 0; i < N_CALLS; i++) {
    const fate_t fate = fate_of(&calls[i], (answer_t){402, NULL, "{}"});

    CHECK_INT(fate.status, TNK_EBILLING);
    CHECK_INT(fate.n_requests, 1);
  }
}

/* The end is the same, however often it is asked for. */
TEST(P9_12_moving_a_session_is_repeated) {
  static const answer_t refusals[] = {
      {400, NULL, "{}"}, {403, NULL, "{}"}, {404, NULL, "{}"}};
  static const int codes[] = {TNK_EREQUEST, TNK_EAUTH, TNK_ENOTFOUND};
  const call_t call = {"PUT", SESSION "/project", move};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, call.method, call.target, 200, "{}");
  mock_once(script.mock, call.method, call.target, mock_reset, NULL);
  outcome_of(&outcome, call.start(script.service));
  for (int i = 0; i < 30 && outcome.n_done == 0; i++)
    script_later(&script, 1000);
  outcome_ok(&script, &outcome);
  CHECK_INT(mock_count(script.mock, call.method, call.target), 2);
  outcome_drop(&outcome);
  script_close(&script);
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
    const fate_t fate = fate_of(&call, refusals[i]);

    CHECK_INT(fate.status, codes[i]);
    CHECK_INT(fate.n_requests, 1);
  }
}

/* ---- Ids that would change the address ---- */

static tnk_promise_t *get_run_of(tnk_service_t *service, const char *id) {
  return tnk_rest_get_run(service, id, TNK_SCOPE_OWNED);
}

static tnk_promise_t *get_session_of(tnk_service_t *service, const char *id) {
  return tnk_rest_get_session(service, id, TNK_SCOPE_ACCESSIBLE);
}

static tnk_promise_t *move_session(tnk_service_t *service, const char *id) {
  return tnk_rest_move_session(service, id, "project");
}

static tnk_promise_t *set_ttl_of(tnk_service_t *service, const char *path) {
  return tnk_rest_set_checkpoint_ttl(service, path, 0);
}

typedef tnk_promise_t *(*start_fn)(tnk_service_t *service, const char *text);

/* Every call that puts a text of the caller into an address. */
static const start_fn of_ids[] = {
    get_run_of,   tnk_rest_list_run_checkpoints, get_session_of,
    move_session, tnk_rest_export_trace,         tnk_rest_get_sampler,
};
static const start_fn of_paths[] = {
    tnk_rest_delete_checkpoint, tnk_rest_publish_checkpoint,
    tnk_rest_unpublish_checkpoint, set_ttl_of, tnk_rest_get_external_files};

static void check_not_sent(script_t *script, start_fn start, const char *text) {
  outcome_t outcome;

  script_fails(script, &outcome, start(script->service, text), TNK_EINVAL);
  outcome_drop(&outcome);
}

/* As an id, and as either part of a path. */
static void check_refused(const char *const *ids, size_t n) {
  script_t script;
  char path[128];

  script_open(&script);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < sizeof(of_ids) / sizeof(of_ids[0]); k++)
      check_not_sent(&script, of_ids[k], ids[i]);
    for (size_t k = 0; k < sizeof(of_paths) / sizeof(of_paths[0]); k++) {
      snprintf(path, sizeof(path), "tinker://%s/external_weights/a", ids[i]);
      check_not_sent(&script, of_paths[k], path);
      snprintf(path, sizeof(path), "tinker://r/external_weights/%s", ids[i]);
      check_not_sent(&script, of_paths[k], path);
    }
  }
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

#define REFUSED(...)                                                           \
  check_refused((const char *const[]){__VA_ARGS__},                            \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

TEST(P9_13_control_characters_are_refused) {
  REFUSED("a\nb", "\r", "a\tb", "a\x01", "a\x7f");
}

TEST(P9_13_blanks_are_refused) {
  REFUSED("a b", " a", "a ");
}

TEST(P9_13_question_marks_are_refused) {
  REFUSED("?", "a?b", "a?");
}

TEST(P9_13_number_signs_are_refused) {
  REFUSED("#", "a#b", "a#");
}

TEST(P9_13_percent_signs_are_refused) {
  REFUSED("%", "a%2fb", "a%");
}

TEST(P9_13_backslashes_are_refused) {
  REFUSED("\\", "a\\b", "..\\");
}

TEST(P9_13_empty_parts_are_refused) {
  REFUSED("", "/", "a/", "/a", "a//b");
}

TEST(P9_13_dots_alone_are_refused) {
  REFUSED(".", "..", "a/..", "./a");
}
