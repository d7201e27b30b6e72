/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/addon/addon.h"

/* ---- Inputs ---- */

static int read_chunk(call_t *call, napi_value value, tnk_chunk_t *out) {
  static const char *const formats[] = {"", "png", "jpeg", NULL};
  static const field_t fields[] = {
      FIELD(tnk_chunk_t, location, "location", FIELD_TEXT),
      FIELD_NAMED(tnk_chunk_t, format, "format", formats),
      FIELD(tnk_chunk_t, expected_tokens, "expectedTokens", FIELD_I32),
  };
  napi_env env = call->env;
  napi_value member = NULL;
  const void *data = NULL;

  memset(out, 0, sizeof(*out));
  if (!read_fields(env, value, fields, COUNT(fields), out, &call->scratch))
    return 0;
  if (get_property(env, value, "tokens", &member)) {
    if (!read_array(env, member, napi_int32_array, "tokens", &data,
                    &out->n_tokens))
      return 0;
    out->tokens = data;
    return 1;
  }
  out->kind = TNK_CHUNK_IMAGE_POINTER;
  if (out->location != NULL)
    return 1;
  int is_image = get_property(env, value, "image", &member);
  out->kind = is_image ? TNK_CHUNK_IMAGE : TNK_CHUNK_DMEL;
  if (!is_image && !get_property(env, value, "dmel", &member)) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE",
                          "a chunk needs tokens, image, location or dmel");
    return 0;
  }
  return read_array(env, member, napi_uint8_array, is_image ? "image" : "dmel",
                    &out->bytes, &out->n_bytes);
}

int read_model_input(call_t *call, napi_value value, tnk_model_input_t *out) {
  bool is_array = false;
  uint32_t n = 0;
  const void *data = NULL;

  napi_is_array(call->env, value, &is_array);
  if (!is_array) {
    if (!read_array(call->env, value, napi_int32_array, "tokens", &data,
                    &out->n_tokens))
      return 0;
    out->tokens = data;
    return 1;
  }
  napi_get_array_length(call->env, value, &n);
  tnk_chunk_t *chunks = call_alloc(call, n * sizeof(*chunks));
  if (chunks == NULL)
    return 0;
  for (uint32_t i = 0; i < n; i++) {
    napi_value item = NULL;
    napi_get_element(call->env, value, i, &item);
    if (!read_chunk(call, item, &chunks[i]))
      return 0;
  }
  out->chunks = chunks;
  out->n_chunks = n;
  return 1;
}

static const field_t param_fields[] = {
    FIELD(tnk_sampling_params_t, max_tokens, "maxTokens", FIELD_I32),
    FIELD(tnk_sampling_params_t, top_k, "topK", FIELD_I32),
    FIELD(tnk_sampling_params_t, seed, "seed", FIELD_I64),
    FIELD(tnk_sampling_params_t, temperature, "temperature", FIELD_DOUBLE),
    FIELD(tnk_sampling_params_t, top_p, "topP", FIELD_DOUBLE),
    FIELD(tnk_sampling_params_t, stop_texts, "stop", FIELD_TEXTS),
    FIELD(tnk_sampling_params_t, stop_tokens, "stopTokens", FIELD_I32S),
};

/* ---- Results ---- */

static napi_value make_topk(addon_t *addon, tnk_promise_t *promise,
                            const tnk_topk_t *topk) {
  napi_value object = NULL;
  size_t n = (size_t)topk->k * topk->length;

  napi_create_object(addon->env, &object);
  set_number(addon->env, object, "k", topk->k);
  napi_set_named_property(
      addon->env, object, "tokens",
      make_view(addon, promise, napi_int32_array, topk->ids, n));
  napi_set_named_property(
      addon->env, object, "logprobs",
      make_view(addon, promise, napi_float32_array, topk->logprobs, n));
  return object;
}

static napi_value make_sequence(addon_t *addon, tnk_promise_t *promise,
                                const tnk_samples_t *samples, size_t index) {
  napi_env env = addon->env;
  napi_value sequence = NULL;
  size_t n = 0;

  napi_create_object(env, &sequence);
  const int32_t *tokens = tnk_samples_tokens(samples, index, &n);
  napi_set_named_property(
      env, sequence, "tokens",
      make_view(addon, promise, napi_int32_array, tokens, n));
  const float *logprobs = tnk_samples_logprobs(samples, index, &n);
  if (logprobs != NULL)
    napi_set_named_property(
        env, sequence, "logprobs",
        make_view(addon, promise, napi_float32_array, logprobs, n));
  set_text(env, sequence, "stopReason",
           tnk_samples_stop_reason(samples, index) == TNK_STOP_LENGTH ? "length"
                                                                      : "stop");
  set_text(env, sequence, "id", tnk_samples_sequence_id(samples, index));
  const tnk_topk_t *topk = tnk_samples_topk(samples, index);
  if (topk != NULL)
    napi_set_named_property(env, sequence, "topk",
                            make_topk(addon, promise, topk));
  return sequence;
}

static napi_value convert_samples(addon_t *addon, object_t *owner,
                                  tnk_promise_t *promise) {
  napi_env env = addon->env;
  const tnk_samples_t *samples = tnk_promise_samples(promise);
  napi_value result = NULL, sequences = NULL;
  size_t n = 0;

  (void)owner;
  napi_create_object(env, &result);
  napi_create_array(env, &sequences);
  for (size_t i = 0; i < tnk_samples_count(samples); i++)
    napi_set_element(env, sequences, (uint32_t)i,
                     make_sequence(addon, promise, samples, i));
  napi_set_named_property(env, result, "sequences", sequences);
  const float *logprobs = tnk_samples_prompt_logprobs(samples, &n);
  if (logprobs != NULL)
    napi_set_named_property(
        env, result, "promptLogprobs",
        make_view(addon, promise, napi_float32_array, logprobs, n));
  const tnk_topk_t *topk = tnk_samples_prompt_topk(samples);
  if (topk != NULL)
    napi_set_named_property(env, result, "promptTopk",
                            make_topk(addon, promise, topk));
  int32_t hits = tnk_samples_cache_hit_tokens(samples);
  if (hits >= 0)
    set_number(env, result, "cacheHitTokens", hits);
  return result;
}

static napi_value convert_logprobs(addon_t *addon, object_t *owner,
                                   tnk_promise_t *promise) {
  size_t n = 0;
  const float *logprobs = tnk_promise_logprobs(promise, &n);

  (void)owner;
  return make_view(addon, promise, napi_float32_array, logprobs, n);
}

/* ---- Operations ---- */

/* sample(sampling, prompt, options, control) */
static tnk_promise_t *sample(call_t *call) {
#define OPTION(member, name, type)                                             \
  FIELD(tnk_sample_options_t, member, name, type)
  static const field_t fields[] = {
      OPTION(n_samples, "numSamples", FIELD_U32),
      OPTION(prompt_logprobs, "promptLogprobs", FIELD_CHOICE),
      OPTION(topk_prompt_logprobs, "topkPromptLogprobs", FIELD_U32),
      OPTION(topk_sample_logprobs, "topkSampleLogprobs", FIELD_U32),
      OPTION(prompt_logprobs_last_n, "promptLogprobsLastN", FIELD_U32),
  };
#undef OPTION
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};
  if (!read_model_input(call, call->args[1], &prompt) ||
      !read_options(call, 2, param_fields, COUNT(param_fields), &params) ||
      !read_options(call, 2, fields, COUNT(fields), &options))
    return NULL;
  return tnk_sampling_sample(call->object->handle, &prompt, &params, &options);
}

/* A stream, until its promise has settled. */
typedef struct {
  addon_t *addon;
  napi_ref on_token;
} stream_t;

static int on_token(const tnk_stream_token_t *token, void *user) {
  stream_t *stream = user;
  napi_env env = stream->addon->env;
  napi_value function = NULL, result = NULL;
  bool stops = true;
  scope_t scope;

  if (!scope_enter(stream->addon, &scope))
    return 1;
  napi_value args[] = {
      make_number(env, token->token), make_number(env, token->index),
      make_number(env, (double)token->logprob), make_text(env, token->text)};
  if (napi_get_reference_value(env, stream->on_token, &function) == napi_ok &&
      napi_call_function(env, make_undefined(env), function, COUNT(args), args,
                         &result) == napi_ok)
    napi_get_value_bool(env, result, &stops);
  scope_leave(stream->addon, &scope);
  return stops;
}

static void stream_end(void *user) {
  stream_t *stream = user;

  stream->addon->counts.n_streams--;
  napi_delete_reference(stream->addon->env, stream->on_token);
  addon_unref(stream->addon);
  free(stream);
}

/* stream(sampling, prompt, options, control, onToken). onToken(token, index,
 * logprob, text) returns whether to stop. */
static tnk_promise_t *start_stream(call_t *call) {
  static const field_t field =
      FIELD(tnk_sample_stream_options_t, silence_ms, "silenceMs", FIELD_U64);
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};

  if (!read_model_input(call, call->args[1], &prompt) ||
      !read_options(call, 2, param_fields, COUNT(param_fields), &params) ||
      !read_options(call, 2, &field, 1, &options))
    return NULL;
  stream_t *stream = calloc(1, sizeof(*stream));
  if (stream == NULL)
    return throw_error(call->addon, TNK_ENOMEM, NULL), NULL;
  stream->addon = call->addon;
  call->addon->n_refs++;
  call->addon->counts.n_streams++;
  napi_create_reference(call->env, call->args[4], 1, &stream->on_token);
  options.on_token = on_token;
  options.user = stream;
  call->end = stream_end;
  call->user = stream;
  return tnk_sampling_sample_stream(call->object->handle, &prompt, &params,
                                    &options);
}

/* computeLogprobs(sampling, prompt, options, control) */
static tnk_promise_t *compute_logprobs(call_t *call) {
  static const field_t field =
      FIELD(tnk_logprobs_options_t, last_n, "lastN", FIELD_U32);
  tnk_logprobs_options_t options = TNK_LOGPROBS_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};

  if (!read_model_input(call, call->args[1], &prompt) ||
      !read_options(call, 2, &field, 1, &options))
    return NULL;
  return tnk_sampling_compute_logprobs(call->object->handle, &prompt, &options);
}

/* cloneSampling(sampling, options, control) */
static tnk_promise_t *clone(call_t *call) {
  return tnk_sampling_clone(call->object->handle);
}

/* samplingInfo(sampling): {id, baseModel, exported, totals} */
static napi_value js_sampling_info(napi_env env, napi_callback_info info) {
  tnk_totals_t totals = TNK_TOTALS_INIT;
  napi_value object = NULL;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SAMPLING))
    return NULL;
  tnk_sampling_t *sampling = call.object->handle;
  napi_create_object(env, &object);
  set_text(env, object, "id", tnk_sampling_id(sampling));
  set_text(env, object, "baseModel", tnk_sampling_base_model(sampling));
  set_text(env, object, "exported", tnk_sampling_export(sampling));
  tnk_sampling_totals(&totals, sampling);
  napi_set_named_property(env, object, "totals", make_totals(env, &totals));
  return object;
}

const function_t sampling_functions[] = {
    {"samplingInfo", js_sampling_info},
    {NULL, NULL},
};

const operation_t sampling_operations[] = {
    {"stream", OBJECT_SAMPLING, 1, start_stream, convert_samples},
    {"sample", OBJECT_SAMPLING, 1, sample, convert_samples},
    {"computeLogprobs", OBJECT_SAMPLING, 1, compute_logprobs, convert_logprobs},
    {"cloneSampling", OBJECT_SAMPLING, 0, clone, convert_sampling},
    {NULL, 0, 0, NULL, NULL},
};
