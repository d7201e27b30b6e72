/* SPDX-License-Identifier: MIT */
#include <jansson.h>

#include "task/script.h"

/* The whole picture, as text and as JSON. */

typedef struct {
  char *text;
  int n;
  tnk_service_t *to_close;
} dumped_t;

static void on_dump(const char *text, size_t length, void *user) {
  dumped_t *dumped = user;

  CHECK_INT(dumped->n++, 0);
  dumped->text = malloc(length + 1);
  CHECK(dumped->text != NULL);
  memcpy(dumped->text, text, length);
  dumped->text[length] = '\0';
  CHECK(strstr(dumped->text, "canary") == NULL);
  tnk_service_close(dumped->to_close, NULL, NULL);
}

static void open_secret(script_t *script) {
  static const tnk_pair_t header = {"X-Secret", "canary"};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.headers = &header;
  options.n_headers = 1;
  options.project_id = "project-0";
  script_open_with(script, options);
}

/* One of each kind pending: two steps, a sample behind a back-off, a request.
 */
static void start_all(script_t *script, outcome_t outcomes[4]) {
  script_train(script);
  script_sampler(script);
  mock_json_once(script->mock, "POST", "/api/v1/asample", 429, "{}");
  mock_on(script->mock, NULL, "/api/v1/optim_step", mock_hold, NULL);
  mock_on(script->mock, NULL, "/api/v1/healthz", mock_hold, NULL);
  outcome_of(&outcomes[0], script_step(script));
  outcome_of(&outcomes[1], script_step(script));
  outcome_of(&outcomes[2], script_sample(script));
  outcome_of(&outcomes[3], tnk_service_health(script->service));
  script_turns(script);
  script_advance(script, 400);
}

static void close_all(script_t *script, outcome_t outcomes[4]) {
  tnk_service_close(script->service, script_closed, script);
  script_end(script);
  for (int i = 0; i < 4; i++)
    CHECK_INT(outcomes[i].status, TNK_ECLOSED);
  outcome_drop_all(outcomes, 4);
}

static json_int_t number(const json_t *root, const char *a, const char *b) {
  const json_t *value = json_object_get(root, a);

  if (b != NULL)
    value = json_object_get(value, b);
  CHECK(json_is_integer(value));
  return json_integer_value(value);
}

static const char *element(const json_t *root, const char *key, size_t i) {
  const json_t *list = json_object_get(root, key);

  CHECK(json_is_array(list));
  CHECK(i < json_array_size(list));
  return json_string_value(json_array_get(list, i));
}

TEST(dump_as_json_tells_everything_but_secrets) {
  dumped_t dumped = {NULL, 0, NULL};
  outcome_t outcomes[4];
  const json_t *client;
  script_t script;
  json_t *root;

  open_secret(&script);
  start_all(&script, outcomes);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_JSON, on_dump, &dumped),
            TNK_OK);
  root = json_loads(dumped.text, 0, NULL);
  CHECK(root != NULL);
  CHECK_INT(number(root, "port", NULL), mock_port(script.mock));
  CHECK_STR(json_string_value(json_object_get(root, "api_key")), "tml-***");
  CHECK_STR(element(root, "headers", 0), "X-Secret");
  CHECK_INT(number(root, "session", "heartbeat_age_ms"), 400);
  CHECK_INT(number(root, "counters", "pending"), 4);
  CHECK_INT(number(root, "counters", "double_settles"), 0);
  CHECK_INT(number(root, "counters", "loop_lag_ms"), 0);
  CHECK(number(root, "http", "connections") >= 2);
  CHECK_INT(number(root, "limiter", "wait_ms"), 600);
  CHECK_INT(number(root, "limiter", "waiting"), 1);
  CHECK_INT(number(root, "sample_slots", "held"), 1);
  client = json_array_get(json_object_get(root, "trainings"), 0);
  CHECK_INT(number(client, "queued", NULL), 2);
  CHECK_INT(number(client, "pending", NULL), 2);
  CHECK_STR(element(client, "operations", 0),
            "optim_step: waits for the server's answer, attempt 1, since "
            "400 ms");
  client = json_array_get(json_object_get(root, "samplings"), 0);
  CHECK_STR(element(client, "operations", 0),
            "sample: waits for the end of a back-off, in 600 ms, with 0 ahead "
            "of it, since 400 ms");
  CHECK_STR(element(root, "requests", 0),
            "healthz: waits for the server's answer, attempt 1, since 400 ms");
  json_decref(root);
  free(dumped.text);
  close_all(&script, outcomes);
}

TEST(dump_as_text_is_made_of_lines) {
  dumped_t dumped = {NULL, 0, NULL};
  outcome_t outcomes[4];
  script_t script;

  open_secret(&script);
  start_all(&script, outcomes);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, on_dump, &dumped),
            TNK_OK);
  CHECK(strncmp(dumped.text, "tnk ", 4) == 0);
  CHECK(strstr(dumped.text, "\napi_key: tml-***\n") != NULL);
  CHECK(strstr(dumped.text, "\nsession:\n  state: ready\n  id: session-0\n"
                            "  heartbeat_age_ms: 400\n") != NULL);
  CHECK(strstr(dumped.text, "\n      - optim_step: waits for its turn behind "
                            "1 operation, since 400 ms; ") != NULL);
  free(dumped.text);
  close_all(&script, outcomes);
}

TEST(dump_of_a_service_that_has_done_nothing) {
  dumped_t dumped = {NULL, 0, NULL};
  script_t script;

  script_open(&script);
  CHECK_INT(tnk_service_dump(NULL, TNK_DUMP_TEXT, on_dump, &dumped),
            TNK_EINVAL);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, NULL, NULL),
            TNK_EINVAL);
  CHECK_INT(
      tnk_service_dump(script.service, (tnk_dump_format_t)7, on_dump, &dumped),
      TNK_EINVAL);
  CHECK_INT(dumped.n, 0);
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, on_dump, &dumped),
            TNK_OK);
  CHECK(strstr(dumped.text, "\nsession:\n  state: not begun\n") != NULL);
  free(dumped.text);
  script_close(&script);
}

TEST(S3_26a_dump_without_memory) {
  static const tnk_dump_format_t formats[] = {TNK_DUMP_TEXT, TNK_DUMP_JSON};
  script_t script;

  script_open_train(&script);
  for (int i = 0; i < 2; i++) {
    int err = TNK_ENOMEM;
    for (long n = 0; err != TNK_OK; n++) {
      dumped_t dumped = {NULL, 0, NULL};
      CHECK(n < 100);
      test_alloc_fail_at(n);
      err = tnk_service_dump(script.service, formats[i], on_dump, &dumped);
      CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
      CHECK_INT(dumped.n, err == TNK_OK);
      test_alloc_fail_at(-1);
      free(dumped.text);
    }
  }
  script_close(&script);
}

TEST(dump_may_be_followed_by_the_end) {
  dumped_t dumped = {NULL, 0, NULL};
  outcome_t outcomes[4];
  script_t script;

  open_secret(&script);
  start_all(&script, outcomes);
  dumped.to_close = script.service;
  CHECK_INT(tnk_service_dump(script.service, TNK_DUMP_TEXT, on_dump, &dumped),
            TNK_OK);
  free(dumped.text);
  for (int i = 0; i < 4; i++)
    outcome_fails(&script, &outcomes[i], TNK_ECLOSED);
  outcome_drop_all(outcomes, 4);
  mock_close(script.mock);
  uv_run(&script.uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&script.uv), 0);
  heard_close(&script.heard);
  free(script.sent);
}
