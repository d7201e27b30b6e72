/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

#include <math.h>

static const tnk_sample_options_t with_prompt = {
    .size = sizeof(tnk_sample_options_t), .prompt_logprobs = TNK_YES};

/* What forward says of prompt and sample must be what sampling said. */
TEST_LIMIT(e2e_sampled_logprobs_are_those_of_forward, 60) {
  int32_t tokens[12] = {'t', 'h', 'e', ' '};
  int64_t targets[12];
  tnk_chunk_t chunk = tnk_chunk_text(tokens, 11);
  tnk_loss_input_t input = {"target_tokens", tnk_tensor_i64(targets, 11)};
  tnk_datum_t datum = {.input = {.chunks = &chunk, .n_chunks = 1}};
  tnk_promise_t *sampled;
  tnk_promise_t *forward;
  const tnk_tensor_t *logprobs;
  const float *values;
  size_t n;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  e2e_done(e2e_pass(&e2e, 0));
  e2e_done(e2e_step(&e2e));
  sampled = e2e_ok(e2e_sample(e2e_snapshot(&e2e), 8, 5, &with_prompt));
  memcpy(tokens + 4, tnk_samples_tokens(tnk_promise_samples(sampled), 0, &n),
         8 * sizeof(*tokens));
  CHECK_INT(n, 8);
  for (size_t i = 0; i < 11; i++)
    targets[i] = tokens[i + 1];
  datum.loss_inputs = &input;
  datum.n_loss_inputs = 1;
  forward = e2e_ok(tnk_training_forward(e2e.training, &datum, 1, NULL));
  logprobs = tnk_pass_tensor(tnk_promise_pass(forward), 0, "logprobs");
  values = logprobs->data;
  for (size_t i = 0; i < 8; i++)
    CHECK(values[i + 3] ==
          tnk_samples_logprobs(tnk_promise_samples(sampled), 0, &n)[i]);
  for (size_t i = 1; i < 4; i++)
    CHECK(values[i - 1] ==
          tnk_samples_prompt_logprobs(tnk_promise_samples(sampled), &n)[i]);
  tnk_promise_unref(sampled);
  tnk_promise_unref(forward);
  e2e_close(&e2e);
}

TEST_LIMIT(e2e_an_old_sampler_keeps_its_weights, 60) {
  tnk_sampling_t *old;
  tnk_promise_t *before;
  tnk_promise_t *after;
  const float *logprobs;
  const float *again;
  size_t n;
  size_t m;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  old = e2e_snapshot(&e2e);
  before = e2e_ok(e2e_sample(old, 16, 3, &with_prompt));
  for (int i = 0; i < 5; i++) {
    e2e_done(e2e_pass(&e2e, 0));
    e2e_done(e2e_step(&e2e));
  }
  after = e2e_ok(e2e_sample(old, 16, 3, &with_prompt));
  logprobs = tnk_samples_logprobs(tnk_promise_samples(before), 0, &n);
  again = tnk_samples_logprobs(tnk_promise_samples(after), 0, &m);
  CHECK_MEM(again, m * sizeof(float), logprobs, n * sizeof(float));
  tnk_promise_unref(after);
  after = e2e_ok(e2e_sample(e2e_snapshot(&e2e), 16, 3, &with_prompt));
  CHECK(tnk_samples_logprobs(tnk_promise_samples(after), 0, &n)[0] !=
        tnk_samples_logprobs(tnk_promise_samples(before), 0, &n)[0]);
  tnk_promise_unref(before);
  tnk_promise_unref(after);
  e2e_close(&e2e);
}

/* ---- Thousands in flight ---- */

TEST_LIMIT(S3_11_two_thousand_samples_in_flight, 120) {
  enum { N = 2000 };
  e2e_tally_t tally = {0};
  tnk_stats_t stats = TNK_STATS_INIT;
  tnk_sampling_t *sampling;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  sampling = e2e_snapshot(&e2e);
  for (int i = 0; i < N; i++)
    tnk_then(e2e_sample(sampling, 2, i, &with_prompt), e2e_tally, &tally);
  tnk_service_stats(&stats, e2e.service);
  CHECK_INT(stats.n_pending, N);
  e2e_until_settled(&e2e, &tally, N);
  CHECK_INT(tally.n_failed, 0);
  tnk_service_stats(&stats, e2e.service);
  CHECK_INT(stats.n_pending, 0);
  CHECK(stats.max_connections <= 2048 + 64 + 16 + 4);
  CHECK_INT(stats.n_late_events, 0);
  e2e_close(&e2e);
}
