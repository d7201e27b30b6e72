#include "local/e2e.h"

#include <math.h>

static tnk_sampling_t *snapshot(e2e_t *e2e) {
  tnk_promise_t *promise = e2e_ok(tnk_training_save_weights_and_get_sampling(
      e2e->training, TNK_SAMPLER_SNAPSHOT, NULL));
  tnk_sampling_t *sampling = tnk_promise_sampling(promise);

  tnk_promise_unref(promise);
  return sampling;
}

static tnk_promise_t *sample(tnk_sampling_t *sampling, int32_t max_tokens,
                             int64_t seed) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  static const int32_t tokens[] = {'t', 'h', 'e', ' '};
  tnk_chunk_t chunk = tnk_chunk_text(tokens, 4);
  tnk_model_input_t prompt = {&chunk, 1};

  params.present = TNK_HAS_MAX_TOKENS | TNK_HAS_SEED;
  params.max_tokens = max_tokens;
  params.seed = seed;
  options.prompt_logprobs = TNK_YES;
  return tnk_sampling_sample(sampling, &prompt, &params, &options);
}

/* What forward says of prompt and sample must be what sampling said. */
TEST_LIMIT(e2e_sampled_logprobs_are_those_of_forward, 60) {
  int32_t tokens[12] = {'t', 'h', 'e', ' '};
  int64_t targets[12];
  tnk_chunk_t chunk = tnk_chunk_text(tokens, 11);
  tnk_loss_input_t input = {"target_tokens", tnk_tensor_i64(targets, 11)};
  tnk_datum_t datum = {.input = {&chunk, 1}};
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
  sampled = e2e_ok(sample(snapshot(&e2e), 8, 5));
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
  old = snapshot(&e2e);
  before = e2e_ok(sample(old, 16, 3));
  for (int i = 0; i < 5; i++) {
    e2e_done(e2e_pass(&e2e, 0));
    e2e_done(e2e_step(&e2e));
  }
  after = e2e_ok(sample(old, 16, 3));
  logprobs = tnk_samples_logprobs(tnk_promise_samples(before), 0, &n);
  again = tnk_samples_logprobs(tnk_promise_samples(after), 0, &m);
  CHECK_MEM(again, m * sizeof(float), logprobs, n * sizeof(float));
  tnk_promise_unref(after);
  after = e2e_ok(sample(snapshot(&e2e), 16, 3));
  CHECK(tnk_samples_logprobs(tnk_promise_samples(after), 0, &n)[0] !=
        tnk_samples_logprobs(tnk_promise_samples(before), 0, &n)[0]);
  tnk_promise_unref(before);
  tnk_promise_unref(after);
  e2e_close(&e2e);
}

/* ---- Thousands in flight ---- */

static int n_settled;
static int n_failed;

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  n_settled++;
  if (status != TNK_OK && n_failed++ == 0)
    printf("# %s\n", tnk_promise_text(promise));
}

TEST_LIMIT(S3_11_two_thousand_samples_in_flight, 120) {
  enum { N = 2000 };
  tnk_stats_t stats;
  tnk_sampling_t *sampling;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  sampling = snapshot(&e2e);
  for (int i = 0; i < N; i++)
    tnk_then(sample(sampling, 2, i), on_sample, NULL);
  tnk_service_stats(e2e.service, &stats);
  CHECK_INT(stats.n_pending, N);
  while (n_settled < N)
    uv_run(&e2e.uv, UV_RUN_ONCE);
  CHECK_INT(n_failed, 0);
  tnk_service_stats(e2e.service, &stats);
  CHECK_INT(stats.n_pending, 0);
  CHECK(stats.max_connections <= 2048 + 64 + 16 + 4);
  CHECK_INT(stats.n_late_events, 0);
  e2e_close(&e2e);
}
