#include <tnk/script.h>

enum { GROUP = 8 };

int main(void) {
  const int32_t ids[] = {'O', 'n', 'c', 'e'};
  const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = 4};
  tnk_sampling_options_t from = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);
  tnk_promise_t *group[GROUP];
  size_t n_done = 0;

  from.base_model = "tnk/byte-lm";
  tnk_sampling_t *sampler =
      tnk_must_sampling(tnk_service_create_sampling(service, &from));
  params.max_tokens = 16;
  for (int i = 0; i < GROUP; i++) {
    params.seed = i + 1; /* The same seed draws the same tokens. */
    group[i] = tnk_sampling_sample(sampler, &prompt, &params, NULL);
  }
  /* Six of eight are enough. The other samples are canceled. */
  tnk_promise_t *enough = tnk_must_keep(tnk_quorum(group, GROUP, 6));
  for (size_t i = 0; i < GROUP; i++) {
    tnk_promise_t *sample = tnk_promise_child(enough, i);
    size_t n;
    if (tnk_promise_status(sample) != TNK_OK)
      continue;
    const tnk_samples_t *samples = tnk_promise_samples(sample);
    const float *logprobs = tnk_samples_logprobs(samples, 0, &n);
    double sum = 0;
    for (size_t t = 0; logprobs != NULL && t < n; t++)
      sum += logprobs[t];
    printf("sample %zu: %zu tokens, log p %.2f\n", i, n, sum);
    n_done++;
  }
  tnk_promise_unref(enough);
  return n_done >= 6 ? tnk_must_close(service) : 1;
}
