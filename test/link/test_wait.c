/* SPDX-License-Identifier: MIT */
/*
 * Somebody between the client and the server accepts more connections than it
 * serves, and says nothing; and nobody samples, whose submissions would show it
 * soon.
 */
#include "link/road.h"

enum { RESULT_MS = 12000, SLOW_MS = 30000 };

static road_t road;
/* Results are there so long after they are first asked for. */
static uint64_t ready_ms[SCRIPT_MAX_SENT];
static int n_accepted;

static uint64_t now_ms(void) {
  return test_link_clock(road.link)->fake_now;
}

static void poll_step(mock_request_t *request, void *user) {
  const char *at = strstr((const char *)request->body, "\"optim_step:");
  size_t seq;

  if (at == NULL) {
    script_result(request, user);
    return;
  }
  seq = (size_t)atol(at + strlen("\"optim_step:"));
  CHECK(seq < SCRIPT_MAX_SENT);
  if (ready_ms[seq] == 0)
    ready_ms[seq] = now_ms() + RESULT_MS;
  mock_reply_json_after(request,
                        ready_ms[seq] > now_ms() ? ready_ms[seq] - now_ms() : 0,
                        200, "{\"metrics\":{\"grad_norm\":0.5}}");
}

static void accept_step(mock_request_t *request, void *user) {
  n_accepted++;
  script_accept(request, user);
}

static void open_road(const char *words) {
  memset(ready_ms, 0, sizeof(ready_ms));
  n_accepted = 0;
  road_open(&road);
  script_train(&road.script);
  mock_on(road.script.mock, "POST", "/api/v1/optim_step", accept_step,
          &road.script);
  mock_on(road.script.mock, "POST", "/api/v1/retrieve_future", poll_step,
          &road.script);
  if (words != NULL)
    road_tell(&road, words);
}

/* The polls of two steps hold what is served when a third one is sent. Its time
 * would be over after a minute. */
TEST_LIMIT(link_let_wait_and_only_training, 60) {
  enum { N = 3 };
  outcome_t steps[N];

  mock_only_http1("over HTTP/2 there are few connections");
  open_road("limit 2 wait");
  for (int i = 0; i < N; i++)
    outcome_of(&steps[i], script_step(&road.script));
  for (int i = 0; i < N; i++)
    road_ok(&road, &steps[i], 45000);
  printf("# %d steps in %llu ms\n", N, (unsigned long long)road.n_passed);
  CHECK(road.n_passed < 45000);
  for (int i = 0; i < N; i++)
    outcome_drop(&steps[i]);
  CHECK_INT(n_accepted, N);
  road_close(&road);
}

/* The same of a question. */
TEST_LIMIT(link_let_wait_and_a_question, 60) {
  outcome_t step, question;

  mock_only_http1("over HTTP/2 there are few connections");
  open_road("limit 1 wait");
  outcome_of(&step, script_step(&road.script));
  road_run(&road, 1000);
  outcome_of(&question, tnk_service_capabilities(road.script.service));
  CHECK(road_ok(&road, &question, 30000) > 10000);
  road_ok(&road, &step, 1000);
  outcome_drop(&question);
  outcome_drop(&step);
  road_close(&road);
}

/* All but the first. */
static void accept_slowly(mock_request_t *request, void *user) {
  char text[64];

  (void)user;
  snprintf(text, sizeof(text), "{\"request_id\":\"optim_step:%lld:0\"}",
           script_number(request, "seq_id"));
  mock_reply_json_after(request, n_accepted++ > 0 ? SLOW_MS : 0, 200, text);
}

/* A server that takes its time is not taken for one that does not serve, not
 * even on a connection that is new: one that was made later is served, of a
 * heartbeat. */
TEST_LIMIT(link_a_slow_training_operation_is_waited_for, 60) {
  outcome_t steps[2];
  tnk_stats_t stats = TNK_STATS_INIT;

  open_road(NULL);
  mock_on(road.script.mock, "POST", "/api/v1/optim_step", accept_slowly, NULL);
  for (int i = 0; i < 2; i++)
    outcome_of(&steps[i], script_step(&road.script));
  for (int i = 0; i < 2; i++) {
    road_ok(&road, &steps[i], 60000);
    outcome_drop(&steps[i]);
  }
  CHECK_INT(n_accepted, 2);
  tnk_service_stats(&stats, road.script.service);
  CHECK_INT((int)stats.n_retries, 0);
  road_close(&road);
}
