/* SPDX-License-Identifier: MIT */
/* What users are told of operations that wait at the service. */
#include "task/script.h"

static const char future_path[] = "/api/v1/retrieve_future";
static const char paused[] = "{\"queue_state\":\"paused_capacity\"}";

typedef struct {
  int n;
  char client[64];
  char reason[128];
  tnk_queue_state_t state;
  script_t *script;
  void (*act)(script_t *script);
} told_t;

static void on_state(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  told_t *told = user;

  if (state == TNK_QUEUE_STALLED)
    return; /* not the server's word; see test_watch.c */
  told->n++;
  told->state = state;
  snprintf(told->client, sizeof(told->client), "%s", client);
  snprintf(told->reason, sizeof(told->reason), "%s", reason);
  if (told->act != NULL)
    told->act(told->script);
}

static void open_told(script_t *script, told_t *told) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(told, 0, sizeof(*told));
  told->script = script;
  options.on_queue_state = on_state;
  options.queue_state_user = told;
  script_open_with(script, options);
}

/* Answer the poll that is held, or the next one, at that time after the first
 * answer; 0: at once. */
static void answer_poll(script_t *script, uint64_t at_ms, int status,
                        const char *json) {
  static uint64_t start_ms;
  uint64_t now_ms;

  while (mock_n_held(script->mock) == 0)
    script_advance(script, 100);
  now_ms = tnk__context_now_ms(&script->service->root.context);
  if (at_ms == 0)
    start_ms = now_ms;
  CHECK(start_ms + at_ms >= now_ms);
  script_advance(script, start_ms + at_ms - now_ms);
  mock_release(script->mock, status, json);
  script_turns(script);
}

/* A sample waits at the service. */
static void open_waiting(script_t *script, told_t *told, outcome_t *outcome) {
  open_told(script, told);
  script_sampler(script);
  mock_on(script->mock, "POST", future_path, mock_hold, NULL);
  outcome_of(outcome, script_sample(script));
}

/* It still does. */
static void finish(script_t *script, outcome_t *outcome) {
  tnk_sampling_close(script->sampling, NULL, NULL);
  outcome_fails(script, outcome, TNK_ECLOSED);
  outcome_drop(outcome);
  script_close(script);
}

TEST(S4_10b_the_first_report_at_once_then_one_in_60_s) {
  script_t script;
  told_t told;
  outcome_t outcome;

  open_waiting(&script, &told, &outcome);
  answer_poll(&script, 0, 408, paused);
  CHECK_INT(told.n, 1);
  CHECK_STR(told.client, "sampler-0");
  CHECK_INT(told.state, TNK_QUEUE_PAUSED_CAPACITY);
  CHECK(strstr(told.reason, "capacity") != NULL);
  CHECK_INT(script.n_warnings, 1);
  answer_poll(&script, 30000, 408, paused);
  answer_poll(&script, 59999, 408, "{\"queue_state\":\"paused_rate_limit\"}");
  CHECK_INT(told.n, 1);
  answer_poll(&script, 60000, 408,
              "{\"queue_state\":\"paused_rate_limit\","
              "\"queue_state_reason\":\"in the server's words\"}");
  CHECK_INT(told.n, 2);
  CHECK_INT(told.state, TNK_QUEUE_PAUSED_RATE_LIMIT);
  CHECK_STR(told.reason, "in the server's words");
  finish(&script, &outcome);
}

TEST(S4_10b_an_active_queue_is_no_news) {
  script_t script;
  told_t told;
  outcome_t outcome;

  open_waiting(&script, &told, &outcome);
  answer_poll(&script, 0, 408, "{\"queue_state\":\"active\"}");
  answer_poll(&script, 0, 408, "{}");
  answer_poll(&script, 0, 408, "no JSON at all");
  answer_poll(&script, 0, 200, "{\"type\":\"try_again\"}");
  CHECK_INT(told.n, 0);
  CHECK_INT(script.n_warnings, 0);
  finish(&script, &outcome);
}

TEST(S4_10b_two_clients_are_told_of_apart) {
  script_t script;
  told_t told;
  outcome_t outcomes[2];
  tnk_sampling_t *first;

  open_told(&script, &told);
  first = script_sampler(&script);
  mock_json_once(script.mock, "POST", "/api/v1/create_sampling_session", 200,
                 "{\"sampling_session_id\":\"sampler-1\"}");
  script_sampler(&script);
  mock_on(script.mock, "POST", future_path, mock_hold, NULL);
  outcome_of(&outcomes[0],
             tnk_sampling_sample(first, script_prompt(), NULL, NULL));
  answer_poll(&script, 0, 408, paused);
  CHECK_STR(told.client, "sampler-0");
  tnk_sampling_close(first, NULL, NULL);
  script_turns(&script);
  outcome_of(&outcomes[1], script_sample(&script));
  answer_poll(&script, 0, 408, paused);
  CHECK_INT(told.n, 2);
  CHECK_STR(told.client, "sampler-1");
  tnk_sampling_close(script.sampling, NULL, NULL);
  outcome_fails(&script, &outcomes[1], TNK_ECLOSED);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S4_10_training_is_told_after_15_minutes_of_one_state) {
  script_t script;
  told_t told;
  outcome_t outcome;

  open_told(&script, &told);
  script_train(&script);
  mock_on(script.mock, "POST", future_path, mock_hold, NULL);
  outcome_of(&outcome, script_step(&script));
  for (uint64_t i = 0; i < 45; i++) {
    answer_poll(&script, i * 20000, 408, paused);
    CHECK_INT(told.n, 0);
  }
  answer_poll(&script, 15 * 60 * 1000, 408, paused);
  CHECK_INT(told.n, 1);
  CHECK_STR(told.client, "model-0");
  tnk_training_close(script.training, NULL, NULL);
  outcome_fails(&script, &outcome, TNK_ECLOSED);
  outcome_drop(&outcome);
  script_close(&script);
}

static void close_client(script_t *script) {
  tnk_sampling_close(script->sampling, NULL, NULL);
}

static void close_service(script_t *script) {
  tnk_service_close(script->service, script_closed, script);
}

TEST(S4_12_the_observer_may_close_everything) {
  static void (*const acts[])(script_t *) = {close_client, close_service};

  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 2; k++) {
      script_t script;
      told_t told;
      outcome_t outcome;
      open_told(&script, &told);
      told.act = acts[i];
      script_sampler(&script);
      mock_json_once(script.mock, "POST", future_path, k ? 408 : 200,
                     k ? paused
                       : "{\"type\":\"try_again\",\"queue_state\":"
                         "\"paused_capacity\"}");
      outcome_of(&outcome, script_sample(&script));
      mock_wait_flag(script.mock, &told.n, 1);
      mock_wait_flag(script.mock, &outcome.n_done, 1);
      CHECK_INT(outcome.status, TNK_ECLOSED);
      outcome_drop(&outcome);
      if (i == 0) {
        script_close(&script);
        continue;
      }
      script_end(&script);
    }
}
