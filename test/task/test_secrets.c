/* SPDX-License-Identifier: MIT */
/*
 * The key goes to the service's own address and nowhere else; neither it nor
 * prompts nor bodies are logged or told in errors. The logger of the fixture
 * gets every line (TRACE) and fails the test when it sees the key.
 */
#include "support/spy.h"
#include "task/kinds.h"
#include "tnk/rest.h"

/* The prompt's tokens and texts that only occur in bodies. */
#define MARK "424242"

static int n_marked;

static void no_mark(tnk_log_level_t level, const char *subject,
                    const char *message, size_t length, void *user) {
  script_log(level, subject, message, length, user);
  n_marked += strstr(message, MARK) != NULL;
}

static const tnk_model_input_t *marked_prompt(void) {
  static const int32_t tokens[] = {424242, 424242};
  static tnk_chunk_t chunk;
  static tnk_model_input_t prompt;

  chunk = tnk_chunk_text(tokens, 2);
  prompt = (tnk_model_input_t){.chunks = &chunk, .n_chunks = 1};
  return &prompt;
}

static void open_marked(script_t *script) {
  script_open(script);
  script->service->root.context.logger.write = no_mark;
}

/* What a server may say of a request that it refuses, the request included. */
static const char echo[] =
    "{\"detail\":[{\"loc\":[\"body\",\"prompt\"],\"msg\":\"not so\","
    "\"input\":{\"tokens\":[" MARK "," MARK "]}}]}";
static const char key_echo[] = "{\"detail\":\"invalid key "
                               "tml-canary-key-0123456789 (key "
                               "tml-canary-key-0123456789)\"}";

TEST(prompts_and_bodies_are_neither_logged_nor_told) {
  static const struct {
    const char *path;
    int status;
    const char *body;
  } cases[] = {{"/api/v1/asample", 422, echo},
               {"/api/v1/asample", 400, echo},
               {"/api/v1/asample", 503, echo},
               {"/api/v1/asample", 200, "{\"" MARK "\":1}"},
               {"/api/v1/asample", 200, MARK},
               {"/api/v1/retrieve_future", 422, echo},
               {"/api/v1/retrieve_future", 200, MARK " is no JSON"},
               {"/api/v1/retrieve_future", 200, "{\"x\":" MARK "}"},
               {"/api/v1/retrieve_future", 410, echo}};
  script_t script;
  outcome_t outcome;

  open_marked(&script);
  script_sampler(&script);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    mock_json_once(script.mock, "POST", cases[i].path, cases[i].status,
                   cases[i].body);
    outcome_of(&outcome, tnk_sampling_sample(script.sampling, marked_prompt(),
                                             NULL, NULL));
    script_settle(&script, &outcome);
    if (strstr(outcome.text, MARK) != NULL)
      test_fail(__FILE__, __LINE__, "case %zu: %s", i, outcome.text);
    outcome_drop(&outcome);
  }
  CHECK_INT(n_marked, 0);
  script_close(&script);
}

TEST(a_key_that_the_server_repeats_is_blotted_out) {
  static const char *const paths[] = {
      "/api/v1/client/config", "/api/v1/create_session",
      "/api/v1/create_sampling_session", "/api/v1/asample",
      "/api/v1/retrieve_future"};

  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    script_t script;
    outcome_t outcome;
    open_marked(&script);
    if (i >= 3)
      script_sampler(&script);
    mock_json(script.mock, "POST", paths[i], 401, key_echo);
    script_fails(&script, &outcome,
                 i >= 3 ? script_sample(&script) : start_sampler(&script),
                 TNK_EAUTH);
    /* outcome_done() has looked for the key. */
    CHECK(strstr(outcome.text, "invalid key *****") != NULL);
    CHECK(strstr(tnk_promise_error(outcome.promise)->message, "canary") ==
          NULL);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(a_key_in_the_words_of_a_failed_operation_is_blotted_out) {
  script_t script;
  outcome_t outcomes[2];
  static const char failed[] =
      "{\"error\":\"cannot use tml-canary-key-0123456789\","
      "\"category\":\"user\"}";

  open_marked(&script);
  script_train(&script);
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 200, failed);
  script_fails(&script, &outcomes[0], script_step(&script), TNK_EFAILED);
  mock_json_once(script.mock, "POST", "/api/v1/optim_step", 200, failed);
  script_fails(&script, &outcomes[1], script_step(&script), TNK_EFAILED);
  for (int i = 0; i < 2; i++)
    CHECK(strstr(outcomes[i].text, "cannot use ****") != NULL);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* The fixture looks at what is logged. */
static void reply_with_note(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200,
             "x-deprecation-note: tml-canary-key-0123456789 is old\r\n",
             "{\"status\":\"ok\"}", 15);
}

TEST(a_key_in_what_a_server_wants_to_be_logged_is_blotted_out) {
  script_t script;
  outcome_t outcome;

  open_marked(&script);
  mock_json(script.mock, "POST", "/api/v1/create_session", 200,
            "{\"session_id\":\"session-0\",\"info_message\":\"hello "
            "tml-canary-key-0123456789\",\"warning_message\":\"x "
            "tml-canary-key-0123456789\",\"error_message\":\"y "
            "tml-canary-key-0123456789\"}");
  mock_on(script.mock, "GET", "/api/v1/healthz", reply_with_note, NULL);
  script.log_text = "hello *****";
  script_sampler(&script);
  CHECK_INT(script.n_log_texts, 1);
  script_ok(&script, &outcome, tnk_service_health(script.service));
  CHECK(strstr(script.last_log, "deprecated: ***") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST_LIMIT(no_operation_logs_the_key, 20) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    script_t script;
    outcome_t outcome;
    char path[64];
    script_open_for(&script, &script_kinds[i], NULL);
    snprintf(path, sizeof(path), "/api/v1/%s", script_kinds[i].call);
    mock_json_once(script.mock, NULL, path, 500, "{}");
    mock_once(script.mock, NULL, path, mock_reset, NULL);
    mock_json_once(script.mock, NULL, path, 401, key_echo);
    outcome_of(&outcome, script_kinds[i].start(&script));
    script_settle(&script, &outcome);
    CHECK_INT(outcome.status, TNK_EAUTH);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* ---- What is sent for somebody else's state ---- */

#define TOKEN "token-canary-3141592653"

static const char load_path[] = "/api/v1/load_weights";
static const char poll_path[] = "/api/v1/retrieve_future";

static tnk_promise_t *load_with_token(script_t *script) {
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  options.path = "tinker://r/weights/a";
  options.weights_access_token = TOKEN;
  return tnk_training_load_state(script->training, &options);
}

static tnk_promise_t *restore_with_token(script_t *script,
                                         tnk_choice_t classic) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = "tinker://r/weights/a";
  options.classic = classic;
  options.weights_access_token = TOKEN;
  return tnk_service_restore(script->service, &options);
}

static tnk_promise_t *restore_at_once(script_t *script) {
  return restore_with_token(script, TNK_NO);
}

static tnk_promise_t *restore_in_calls(script_t *script) {
  return restore_with_token(script, TNK_YES);
}

/* The ways to load, each with what the server says of it, and where. */
TEST(A22_an_access_token_that_the_server_repeats_is_blotted_out) {
  static tnk_promise_t *(*const starts[])(script_t *) = {
      load_with_token, restore_at_once, restore_in_calls};
  static const struct {
    const char *path;
    int status;
    const char *body;
    int code;
  } answers[] = {
      {load_path, 403, "{\"detail\":\"cannot use " TOKEN "\"}", TNK_EAUTH},
      {load_path, 403, "<title>cannot use " TOKEN "</title>", TNK_EPROXY},
      {load_path, 200, "{\"error\":\"cannot use " TOKEN "\"}", TNK_EFAILED},
      {poll_path, 200, "{\"error\":\"cannot use " TOKEN "\"}", TNK_EFAILED},
      {poll_path, 403, "{\"detail\":\"cannot use " TOKEN "\"}", TNK_EAUTH},
  };
  const size_t n_answers = sizeof(answers) / sizeof(answers[0]);

  for (size_t i = 0; i < 3 * n_answers; i++) {
    const size_t k = i / 3;
    script_t script;
    outcome_t outcome;

    open_marked(&script);
    if (i % 3 == 0)
      script_train(&script);
    /* In several calls a model is made first. */
    if (i % 3 == 2 && answers[k].path == poll_path)
      mock_json_once(script.mock, "POST", poll_path, 200,
                     "{\"model_id\":\"model-0\"}");
    mock_json_once(script.mock, "POST", answers[k].path, answers[k].status,
                   answers[k].body);
    /* Neither what is logged nor what is told has it: the fixture looks. */
    script_fails(&script, &outcome, starts[i % 3](&script), answers[k].code);
    if (strstr(outcome.text, "cannot use *****") == NULL)
      test_fail(__FILE__, __LINE__, "case %zu: %s", i, outcome.text);
    CHECK(strstr(outcome.text, "canary") == NULL);
    CHECK(tnk_promise_error(outcome.promise)->message == NULL ||
          strstr(tnk_promise_error(outcome.promise)->message, "canary") ==
              NULL);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

static tnk_promise_t *copy_with_token(script_t *script) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  options.path = "tinker://r/weights/a";
  options.project_id = "mine";
  options.weights_access_token = TOKEN;
  return tnk_rest_copy_weights(script->service, &options);
}

/* Neither in bodies of requests nor where it is kept for them: the allocator
 * looks through all that is given back, whether it went well or not. */
TEST(an_access_token_is_wiped) {
  static tnk_promise_t *(*const starts[])(script_t *) = {
      load_with_token, restore_at_once, restore_in_calls, copy_with_token};
  enum { N_STARTS = sizeof(starts) / sizeof(starts[0]) };

  for (size_t i = 0; i < 3 * N_STARTS; i++) {
    const tnk_allocator_t spy = spy_on(TOKEN);
    tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
    script_t script;
    outcome_t outcome;

    options.allocator = &spy;
    script_open_with(&script, options);
    if (i % N_STARTS == 0)
      script_train(&script);
    /* Well, sent again, refused. */
    if (i / N_STARTS == 1)
      mock_once(script.mock, "POST", NULL, mock_reset, NULL);
    else if (i / N_STARTS == 2)
      mock_json_once(script.mock, "POST", NULL, 403, "{\"detail\":\"no\"}");
    outcome_of(&outcome, starts[i % N_STARTS](&script));
    script_settle(&script, &outcome);
    outcome_drop(&outcome);
    script_close(&script);
    if (spy_n_leaks != 0)
      test_fail(__FILE__, __LINE__, "case %zu: left %zu times", i, spy_n_leaks);
    CHECK(spy_n_looks > 20);
  }
}

TEST(A22_an_access_token_in_words_about_the_queue_is_blotted_out) {
  tnk_promise_t *promise;
  char text[512];
  script_t script;
  outcome_t outcome;

  open_marked(&script);
  script_train(&script);
  mock_on(script.mock, "POST", poll_path, mock_hold, NULL);
  promise = load_with_token(&script);
  outcome_of(&outcome, promise);
  script_turns(&script);
  mock_release(script.mock, 408,
               "{\"type\":\"try_again\",\"queue_state\":"
               "\"paused_capacity\",\"queue_state_reason\":\"waits for " TOKEN
               "\"}");
  script_turns(&script);
  CHECK(tnk_promise_explain(promise, text, sizeof(text)) > 0);
  CHECK(strstr(text, "(waits for *****") != NULL);
  CHECK(strstr(text, "canary") == NULL);
  tnk_training_close(script.training, NULL, NULL);
  outcome_fails(&script, &outcome, TNK_ECLOSED);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Redirects ---- */

typedef struct {
  script_t *script;
  char location[128];
  int status;
} redirect_t;

static void redirect(mock_request_t *request, void *user) {
  const redirect_t *plan = user;
  char header[256];

  snprintf(header, sizeof(header), "Location: %s\r\n", plan->location);
  mock_reply(request, plan->status, header, "", 0);
}

static void check_redirect(int status, const char *path, int is_elsewhere) {
  script_t script;
  redirect_t plan = {.status = status};
  outcome_t outcome;
  mock_server_t *other;
  size_t before;

  script_open(&script);
  script_sampler(&script);
  other = mock_open(&script.uv);
  mock_json(other, NULL, NULL, 200, "{}");
  snprintf(plan.location, sizeof(plan.location), "%s/api/v1/elsewhere",
           mock_url(is_elsewhere ? other : script.mock));
  mock_once(script.mock, "POST", path, redirect, &plan);
  before = mock_count(script.mock, "POST", "/api/v1/elsewhere");
  script_fails(&script, &outcome, script_sample(&script), TNK_EREQUEST);
  CHECK_INT(tnk_promise_error(outcome.promise)->http_status, status);
  script_turns(&script);
  CHECK_INT(mock_n_connections(other), 0);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/elsewhere"), before);
  outcome_drop(&outcome);
  mock_close(other);
  script_close(&script);
}

TEST_LIMIT(a_redirect_gets_no_request_at_all, 20) {
  static const int statuses[] = {301, 302, 303, 307, 308};

  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
    for (int k = 0; k < 2; k++) {
      check_redirect(statuses[i], "/api/v1/asample", k);
      check_redirect(statuses[i], "/api/v1/retrieve_future", k);
    }
}

/* ---- Headers ---- */

TEST(ids_of_the_server_cannot_forge_a_request) {
  script_t script;
  outcome_t outcome;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  const mock_request_t *last;

  script_open(&script);
  options.model_path = "tinker://r/sampler_weights/a";
  mock_json(script.mock, "POST", "/api/v1/create_sampling_session", 200,
            "{\"sampling_session_id\":\"a/../x\\r\\nX-Evil: 1?q=%2e\"}");
  outcome_of(&outcome, tnk_service_create_sampling(script.service, &options));
  outcome_wait(&script, &outcome);
  last = mock_request(script.mock, mock_n_requests(script.mock) - 1);
  CHECK(mock_header(last, "x-evil") == NULL);
  if (strcmp(last->method, "GET") == 0)
    CHECK(strncmp(last->target, "/api/v1/samplers/a%2F", 21) == 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(the_callers_headers_replace_ours) {
  static const tnk_pair_t headers[] = {{"x-api-key", "other"}, {"X-More", "1"}};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;
  const mock_request_t *request;

  options.headers = headers;
  options.n_headers = 2;
  script_open_with(&script, options);
  script_ok(&script, &outcome, tnk_service_health(script.service));
  request = mock_find(script.mock, "GET", "/api/v1/healthz", 0);
  CHECK_STR(mock_header(request, "X-API-Key"), "other");
  CHECK_STR(mock_header(request, "X-More"), "1");
  outcome_drop(&outcome);
  script_close(&script);
}
