/* SPDX-License-Identifier: MIT */
#include "gateway/reply.h"

#include "gateway/stop.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

/* ---- Prompts ---- */

size_t tnk__gw_n_prompts(const tnk__gw_job_t *job) {
  return job->ends.len > 0 ? job->ends.len / sizeof(size_t) : 1;
}

const int32_t *tnk__gw_prompt_at(const tnk__gw_job_t *job, size_t i,
                                 size_t *n) {
  const int32_t *ids = (const int32_t *)(const void *)job->ids.data;
  const size_t *ends = (const size_t *)(const void *)job->ends.data;
  size_t begin = job->ends.len > 0 && i > 0 ? ends[i - 1] : 0;

  *n = (job->ends.len > 0 ? ends[i] : job->ids.len / sizeof(*ids)) - begin;
  return ids != NULL ? ids + begin : NULL;
}

/* ---- Samples ---- */

int32_t tnk__gw_max_tokens(const tnk__gw_job_t *job) {
  return job->ask.max_tokens != TNK_ABSENT ? (int32_t)job->ask.max_tokens
                                           : job->gateway->max_tokens;
}

static tnk_promise_t *draw_one(const tnk__gw_job_t *job, size_t i,
                               const tnk_sampling_params_t *params,
                               const tnk_sample_options_t *options) {
  size_t n;
  const int32_t *ids = tnk__gw_prompt_at(job, i, &n);
  const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = n};

  return tnk_sampling_sample(job->sampler->sampling, &prompt, params, options);
}

/* Returns NULL without memory, or if the service is closed. */
static tnk_promise_t *draw_all(const tnk__gw_job_t *job,
                               const tnk_sampling_params_t *params,
                               const tnk_sample_options_t *options) {
  size_t n = tnk__gw_n_prompts(job);
  tnk_promise_t **parts;
  tnk_promise_t *all;

  if (n == 1)
    return draw_one(job, 0, params, options);
  parts = tnk__alloc_array(&job->gateway->alloc, n, sizeof(tnk_promise_t *));
  if (parts == NULL)
    return NULL;
  for (size_t i = 0; i < n; i++)
    parts[i] = draw_one(job, i, params, options);
  all = tnk_all(parts, n);
  tnk__free(&job->gateway->alloc, parts);
  return all;
}

/* The operations of the service are below the span of the request. */
static tnk_promise_t *draw_below_span(const tnk__gw_job_t *job,
                                      const tnk_sampling_params_t *params,
                                      const tnk_sample_options_t *options) {
  tnk_promise_t *promise;

  tnk_otlp_set_parent(job->gateway->otlp, &job->span);
  promise = draw_all(job, params, options);
  tnk_otlp_set_parent(job->gateway->otlp, NULL);
  return promise;
}

int tnk__gw_draw(tnk__gw_job_t *job, tnk_promise_cb done,
                 tnk__gw_fault_t *fault) {
  const tnk__gw_ask_t *ask = &job->ask;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk__gw_stops_t stops;

  params.max_tokens = tnk__gw_max_tokens(job);
  params.top_k = (int32_t)ask->top_k;
  params.seed = ask->seed;
  /* The same seed would sample the same tokens again. */
  if (ask->seed != TNK_ABSENT)
    params.seed = ask->seed > 0 ? ask->seed - (int64_t)job->n_attempts
                                : ask->seed + (int64_t)job->n_attempts;
  params.temperature = ask->temperature;
  params.top_p = ask->top_p;
  tnk__gw_stops_find(job, &stops);
  params.stop_tokens = stops.n_ids > 0 ? stops.ids : NULL;
  params.n_stop_tokens = stops.n_ids;
  params.stop_texts = stops.n_texts > 0 ? stops.texts : NULL;
  params.n_stop_texts = stops.n_texts;
  options.n_samples = (uint32_t)ask->n;
  options.topk_sample_logprobs = (uint32_t)ask->n_top;
  if (ask->echo && ask->with_logprobs) {
    options.prompt_logprobs = TNK_YES;
    options.topk_prompt_logprobs = (uint32_t)ask->n_top;
  }
  tnk_promise_unref(job->promise);
  job->n_attempts++;
  job->promise = job->gateway->otlp == NULL
                     ? draw_all(job, &params, &options)
                     : draw_below_span(job, &params, &options);
  if (tnk_then(tnk_promise_ref(job->promise), done, job) == TNK_OK)
    return 0;
  return tnk__gw_fault(fault, 503, NULL, "the service is closed");
}

tnk_promise_t *tnk__gw_draw_at(const tnk__gw_job_t *job, size_t i) {
  return tnk__gw_n_prompts(job) > 1 ? tnk_promise_child(job->promise, i)
                                    : job->promise;
}

void tnk__gw_draw_stop(const tnk__gw_job_t *job) {
  for (size_t i = 0; i < tnk__gw_n_prompts(job); i++)
    tnk_promise_cancel(tnk__gw_draw_at(job, i));
}
