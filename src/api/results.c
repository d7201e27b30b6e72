/* The results of promises by type. */
#include "codec/message/results.h"
#include "task/hub/tokenizer.h"
#include "loop/promise.h"
#include "task/service/query.h"

tnk_training_t *tnk_promise_training(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_TRAINING);
}

tnk_sampling_t *tnk_promise_sampling(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_SAMPLING);
}

const tnk_pass_t *tnk_promise_pass(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_PASS);
}

const tnk_samples_t *tnk_promise_samples(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_SAMPLES);
}

const float *tnk_promise_logprobs(const tnk_promise_t *promise, size_t *n) {
  const tnk_samples_t *samples =
      tnk__promise_value(promise, TNK__RESULT_LOGPROBS);

  if (n != NULL)
    *n = samples != NULL ? samples->n_prompt_logprobs : 0;
  return samples != NULL ? samples->prompt_logprobs : NULL;
}

const tnk_metrics_t *tnk_promise_metrics(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_METRICS);
}

const char *tnk_promise_path(const tnk_promise_t *promise) {
  return tnk__promise_value(promise, TNK__RESULT_PATH);
}

const tnk_capabilities_t *
tnk_promise_capabilities(const tnk_promise_t *promise) {
  return tnk__query_value(
      tnk__promise_value(promise, TNK__RESULT_CAPABILITIES));
}

void *tnk_promise_tokenizer(const tnk_promise_t *promise) {
  return tnk__tokenizer_value(
      tnk__promise_value(promise, TNK__RESULT_TOKENIZER));
}
