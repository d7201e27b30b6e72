/* SPDX-License-Identifier: MIT */
#include "wire/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *pool_get(pool_t *pool, size_t size) {
  pool_item_t *item = calloc(1, sizeof(*item) + size);

  if (item == NULL)
    abort();
  item->next = pool->items;
  pool->items = item;
  return item->data;
}

void pool_free(pool_t *pool) {
  while (pool->items != NULL) {
    pool_item_t *item = pool->items;

    pool->items = item->next;
    free(item);
  }
}

/* ---- Single values ---- */

const char *arg_text(const json_t *args, const char *name) {
  return json_string_value(json_object_get(args, name));
}

int64_t arg_int(const json_t *args, const char *name, int64_t otherwise) {
  const json_t *value = json_object_get(args, name);

  return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

double arg_number(const json_t *args, const char *name, double otherwise) {
  const json_t *value = json_object_get(args, name);

  return json_is_number(value) ? json_number_value(value) : otherwise;
}

tnk_choice_t arg_choice(const json_t *args, const char *name) {
  const json_t *value = json_object_get(args, name);

  if (value == NULL)
    return TNK_DEFAULT;
  return json_is_true(value) ? TNK_YES : TNK_NO;
}

const tnk_pair_t *arg_pairs(pool_t *pool, const json_t *args, const char *name,
                            size_t *n) {
  json_t *object = json_object_get(args, name);
  tnk_pair_t *pairs = pool_get(pool, json_object_size(object) * sizeof(*pairs));
  const char *key;
  json_t *value;

  *n = 0;
  json_object_foreach(object, key, value) pairs[(*n)++] =
      (tnk_pair_t){key, json_string_value(value)};
  return pairs;
}

const char *const *arg_texts(pool_t *pool, const json_t *args, const char *name,
                             size_t *n) {
  const json_t *array = json_object_get(args, name);
  const char **texts;

  *n = json_array_size(array);
  texts = pool_get(pool, *n * sizeof(*texts));
  for (size_t i = 0; i < *n; i++)
    texts[i] = json_string_value(json_array_get(array, i));
  return texts;
}

const char *arg_dump(pool_t *pool, const json_t *value) {
  char *text = json_dumps(value, JSON_COMPACT);
  char *copy = pool_get(pool, strlen(text) + 1);

  memcpy(copy, text, strlen(text) + 1);
  free(text);
  return copy;
}

tnk_optimizer_t arg_optimizer(pool_t *pool, const json_t *args,
                              const char **json) {
  const json_t *optimizer = json_object_get(args, "optimizer");
  const char *type = arg_text(optimizer, "type");

  *json = NULL;
  if (type == NULL || strcmp(type, "adamw") == 0)
    return TNK_OPTIMIZER_ADAMW;
  if (strcmp(type, "dimuon") == 0)
    return TNK_OPTIMIZER_DIMUON;
  *json = arg_dump(pool, optimizer);
  return TNK_OPTIMIZER_RAW;
}

/* ---- Numbers in a row ---- */

static const int32_t *tokens_of(pool_t *pool, const json_t *array, size_t *n) {
  int32_t *tokens;

  *n = json_array_size(array);
  tokens = pool_get(pool, *n * sizeof(*tokens));
  for (size_t i = 0; i < *n; i++)
    tokens[i] = (int32_t)json_integer_value(json_array_get(array, i));
  return tokens;
}

static const int64_t *longs_of(pool_t *pool, const json_t *array, size_t *n) {
  int64_t *longs;

  *n = json_array_size(array);
  longs = pool_get(pool, *n * sizeof(*longs));
  for (size_t i = 0; i < *n; i++)
    longs[i] = json_integer_value(json_array_get(array, i));
  return longs;
}

static const float *floats_of(pool_t *pool, const json_t *array, size_t *n) {
  float *floats;

  *n = json_array_size(array);
  floats = pool_get(pool, *n * sizeof(*floats));
  for (size_t i = 0; i < *n; i++)
    floats[i] = (float)json_number_value(json_array_get(array, i));
  return floats;
}

tnk_tensor_t arg_tensor(pool_t *pool, const json_t *spec) {
  const json_t *shape = json_object_get(spec, "shape");
  const json_t *crow = json_object_get(spec, "crow");
  const json_t *longs = json_object_get(spec, "i64");
  tnk_tensor_t tensor = {.dtype = longs != NULL ? TNK_I64 : TNK_F32};
  size_t n;

  if (longs != NULL)
    tensor.data = longs_of(pool, longs, &tensor.n_values);
  else
    tensor.data =
        floats_of(pool, json_object_get(spec, "f32"), &tensor.n_values);
  tensor.n_dims = (uint32_t)json_array_size(shape);
  for (size_t i = 0; i < tensor.n_dims; i++)
    tensor.shape[i] = json_integer_value(json_array_get(shape, i));
  if (crow != NULL) {
    tensor.crow = longs_of(pool, crow, &n);
    tensor.col = longs_of(pool, json_object_get(spec, "col"), &n);
  }
  return tensor;
}

/* ---- Chunks and examples ---- */

/* Standard base64 with padding, which calls.json has no errors in. */
static const void *bytes_of(pool_t *pool, const char *text, size_t *n) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char *bytes = pool_get(pool, strlen(text));
  unsigned bits = 0;
  unsigned value = 0;

  *n = 0;
  for (; *text != '\0' && *text != '='; text++) {
    value = value << 6 | (unsigned)(strchr(digits, *text) - digits);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[(*n)++] = (unsigned char)(value >> bits);
    }
  }
  return bytes;
}

static tnk_chunk_t image_of(pool_t *pool, const json_t *spec) {
  tnk_chunk_t chunk = {.kind = TNK_CHUNK_IMAGE};

  chunk.format =
      strcmp(arg_text(spec, "format"), "png") == 0 ? TNK_PNG : TNK_JPEG;
  chunk.expected_tokens = (int32_t)arg_int(spec, "expected", -1);
  chunk.location = arg_text(spec, "location");
  if (chunk.location != NULL)
    chunk.kind = TNK_CHUNK_IMAGE_POINTER;
  else
    chunk.bytes = bytes_of(pool, arg_text(spec, "image"), &chunk.n_bytes);
  return chunk;
}

static tnk_chunk_t chunk_of(pool_t *pool, const json_t *spec) {
  const char *text = arg_text(spec, "text");
  const json_t *tokens = json_object_get(spec, "tokens");
  const int32_t *ids;
  int32_t *bytes;
  size_t n;

  if (tokens != NULL) {
    ids = tokens_of(pool, tokens, &n);
    return tnk_chunk_text(ids, n);
  }
  if (text == NULL)
    return image_of(pool, spec);
  n = strlen(text);
  bytes = pool_get(pool, n * sizeof(*bytes));
  for (size_t i = 0; i < n; i++)
    bytes[i] = (unsigned char)text[i];
  return tnk_chunk_text(bytes, n);
}

tnk_model_input_t arg_input(pool_t *pool, const json_t *chunks) {
  size_t n = json_array_size(chunks);
  tnk_chunk_t *made = pool_get(pool, n * sizeof(*made));

  for (size_t i = 0; i < n; i++)
    made[i] = chunk_of(pool, json_array_get(chunks, i));
  return (tnk_model_input_t){.chunks = made, .n_chunks = n};
}

static const tnk_span_t *spans_of(pool_t *pool, const json_t *specs,
                                  size_t *n) {
  tnk_span_t *spans;

  *n = json_array_size(specs);
  spans = pool_get(pool, *n * sizeof(*spans));
  for (size_t i = 0; i < *n; i++) {
    const json_t *spec = json_array_get(specs, i);
    const char *kind = json_string_value(json_array_get(spec, 0));

    spans[i] = (tnk_span_t){
        .kind =
            strcmp(kind, "prompt") == 0 ? TNK_SPAN_PROMPT : TNK_SPAN_SAMPLED,
        .sequence_id = json_string_value(json_array_get(spec, 1)),
        .offset = json_integer_value(json_array_get(spec, 2)),
        .length = json_integer_value(json_array_get(spec, 3)),
    };
  }
  return spans;
}

static tnk_datum_t datum_of(pool_t *pool, const json_t *spec) {
  json_t *inputs = json_object_get(spec, "inputs");
  tnk_loss_input_t *made =
      pool_get(pool, json_object_size(inputs) * sizeof(*made));
  tnk_datum_t datum = {.loss_inputs = made};
  const char *name;
  json_t *value;

  datum.input = arg_input(pool, json_object_get(spec, "chunks"));
  json_object_foreach(inputs, name, value) made[datum.n_loss_inputs++] =
      (tnk_loss_input_t){name, arg_tensor(pool, value)};
  datum.input_spans = spans_of(pool, json_object_get(spec, "input_spans"),
                               &datum.n_input_spans);
  datum.loss_input_spans = spans_of(pool, json_object_get(spec, "loss_spans"),
                                    &datum.n_loss_input_spans);
  return datum;
}

const tnk_datum_t *arg_data(pool_t *pool, const json_t *args, size_t *n) {
  const json_t *data = json_object_get(args, "data");
  size_t times = (size_t)arg_int(args, "times", 1);
  tnk_datum_t *made =
      pool_get(pool, json_array_size(data) * times * sizeof(*made));

  *n = 0;
  for (size_t i = 0; i < json_array_size(data); i++)
    for (size_t t = 0; t < times; t++)
      made[(*n)++] = datum_of(pool, json_array_get(data, i));
  return made;
}

const tnk_loss_setting_t *arg_settings(pool_t *pool, const json_t *args,
                                       size_t *n) {
  json_t *object = json_object_get(args, "settings");
  tnk_loss_setting_t *made =
      pool_get(pool, json_object_size(object) * sizeof(*made));
  const char *key;
  json_t *value;

  *n = 0;
  json_object_foreach(object, key, value) made[(*n)++] = (tnk_loss_setting_t){
      key, json_number_value(value), json_string_value(value)};
  return made;
}

/* ---- Sampling ---- */

/* A text, texts or tokens. */
static void stop_of(pool_t *pool, const json_t *params,
                    tnk_sampling_params_t *out) {
  const json_t *stop = json_object_get(params, "stop");
  const char **one;

  if (json_is_string(stop)) {
    one = pool_get(pool, sizeof(*one));
    one[0] = json_string_value(stop);
    out->stop_texts = one;
    out->n_stop_texts = 1;
  } else if (json_is_array(stop) && json_is_integer(json_array_get(stop, 0))) {
    out->stop_tokens = tokens_of(pool, stop, &out->n_stop_tokens);
  } else if (json_is_array(stop)) {
    out->stop_texts = arg_texts(pool, params, "stop", &out->n_stop_texts);
  }
}

tnk_sampling_params_t arg_params(pool_t *pool, const json_t *args) {
  const json_t *params = json_object_get(args, "params");
  tnk_sampling_params_t out = TNK_SAMPLING_PARAMS_INIT;

  out.max_tokens = (int32_t)arg_int(params, "max_tokens", TNK_ABSENT);
  out.seed = arg_int(params, "seed", TNK_ABSENT);
  out.top_k = (int32_t)arg_int(params, "top_k", TNK_ABSENT);
  out.temperature = arg_number(params, "temperature", TNK_ABSENT);
  out.top_p = arg_number(params, "top_p", TNK_ABSENT);
  stop_of(pool, params, &out);
  return out;
}

tnk_sample_options_t arg_sample_options(pool_t *pool, const json_t *args) {
  const json_t *target = json_object_get(args, "target");
  tnk_sample_options_t out = TNK_SAMPLE_OPTIONS_INIT;
  tnk_tensor_t *tensor;

  out.n_samples = (uint32_t)arg_int(args, "n", 0);
  out.prompt_logprobs = arg_choice(args, "include_prompt_logprobs");
  out.topk_prompt_logprobs = (uint32_t)arg_int(args, "topk_prompt_logprobs", 0);
  out.topk_sample_logprobs = (uint32_t)arg_int(args, "topk_sample_logprobs", 0);
  out.prompt_alt_tokens_k = (uint32_t)arg_int(args, "prompt_alt_tokens_k", 0);
  out.prompt_logprobs_last_n =
      (uint32_t)arg_int(args, "prompt_logprobs_last_n", 0);
  if (target != NULL) {
    tensor = pool_get(pool, sizeof(*tensor));
    *tensor = arg_tensor(pool, target);
    out.target_prompt_logprobs = tensor;
  }
  return out;
}
