/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

/* Samples whose completions are told together by the local server. */

static const tnk_pair_t batched[] = {{"sample_use_retrieve_futures", "true"}};

static void open_batched(e2e_t *e2e) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.flags = batched;
  options.n_flags = 1;
  e2e_open(e2e, options);
  e2e_train(e2e, 2);
}

static size_t count(const e2e_t *e2e, const char *call) {
  size_t n = 0;

  for (size_t i = 0; i < e2e->n_seen; i++)
    n += strcmp(e2e->seen[i].call, call) == 0;
  return n;
}

/* Turn the loop until the server has been asked n times. */
static void await_calls(e2e_t *e2e, const char *call, size_t n) {
  while (count(e2e, call) < n)
    uv_run(&e2e->uv, UV_RUN_ONCE);
}

TEST_LIMIT(P8_6_batched_and_direct_polls_give_the_same_tokens, 60) {
  enum { N = 8 };
  tnk_promise_t *batch[N];
  size_t n;
  e2e_t e2e;
  e2e_t direct;

  open_batched(&e2e);
  e2e_open(&direct, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&direct, 2);
  tnk_sampling_t *sampling = e2e_snapshot(&e2e);
  tnk_sampling_t *other = e2e_snapshot(&direct);
  for (int i = 0; i < N; i++)
    batch[i] = e2e_sample(sampling, 12, i, NULL);
  for (int i = 0; i < N; i++) {
    tnk_promise_t *one = e2e_ok(e2e_sample(other, 12, i, NULL));
    e2e_ok(batch[i]);
    CHECK_MEM(tnk_samples_tokens(tnk_promise_samples(batch[i]), 0, &n),
              12 * sizeof(int32_t),
              tnk_samples_tokens(tnk_promise_samples(one), 0, &n),
              12 * sizeof(int32_t));
    tnk_promise_unref(one);
    tnk_promise_unref(batch[i]);
  }
  CHECK(count(&e2e, "retrieve_futures") > 0);
  CHECK_INT(count(&direct, "retrieve_futures"), 0);
  e2e_close(&direct);
  e2e_close(&e2e);
}

TEST_LIMIT(P8_6_two_thousand_samples_without_a_held_poll_each, 120) {
  enum { N = 2000 };
  e2e_tally_t tally = {0};
  tnk_sampling_t *sampling;
  tnk_stats_t stats = TNK_STATS_INIT;
  e2e_t e2e;

  open_batched(&e2e);
  sampling = e2e_snapshot(&e2e);
  for (int i = 0; i < N; i++)
    tnk_then(e2e_sample(sampling, 2, i, NULL), e2e_tally, &tally);
  e2e_until_settled(&e2e, &tally, N);
  CHECK_INT(tally.n_failed, 0);
  tnk_service_stats(&stats, e2e.service);
  CHECK_INT(stats.n_pending, 0);
  /* Submissions, fetches, one batched poll, training and control. */
  CHECK(stats.max_connections <= 64 + 64 + 1 + 16 + 4);
  /* What has been received is reported, also the last of it. */
  await_calls(&e2e, "retrieve_futures", count(&e2e, "retrieve_futures") + 1);
  e2e_close(&e2e);
}

TEST_LIMIT(P8_7_a_canceled_sample_ends_on_the_server, 60) {
  tnk_sampling_t *sampling;
  tnk_promise_t *promise;
  e2e_t e2e;

  open_batched(&e2e);
  sampling = e2e_snapshot(&e2e);
  promise = e2e_sample(sampling, 4000, 1, NULL);
  await_calls(&e2e, "retrieve_futures", 1);
  tnk_promise_cancel(promise);
  CHECK_INT(tnk_wait(promise), TNK_ECANCELED);
  tnk_promise_unref(promise);
  await_calls(&e2e, "cancel_future", 1);
  e2e_done(e2e_sample(sampling, 2, 2, NULL));
  e2e_close(&e2e);
}

/* The server loses the call in the middle: those who wait poll for themselves.
 */
TEST_LIMIT(P8_6_a_fall_back_in_the_middle, 60) {
  enum { N = 40 };
  e2e_tally_t tally = {0};
  tnk_sampling_t *sampling;
  size_t n_before;
  e2e_t e2e;

  open_batched(&e2e);
  sampling = e2e_snapshot(&e2e);
  for (int i = 0; i < N; i++)
    tnk_then(e2e_sample(sampling, 64, i, NULL), e2e_tally, &tally);
  e2e_until_settled(&e2e, &tally, 3);
  e2e_faults(&e2e, "404/retrieve_futures");
  e2e_until_settled(&e2e, &tally, N);
  CHECK_INT(tally.n_failed, 0);
  n_before = count(&e2e, "retrieve_futures");
  e2e_done(e2e_sample(sampling, 2, 1, NULL));
  CHECK(count(&e2e, "retrieve_futures") <= n_before + 1);
  e2e_close(&e2e);
}
