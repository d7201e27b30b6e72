/* SPDX-License-Identifier: MIT */
#include <sys/wait.h>
#include <unistd.h>

#include "task/script.h"

/*
 * What a user is told without asking: clients that do not move, queues that
 * grow, sessions that end; and what a forked child is told.
 */

typedef struct {
  int n;
  tnk_queue_state_t state;
  char client[64];
  char reason[1024];
} notices_t;

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  notices_t *notices = user;

  notices->n++;
  notices->state = state;
  snprintf(notices->client, sizeof(notices->client), "%s", client);
  snprintf(notices->reason, sizeof(notices->reason), "%s", reason);
}

static void open_watched(script_t *script, notices_t *notices) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(notices, 0, sizeof(*notices));
  options.on_queue_state = on_notice;
  options.queue_state_user = notices;
  options.poll_timeout_ms = 100000000;
  options.timeout_ms = 100000000;
  script_open_with(script, options);
}

static void hold(script_t *script, const char *path) {
  mock_on(script->mock, NULL, path, mock_hold, NULL);
}

/* ---- Stalls ---- */

TEST(watch_tells_of_a_training_client_that_does_not_move) {
  notices_t notices;
  tnk_stats_t stats = TNK_STATS_INIT;
  outcome_t outcomes[2];
  script_t script;

  open_watched(&script, &notices);
  script_train(&script);
  hold(&script, "/api/v1/optim_step");
  for (int i = 0; i < 2; i++)
    outcome_of(&outcomes[i], script_step(&script));
  script_turns(&script);
  script_advance(&script, 59000);
  CHECK_INT(notices.n, 0);
  script_advance(&script, 2000);
  CHECK_INT(notices.n, 1);
  CHECK_INT(notices.state, TNK_QUEUE_STALLED);
  CHECK_STR(notices.client, "model-0");
  CHECK_STR(notices.reason,
            "no progress for 60.0 s; the oldest of 2 operations: optim_step: "
            "waits for the server's answer, attempt 1, since 60.0 s");
  script_advance(&script, 58000);
  CHECK_INT(notices.n, 1);
  script_advance(&script, 2000);
  CHECK_INT(notices.n, 2);
  script_advance(&script, 118000);
  CHECK_INT(notices.n, 2);
  script_advance(&script, 2000);
  CHECK_INT(notices.n, 3);
  /* The first is accepted: that is progress. */
  mock_on(script.mock, NULL, "/api/v1/optim_step", script_accept, &script);
  script_accept(mock_find(script.mock, NULL, "/api/v1/optim_step", 0), &script);
  for (int i = 0; i < 2; i++) {
    outcome_ok(&script, &outcomes[i]);
    outcome_drop(&outcomes[i]);
  }
  script_advance(&script, 1000000);
  CHECK_INT(notices.n, 3);
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_stalls, 3);
  script_close(&script);
}

TEST(watch_tells_of_samples_and_of_requests) {
  notices_t notices;
  outcome_t sample;
  outcome_t health;
  script_t script;

  open_watched(&script, &notices);
  script_sampler(&script);
  hold(&script, "/api/v1/retrieve_future");
  outcome_of(&sample, script_sample(&script));
  script_turns(&script);
  script_advance(&script, 61000);
  CHECK_INT(notices.n, 1);
  CHECK_STR(notices.client, "sampler-0");
  CHECK_STR(notices.reason,
            "no progress for 60.0 s; sample: was accepted 60.0 s ago as "
            "asample:0:0; poll 1 of its result waits for the server's answer, "
            "attempt 1, since 60.0 s");
  hold(&script, "/api/v1/healthz");
  outcome_of(&health, tnk_service_health(script.service));
  script_turns(&script);
  script_advance(&script, 61000);
  CHECK_STR(notices.client, "healthz");
  tnk_service_close(script.service, script_closed, &script);
  script_end(&script);
  outcome_drop(&sample);
  outcome_drop(&health);
}

/* The observer ends what it is told of. */
typedef struct {
  script_t *script;
  int n;
} closer_t;

static void close_service(const char *client, tnk_queue_state_t state,
                          const char *reason, void *user) {
  closer_t *closer = user;

  (void)client;
  (void)state;
  (void)reason;
  closer->n++;
  tnk_service_close(closer->script->service, script_closed, closer->script);
}

TEST(watch_survives_an_observer_that_closes) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t outcomes[6];
  script_t script;
  closer_t closer = {&script, 0};

  options.on_queue_state = close_service;
  options.queue_state_user = &closer;
  options.timeout_ms = 100000000;
  script_open_with(&script, options);
  script_train(&script);
  script_sampler(&script);
  hold(&script, NULL);
  for (int i = 0; i < 6; i += 3) {
    outcome_of(&outcomes[i], script_step(&script));
    outcome_of(&outcomes[i + 1], script_sample(&script));
    outcome_of(&outcomes[i + 2], tnk_service_health(script.service));
  }
  script_turns(&script);
  script_advance(&script, 70000);
  CHECK_INT(closer.n, 1);
  script_advance(&script, 2000);
  script_end(&script);
  for (int i = 0; i < 6; i++) {
    CHECK_INT(outcomes[i].status, TNK_ECLOSED);
    outcome_drop(&outcomes[i]);
  }
}

/* ---- Depth ---- */

/* What is allocated at a time, in bytes, by an allocator of its own. */
typedef struct {
  size_t live;
  size_t max;
} ledger_t;

static void *ledger_realloc(void *ptr, size_t size, void *user) {
  ledger_t *ledger = user;
  size_t *block = ptr != NULL ? (size_t *)ptr - 2 : NULL;
  size_t old = block != NULL ? block[0] : 0;

  block = realloc(block, size + 2 * sizeof(size_t));
  CHECK(block != NULL);
  block[0] = size;
  ledger->live += size - old;
  if (ledger->live > ledger->max)
    ledger->max = ledger->live;
  return block + 2;
}

static void *ledger_malloc(size_t size, void *user) {
  return ledger_realloc(NULL, size, user);
}

static void *ledger_calloc(size_t n, size_t size, void *user) {
  return memset(ledger_malloc(n * size, user), 0, n * size);
}

static void ledger_free(void *ptr, void *user) {
  ledger_t *ledger = user;

  if (ptr == NULL)
    return;
  ledger->live -= ((size_t *)ptr)[-2];
  free((size_t *)ptr - 2);
}

enum { N_DEEP = 2500 };

TEST_LIMIT(depth_of_2500_steps_without_reading_a_result, 60) {
  static outcome_t outcomes[2 * N_DEEP + 1];
  ledger_t ledger = {0, 0};
  const tnk_allocator_t alloc = {ledger_malloc, ledger_calloc, ledger_realloc,
                                 ledger_free, &ledger};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_promise_t *save;
  char text[512];
  script_t script;
  size_t before;

  options.allocator = &alloc;
  script_open_with(&script, options);
  script_train(&script);
  hold(&script, "/api/v1/forward_backward");
  before = ledger.live;
  for (int i = 0; i < N_DEEP; i++) {
    outcome_of(&outcomes[2 * i], script_pass(&script, 1));
    outcome_of(&outcomes[2 * i + 1], script_step(&script));
  }
  /* At 1,024, 2,048 and 4,096. */
  CHECK_INT(script.n_warnings, 3);
  CHECK_STR(script.last_log,
            "model-0: 4096 operations wait for their turn, each with a copy of "
            "its data; wait for results before adding more; the first of them, "
            "forward_backward, has its turn and is about to be sent");
  save = tnk_training_save_state(script.training, "end", NULL);
  outcome_of(&outcomes[2 * N_DEEP], save);
  script_turns(&script);
  script_advance(&script, 12000);
  tnk_promise_explain(save, text, sizeof(text));
  CHECK_STR(text,
            "save_state: waits for its turn behind 5000 operations, since "
            "12.0 s; the first of them, forward_backward, waits for the "
            "server's answer, attempt 1, since 12.0 s");
  CHECK(ledger.max - before < (size_t)(2 * N_DEEP + 1) * 4096);
  mock_on(script.mock, NULL, "/api/v1/forward_backward", script_accept,
          &script);
  script_accept(mock_find(script.mock, NULL, "/api/v1/forward_backward", 0),
                &script);
  for (int i = 0; i <= 2 * N_DEEP; i++) {
    outcome_ok(&script, &outcomes[i]);
    outcome_drop(&outcomes[i]);
  }
  CHECK(ledger.live < before + 65536);
  script_close(&script);
  CHECK_INT(ledger.live, 0);
}

TEST(depth_beyond_max_pending_is_refused_in_words) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t outcomes[3];
  script_t script;

  options.max_pending = 2;
  script_open_with(&script, options);
  script_train(&script);
  for (int i = 0; i < 3; i++)
    outcome_of(&outcomes[i], script_step(&script));
  outcome_fails(&script, &outcomes[2], TNK_EFULL);
  CHECK_STR(outcomes[2].text,
            "optim_step: 2 operations are pending, and max_pending allows no "
            "more; wait for results first");
  outcome_ok(&script, &outcomes[0]);
  outcome_ok(&script, &outcomes[1]);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

/* ---- The session's end ---- */

TEST(session_lost_is_told_once_and_named_by_refusals) {
  notices_t notices;
  tnk_promise_t *promise;
  outcome_t pending;
  outcome_t refused;
  char text[512];
  script_t script;

  open_watched(&script, &notices);
  script_train(&script);
  hold(&script, "/api/v1/retrieve_future");
  promise = script_step(&script);
  outcome_of(&pending, promise);
  script_turns(&script);
  mock_json(script.mock, "POST", "/api/v1/session_heartbeat", 410,
            "{\"detail\":\"session expired\"}");
  script_advance(&script, 10000);
  script_turns(&script);
  CHECK_INT(notices.n, 1);
  CHECK_INT(notices.state, TNK_QUEUE_SESSION_LOST);
  CHECK_STR(notices.client, "session-0");
  CHECK_STR(notices.reason, "session_heartbeat: the session has ended (HTTP "
                            "410): session expired");
  CHECK_INT(script.n_warnings, 0); /* the protocol wants no warning */
  script_advance(&script, 30000);
  CHECK_INT(mock_count(script.mock, NULL, "/api/v1/session_heartbeat"), 1);
  /* What runs gets the server's answer; what it refuses names the session. */
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK_STR(text,
            "optim_step: was accepted 40.0 s ago as optim_step:1:0; poll 1 of "
            "its result waits for the server's answer, attempt 1, since 40.0 "
            "s; the server has ended session session-0");
  mock_json(script.mock, "POST", "/api/v1/optim_step", 404,
            "{\"detail\":\"no such model\"}");
  script_fails(&script, &refused, script_step(&script), TNK_ESESSION);
  CHECK_STR(refused.text, "optim_step in session-0: the session has ended "
                          "(HTTP 404): no such model; "
                          "it was not run");
  CHECK_INT(tnk_promise_error(refused.promise)->http_status, 404);
  mock_release(script.mock, 200, "{\"metrics\":{}}");
  outcome_ok(&script, &pending);
  outcome_drop(&pending);
  outcome_drop(&refused);
  script_close(&script);
}

/* A server that lost its memory, seen by the heartbeat after a good one. */
TEST(SX_3_a_session_that_the_server_has_forgotten_is_told_within_a_heartbeat) {
  notices_t notices;
  outcome_t refused;
  script_t script;

  open_watched(&script, &notices);
  script_train(&script);
  script_advance(&script, 10000);
  script_turns(&script);
  CHECK_INT(mock_count(script.mock, NULL, "/api/v1/session_heartbeat"), 1);
  mock_json(script.mock, "POST", "/api/v1/session_heartbeat", 404,
            "{\"detail\":\"no such session\"}");
  mock_json(script.mock, "POST", "/api/v1/optim_step", 404,
            "{\"detail\":\"no such model\"}");
  script_advance(&script, 10000);
  script_turns(&script);
  CHECK_INT(notices.n, 1);
  CHECK_INT(notices.state, TNK_QUEUE_SESSION_LOST);
  CHECK_STR(notices.client, "session-0");
  CHECK(strstr(notices.reason, "no such session") != NULL);
  script_fails(&script, &refused, script_step(&script), TNK_ESESSION);
  CHECK(strstr(refused.text, "the session has ended") != NULL);
  script_advance(&script, 30000);
  CHECK_INT(mock_count(script.mock, NULL, "/api/v1/session_heartbeat"), 2);
  CHECK_INT(notices.n, 1);
  outcome_drop(&refused);
  script_close(&script);
}

/* It does without heartbeats, and nothing follows from that. */
TEST(SX_3_a_server_that_has_no_heartbeats_has_not_lost_the_session) {
  notices_t notices;
  outcome_t step;
  script_t script;

  open_watched(&script, &notices);
  script_train(&script);
  mock_json(script.mock, "POST", "/api/v1/session_heartbeat", 404,
            "{\"detail\":\"Not Found\"}");
  for (int i = 0; i < 6; i++) {
    script_advance(&script, 10000);
    script_turns(&script);
  }
  CHECK_INT(notices.n, 0);
  script_ok(&script, &step, script_step(&script));
  outcome_drop(&step);
  script_close(&script);
}

/* ---- Counters ---- */

TEST(stats_count_retries_by_cause) {
  static const char step[] = "/api/v1/optim_step";
  tnk_stats_t stats = TNK_STATS_INIT;
  outcome_t outcome;
  script_t script;

  script_open_train(&script);
  mock_json_once(script.mock, "POST", step, 503, "{}");
  mock_json_once(script.mock, "POST", step, 500, "{}");
  mock_json_once(script.mock, "POST", step, 429, "{}");
  mock_json_once(script.mock, "POST", step, 402, "{}");
  mock_json_once(script.mock, "POST", step, 408, "{}");
  /* The first time it is the connection that was kept: sent once more, which
   * counts as a repeat like any. */
  mock_once(script.mock, "POST", step, mock_reset, NULL);
  mock_once(script.mock, "POST", step, mock_reset, NULL);
  outcome_of(&outcome, script_step(&script));
  while (outcome.n_done == 0)
    script_advance(&script, 1000);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_retries_server, 2);
  CHECK_INT(stats.n_retries_rate, 1);
  CHECK_INT(stats.n_retries_billing, 1);
  CHECK_INT(stats.n_retries_timeout, 1);
  CHECK_INT(stats.n_retries_lost, 2);
  CHECK_INT(stats.n_retries_connect, 0);
  CHECK_INT(stats.n_retries_other, 0);
  CHECK_INT(stats.n_retries, 7);
  script_close(&script);
}

/* ---- A forked child ---- */

/* Everything a child may try; 0, or the line that went wrong. */
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition))                                                          \
      return __LINE__ % 255 + 1;                                               \
  } while (0)

static int try_in_child(script_t *script, tnk_promise_t *pending) {
  tnk_promise_t *p[] = {script_step(script), script_pass(script, 1),
                        script_sample(script),
                        tnk_service_health(script->service)};

  for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
    EXPECT(tnk_wait(p[i]) == TNK_EFORKED);
    EXPECT(strstr(tnk_promise_text(p[i]), "belongs to the parent") != NULL);
  }
  EXPECT(tnk_wait(pending) == TNK_EFORKED);
  tnk_promise_cancel(pending);
  tnk_training_close(script->training, NULL, NULL);
  tnk_sampling_close(script->sampling, NULL, NULL);
  tnk_service_close(script->service, NULL, NULL);
  EXPECT(tnk_promise_state(pending) == TNK_PENDING);
  EXPECT(!script->service->root.closing);
  return 0;
}

TEST(forked_child_is_refused_and_does_no_harm) {
  outcome_t outcome;
  tnk_promise_t *pending;
  script_t script;
  size_t n_requests;
  int status;
  pid_t child;

  script_open_train(&script);
  script_sampler(&script);
  hold(&script, "/api/v1/optim_step");
  pending = script_step(&script);
  outcome_of(&outcome, pending);
  script_turns(&script);
  n_requests = mock_n_requests(script.mock);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20); /* a hang is the failure that this is about */
    _exit(try_in_child(&script, pending));
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0);
  /* The parent has noticed nothing. */
  script_turns(&script);
  CHECK_INT(mock_n_requests(script.mock), n_requests);
  script_accept(mock_find(script.mock, NULL, "/api/v1/optim_step", 0), &script);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_close(&script);
}

/* An upload that takes minutes is no stall, and one that stops is. */
TEST(G2_an_upload_that_moves_is_no_stall) {
  enum { N_TOKENS = 3000000 };
  static int32_t tokens[N_TOKENS];
  const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = N_TOKENS};
  script_t script;
  notices_t notices;
  outcome_t outcome;
  int n_looks = 0;

  mock_only_http1("a server that reads nothing answers no PING");
  for (size_t i = 0; i < N_TOKENS; i++)
    tokens[i] = 100000 + (int32_t)(i % 1000);
  open_watched(&script, &notices);
  script_sampler(&script);
  /* What else is sent must not look like an outage: the server reads nothing.
   */
  tnk__heartbeat_stop(&script.service->session.start.heartbeat);
  tnk__call_cancel(&script.service->session.start.refresh);
  mock_set_reading(script.mock, 0);
  outcome_of(&outcome,
             tnk_sampling_sample(script.sampling, &prompt, NULL, NULL));
  while (n_looks < 6) { /* six minutes, and it moves once in each */
    mock_set_reading(script.mock, 1);
    mock_turns(script.mock, 1);
    mock_set_reading(script.mock, 0);
    for (int s = 0; s < 60; s++)
      script_advance(&script, 1000);
    n_looks++;
  }
  CHECK_INT(outcome.n_done, 0);
  CHECK_INT(notices.n, 0);
  for (int s = 0; s < 180; s++)
    script_advance(&script, 1000);
  CHECK(notices.n >= 1);
  CHECK_INT(notices.state, TNK_QUEUE_STALLED);
  mock_set_reading(script.mock, 1);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_close(&script);
}
