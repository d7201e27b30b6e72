/* SPDX-License-Identifier: MIT */
/*
 * The allowance of a sample (tnk__allowance_t). Each submission takes its
 * maximum usage, except a repeat of the last one. It is held until the result,
 * the end of the sample, or the next submission.
 */
#include "lib/client/sample/sample.h"
#include "lib/wire/data/data.h"
#include "lib/wire/message/results.h"

static tnk__allowance_t *allowance_of(const tnk__sample_t *sample) {
  return &tnk__session_of(sample->job.future.call.endpoint)->limits.allowance;
}

static tnk__totals_t *totals_of(const tnk__sample_t *sample) {
  return sample->sampling != NULL ? &sample->sampling->totals : NULL;
}

/* Larger numbers are clamped; no prompt of that size can be sent. */
void tnk__sample_measure(tnk__sample_t *sample, const tnk_model_input_t *prompt,
                         const tnk_sampling_params_t *params,
                         const tnk_sample_options_t *options) {
  int is_whole;
  const uint64_t n = tnk__input_tokens(prompt, &is_whole);

  sample->n_prompt_tokens = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
  sample->is_uncounted = !is_whole || n >= UINT32_MAX;
  if (params != NULL && params->max_tokens > 0)
    sample->max_tokens = (uint32_t)params->max_tokens;
  sample->n_samples =
      options != NULL && options->n_samples > 0 ? options->n_samples : 1;
}

int tnk__sample_take(tnk__sample_t *sample, char *why, size_t size) {
  tnk__allowance_t *allowance = allowance_of(sample);
  const tnk__claim_t claim = {
      .model = sample->sampling->base_model,
      .most = {.prompt = sample->n_prompt_tokens,
               .sampled = (uint64_t)sample->max_tokens * sample->n_samples},
      .is_open = sample->max_tokens == 0 || sample->is_uncounted};
  tnk__grant_t grant;
  tnk__text_t text;

  if (sample->held.is_taken)
    return 1; /* refused temporarily, and sent once more */
  grant = tnk__allowance_take(allowance, &claim, &sample->held);
  if (grant == TNK__ALLOWANCE_GRANTED)
    return 1;
  tnk__text_init(&text, why, size);
  tnk__allowance_explain(allowance, grant, &claim, &text);
  return 0;
}

/* A prompt is prefilled once, whatever the number of sequences. */
void tnk__sample_spend(tnk__sample_t *sample, const tnk_samples_t *samples) {
  const int32_t n_cached = samples->cache_hit_tokens;
  tnk__use_t use = {.prompt = sample->n_prompt_tokens};
  size_t i;

  if (n_cached > 0)
    use.cached =
        (uint64_t)n_cached < use.prompt ? (uint64_t)n_cached : use.prompt;
  for (i = 0; i < samples->n_sequences; i++)
    use.sampled += samples->sequences[i].n_tokens;
  tnk__allowance_use(allowance_of(sample), totals_of(sample),
                     sample->sampling->base_model, &use);
  tnk__allowance_give_back(allowance_of(sample), &sample->held);
}

/* If the service reports the failure, nothing was used. */
void tnk__sample_settle(tnk__sample_t *sample, int has_failed) {
  if (!sample->held.is_taken)
    return; /* its result was counted, or it was not submitted */
  if (has_failed || tnk__job_ran(&sample->job) == TNK_RAN_NO)
    tnk__allowance_give_back(allowance_of(sample), &sample->held);
  else
    tnk__allowance_doubt(allowance_of(sample), totals_of(sample),
                         &sample->held);
}
