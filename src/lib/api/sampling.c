/* SPDX-License-Identifier: MIT */
#include "tnk/sampling.h"

#include <stdio.h>

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/client/sample/sample.h"
#include "lib/client/sample/sampling.h"
#include "lib/wire/data/check.h"

/* One day. */
enum { MAX_TEXT = 512, MAX_SILENCE_MS = 86400000 };

static tnk_promise_t *sample(tnk_sampling_t *sampling,
                             const tnk_model_input_t *prompt,
                             const tnk_sampling_params_t *params,
                             const tnk_sample_options_t *options,
                             tnk__sample_start_t *start) {
  tnk_sampling_params_t own_params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t own_options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  err =
      TNK__LOAD(tnk_sampling_params_t, &own_params, params, text, sizeof(text));
  if (err == TNK_OK)
    err = TNK__LOAD(tnk_sample_options_t, &own_options, options, text,
                    sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_sampling(prompt, &own_params, &own_options, text,
                              sizeof(text));
  refusal = tnk__client_refuses(TNK__CLIENT(sampling),
                                tnk__sample_name(start->wants), err, text);
  if (refusal != NULL)
    return refusal;
  start->prompt = prompt;
  start->params = &own_params;
  start->options = &own_options;
  return tnk__sample_start(sampling, start);
}

tnk_promise_t *tnk_sampling_sample(tnk_sampling_t *sampling,
                                   const tnk_model_input_t *prompt,
                                   const tnk_sampling_params_t *params,
                                   const tnk_sample_options_t *options) {
  tnk__sample_start_t start = {.wants = TNK__SAMPLE_TOKENS};

  if (!TNK__HANDLE(sampling, SAMPLING))
    return NULL;
  return sample(sampling, prompt, params, options, &start);
}

tnk_promise_t *
tnk_sampling_sample_stream(tnk_sampling_t *sampling,
                           const tnk_model_input_t *prompt,
                           const tnk_sampling_params_t *params,
                           const tnk_sample_stream_options_t *options) {
  tnk_sample_stream_options_t own = TNK_SAMPLE_STREAM_OPTIONS_INIT;
  tnk__sample_start_t start = {.wants = TNK__SAMPLE_STREAM, .stream = &own};
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE(sampling, SAMPLING))
    return NULL;
  err =
      TNK__LOAD(tnk_sample_stream_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK && own.silence_ms > MAX_SILENCE_MS) {
    snprintf(text, sizeof(text), "silence_ms is more than a day");
    err = TNK_EINVAL;
  }
  refusal = tnk__client_refuses(TNK__CLIENT(sampling),
                                tnk__sample_name(start.wants), err, text);
  return refusal != NULL ? refusal
                         : sample(sampling, prompt, params, NULL, &start);
}

tnk_promise_t *
tnk_sampling_compute_logprobs(tnk_sampling_t *sampling,
                              const tnk_model_input_t *prompt,
                              const tnk_logprobs_options_t *options) {
  tnk__sample_start_t start = {.wants = TNK__SAMPLE_LOGPROBS};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t asked = TNK_SAMPLE_OPTIONS_INIT;
  tnk_logprobs_options_t own = TNK_LOGPROBS_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE(sampling, SAMPLING))
    return NULL;
  err = TNK__LOAD(tnk_logprobs_options_t, &own, options, text, sizeof(text));
  refusal = tnk__client_refuses(TNK__CLIENT(sampling),
                                tnk__sample_name(start.wants), err, text);
  if (refusal != NULL)
    return refusal;
  params.max_tokens = 1;
  asked.prompt_logprobs = TNK_YES;
  asked.prompt_logprobs_last_n = own.last_n;
  return sample(sampling, prompt, &params, &asked, &start);
}

const char *tnk_sampling_base_model(const tnk_sampling_t *sampling) {
  return TNK__HANDLE(sampling, SAMPLING) && !sampling->closing
             ? sampling->base_model
             : NULL;
}

const char *tnk_sampling_id(const tnk_sampling_t *sampling) {
  return TNK__HANDLE(sampling, SAMPLING) && !sampling->closing ? sampling->id
                                                               : NULL;
}

const char *tnk_sampling_export(tnk_sampling_t *sampling) {
  return TNK__HANDLE(sampling, SAMPLING) && !sampling->closing
             ? tnk__sampling_export(sampling)
             : NULL;
}

tnk_promise_t *tnk_sampling_clone(tnk_sampling_t *sampling) {
  static const char name[] = "clone";
  tnk__sampler_text_t sampler;
  tnk_promise_t *refusal;

  if (!TNK__HANDLE(sampling, SAMPLING))
    return NULL;
  refusal = tnk__client_refuses(TNK__CLIENT(sampling), name, TNK_OK, NULL);
  if (refusal != NULL)
    return refusal;
  sampler = tnk__sampling_sampler(sampling);
  return tnk__join_sampling(sampling->session, name, &sampler);
}

void tnk_sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb, void *user) {
  if (TNK__HANDLE(sampling, SAMPLING) && !sampling->closing &&
      !tnk__context_is_forked(sampling->session->context))
    tnk__sampling_close(sampling, cb, user);
}
