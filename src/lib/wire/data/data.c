#include "lib/wire/data/data.h"

#include <string.h>

#include "lib/base/options.h"
#include "lib/wire/data/dmel.h"
#include "tnk/error.h"

tnk_tensor_t tnk_tensor_i64(const int64_t *values, size_t n) {
  return (tnk_tensor_t){.dtype = TNK_I64, .data = values, .n_values = n};
}

tnk_tensor_t tnk_tensor_f32(const float *values, size_t n) {
  return (tnk_tensor_t){.dtype = TNK_F32, .data = values, .n_values = n};
}

tnk_chunk_t tnk_chunk_text(const int32_t *tokens, size_t n_tokens) {
  return (tnk_chunk_t){
      .kind = TNK_CHUNK_TEXT, .tokens = tokens, .n_tokens = n_tokens};
}

static int parse_path(tnk_path_t *out, const char *text) {
  static const char scheme[] = "tinker://";
  static const struct {
    const char *text;
    tnk_path_kind_t kind;
  } kinds[] = {{"weights", TNK_PATH_WEIGHTS},
               {"sampler_weights", TNK_PATH_SAMPLER_WEIGHTS},
               {"external_weights", TNK_PATH_EXTERNAL_WEIGHTS}};
  const char *run, *kind, *name;

  if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
    return TNK_EINVAL;
  run = text + sizeof(scheme) - 1;
  kind = strchr(run, '/');
  name = kind == NULL ? NULL : strchr(kind + 1, '/');
  /* A name with a slash would be a path of more components, and no component
   * may be empty. */
  if (name == NULL || kind == run || name[1] == '\0' ||
      strchr(name + 1, '/') != NULL)
    return TNK_EINVAL;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    size_t n = strlen(kinds[i].text);

    if ((size_t)(name - kind - 1) == n &&
        memcmp(kind + 1, kinds[i].text, n) == 0) {
      out->kind = kinds[i].kind;
      out->run = run;
      out->run_length = (size_t)(kind - run);
      out->name = name + 1;
      return TNK_OK;
    }
  }
  return TNK_EINVAL;
}

int tnk_path_parse(tnk_path_t *out, const char *text) {
  tnk_path_t own = TNK_PATH_INIT;
  int err;

  if (out == NULL || text == NULL)
    return TNK_EINVAL;
  err = parse_path(&own, text);
  return err == TNK_OK ? TNK__FILL(tnk_path_t, out, &own) : err;
}

size_t tnk__dtype_size(tnk_dtype_t dtype) {
  switch (dtype) {
  case TNK_I64:
    return sizeof(int64_t);
  case TNK_F32:
    return sizeof(float);
  case TNK_I32:
    return sizeof(int32_t);
  case TNK_F64:
    return sizeof(double);
  }
  return 0;
}

size_t tnk__dtype_wire_size(tnk_dtype_t dtype) {
  return tnk__dtype_is_int(dtype) ? sizeof(int64_t) : sizeof(float);
}

int tnk__dtype_is_int(tnk_dtype_t dtype) {
  return dtype == TNK_I64 || dtype == TNK_I32;
}

int tnk__tensor_elements(const tnk_tensor_t *tensor, size_t *out) {
  size_t n = 1;
  int zero = 0;

  if (tensor->n_dims == 0) {
    *out = tensor->n_values;
    return 1;
  }
  for (uint32_t i = 0; i < tensor->n_dims; i++) {
    if (tensor->shape[i] < 0)
      return 0;
    /* Look for a zero first, because the other dimensions may overflow then. */
    zero |= tensor->shape[i] == 0;
  }
  /* If one dimension is zero, the others may have any size. */
  for (uint32_t i = 0; i < tensor->n_dims && !zero; i++) {
    if ((uint64_t)tensor->shape[i] > SIZE_MAX / n)
      return 0;
    n *= (size_t)tensor->shape[i];
  }
  *out = zero ? 0 : n;
  return 1;
}

size_t tnk__tensor_n_crow(const tnk_tensor_t *tensor) {
  return tensor->crow == NULL ? 0 : (size_t)tensor->shape[0] + 1;
}

int64_t tnk__tensor_int(const tnk_tensor_t *tensor, size_t i) {
  if (tensor->dtype == TNK_I32)
    return ((const int32_t *)tensor->data)[i];
  return ((const int64_t *)tensor->data)[i];
}

double tnk__tensor_float(const tnk_tensor_t *tensor, size_t i) {
  if (tensor->dtype == TNK_F32)
    return (double)((const float *)tensor->data)[i];
  return ((const double *)tensor->data)[i];
}

size_t tnk__input_n_chunks(const tnk_model_input_t *input) {
  return input->tokens != NULL ? 1 : input->n_chunks;
}

tnk_chunk_t tnk__input_chunk(const tnk_model_input_t *input, size_t i) {
  return input->tokens != NULL ? tnk_chunk_text(input->tokens, input->n_tokens)
                               : input->chunks[i];
}

uint64_t tnk__input_tokens(const tnk_model_input_t *input, int *is_whole) {
  uint64_t n = 0;

  *is_whole = 1;
  for (size_t i = 0; i < tnk__input_n_chunks(input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    if (chunk.kind == TNK_CHUNK_TEXT)
      n += chunk.n_tokens;
    else if (chunk.kind == TNK_CHUNK_DMEL)
      n += (uint64_t)tnk__dmel_length(chunk.bytes, chunk.n_bytes, NULL);
    else if (chunk.expected_tokens > 0)
      n += (uint64_t)chunk.expected_tokens;
    else
      *is_whole = 0;
  }
  return n;
}

int64_t tnk__input_length(const tnk_model_input_t *input) {
  int is_whole;
  const uint64_t n = tnk__input_tokens(input, &is_whole);

  return is_whole ? (int64_t)n : -1;
}

size_t tnk__datum_n_inputs(const tnk_datum_t *datum) {
  return (size_t)(datum->targets != NULL) + (size_t)(datum->weights != NULL) +
         datum->n_loss_inputs;
}

tnk_loss_input_t tnk__datum_input_at(const tnk_datum_t *datum, size_t i) {
  const tnk_model_input_t *input = &datum->input;

  /* The check requires that the length is known. */
  if (datum->targets != NULL && i-- == 0)
    return (tnk_loss_input_t){
        "target_tokens",
        tnk_tensor_i64(datum->targets, (size_t)tnk__input_length(input))};
  if (datum->weights != NULL && i-- == 0)
    return (tnk_loss_input_t){
        "weights",
        tnk_tensor_f32(datum->weights, (size_t)tnk__input_length(input))};
  return datum->loss_inputs[i];
}

size_t tnk__datum_find(const tnk_datum_t *datum, const char *name) {
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++)
    if (strcmp(tnk__datum_input_at(datum, i).name, name) == 0)
      return i;
  return SIZE_MAX;
}

static size_t input_bytes(const tnk_model_input_t *input, size_t token_bytes) {
  size_t n = 0;

  for (size_t i = 0; i < tnk__input_n_chunks(input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    if (chunk.kind == TNK_CHUNK_TEXT)
      n += token_bytes * chunk.n_tokens;
    else if (chunk.kind != TNK_CHUNK_IMAGE_POINTER)
      n += chunk.n_bytes;
    else
      n += strlen(chunk.location);
  }
  return n;
}

/* The factors 4 and 10 are the service's own. Its other clients use them too,
 * which keeps chunks and byte budgets comparable. */
size_t tnk__datum_bytes(const tnk_datum_t *datum) {
  size_t n = input_bytes(&datum->input, 4);

  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_tensor_t tensor = tnk__datum_input_at(datum, i).tensor;

    n += tnk__dtype_wire_size(tensor.dtype) * tensor.n_values;
    if (tensor.crow != NULL)
      n += 8 * (tnk__tensor_n_crow(&tensor) + tensor.n_values);
  }
  return n;
}

size_t tnk__prompt_bytes(const tnk_model_input_t *prompt) {
  return input_bytes(prompt, 10);
}
