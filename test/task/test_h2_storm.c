/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2: thousands of samples whose polls are held, canceled at random. A
 * canceled poll costs its neighbors nothing, and no guard against resets is
 * tripped.
 */
#include "support/mock_http2.h"
#include "task/script.h"

enum {
  N_SAMPLES = 10000,
  N_AT_ONCE = 600,
  MAX_RESETS = 200,
  RESETS_MS = 30000
};

typedef struct {
  tnk_promise_t *promise;
  int n_settled;
  int status;
} sample_t;

static sample_t samples[N_SAMPLES];
static size_t n_settled;
static uint64_t seed_state;

static uint32_t rnd(uint32_t n) {
  return (uint32_t)(test_random(&seed_state) % n);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  sample_t *sample = user;

  (void)promise;
  CHECK_INT(++sample->n_settled, 1);
  sample->status = status;
  n_settled++;
}

/* Polls are held for a while, and some of them for longer than a poll is. */
static void on_poll(mock_request_t *request, void *user) {
  (void)user;
  if (rnd(3) == 0)
    script_result(request, user);
  else
    mock_reply_json_after(request, 1 + rnd(20000), 408, "{}");
}

static void cancel_some(size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    if (samples[i].n_settled == 0 && rnd(10) == 0)
      tnk_promise_cancel(samples[i].promise);
}

static void ride(script_t *script) {
  size_t n_started = 0;
  size_t head = 0;

  for (int patience = 0; n_settled < N_SAMPLES; patience++) {
    CHECK(patience < 100000);
    for (; n_started < N_SAMPLES && n_started - n_settled < N_AT_ONCE;
         n_started++) {
      sample_t *sample = &samples[n_started];
      sample->promise = script_sample(script);
      tnk_then(tnk_promise_ref(sample->promise), on_settled, sample);
    }
    script_advance(script, rnd(400));
    cancel_some(head, n_started);
    while (head < n_started && samples[head].n_settled > 0)
      head++;
  }
}

static void run_storm(uint64_t seed) {
  size_t n_canceled = 0;
  script_t script;

  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  memset(samples, 0, sizeof(samples));
  n_settled = 0;
  seed_state = seed;
  script_open(&script);
  script_sampler(&script);
  mock_set_reset_guard(script.mock, MAX_RESETS, RESETS_MS);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", on_poll, &script);
  ride(&script);
  for (size_t i = 0; i < N_SAMPLES; i++) {
    CHECK_INT(samples[i].n_settled, 1);
    CHECK(samples[i].status == TNK_OK || samples[i].status == TNK_ECANCELED);
    n_canceled += samples[i].status == TNK_ECANCELED;
    tnk_promise_unref(samples[i].promise);
  }
  /* What the server still holds goes by the clock of the service. */
  script_advance(&script, 30000);
  printf(
      "# seed %u: %zu of %d canceled; %zu resets, at most %zu in %d s on one "
      "of %zu connections\n",
      (unsigned)seed, n_canceled, N_SAMPLES, mock_n_resets(script.mock),
      mock_most_resets(script.mock), RESETS_MS / 1000,
      mock_n_connections(script.mock));
  CHECK(n_canceled > N_SAMPLES / 10 && n_canceled < N_SAMPLES);
  CHECK_INT(mock_n_calmed(script.mock), 0);
  CHECK(mock_most_streams(script.mock) <= 100);
  script_close(&script);
}

/* One seed, or as many as TNK_TEST_SEEDS says. */
TEST_LIMIT(S1_7_storm_of_canceled_samples, 300) {
  const char *wish = getenv("TNK_TEST_SEEDS");
  const long n = wish != NULL ? strtol(wish, NULL, 10) : 1;

  for (long seed = 1; seed <= n; seed++)
    run_storm((uint64_t)seed);
}
