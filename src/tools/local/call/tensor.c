/* SPDX-License-Identifier: MIT */
#include "tools/local/call/tensor.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"

/* ---- Tensors ---- */

/* Both formats are parsed into the listed values. Then shape and layout are
 * checked, and a sparse tensor is expanded. */

enum { LOCAL_MAX_ELEMENTS = 1 << 24 };

static int int64s(const int64_t **out, tnk__arena_t *arena,
                  const ProtobufCBinaryData *bytes, size_t *n,
                  tnk__lm_why_t *why) {
  *n = bytes->len / 8;
  if (bytes->len % 8 != 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "int64 data of %zu bytes is not whole", bytes->len);
  *out = tnk__arena_copy(arena, bytes->data, bytes->len);
  return *out != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Copied without conversion: unlike the library, the server requires a
 * little-endian machine. */
static int values_proto(local_tensor_t *out, tnk__arena_t *arena, int dtype,
                        const ProtobufCBinaryData *bytes, tnk__lm_why_t *why) {
  size_t size = dtype == TINKER_PUBLIC__DTYPE__DTYPE_INT64 ? 8 : 4;
  void *copy;

  if (dtype != TINKER_PUBLIC__DTYPE__DTYPE_INT64 &&
      dtype != TINKER_PUBLIC__DTYPE__DTYPE_FLOAT32)
    return tnk__lm_refuse(
        why, TNK_EINVAL, "dtype must be float32 or int64, is number %d", dtype);
  if (bytes->len % size != 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "data of %zu bytes is not a whole number of elements",
                          bytes->len);
  out->n = bytes->len / size;
  copy = tnk__arena_copy(arena, bytes->data, bytes->len);
  if (copy == NULL)
    return TNK_ENOMEM;
  if (size == 8)
    out->ints = copy;
  else
    out->floats = copy;
  return TNK_OK;
}

static int check_layout(const local_tensor_t *t, tnk__lm_why_t *why) {
  int64_t rows = t->shape[0];
  int64_t cols = t->shape[1];

  if (t->n_dims != 2 || rows < 0 || cols < 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "a sparse tensor needs a shape of two dimensions");
  /* Uses a division, because the product may overflow. */
  if (cols > 0 && rows > LOCAL_MAX_ELEMENTS / cols)
    return tnk__lm_refuse(why, TNK_EINVAL, "the tensor is too large");
  if (t->n_crow != (size_t)rows + 1 || t->n_listed != t->n || t->crow[0] != 0 ||
      t->crow[rows] != (int64_t)t->n)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the row indices of a sparse tensor do not fit");
  for (int64_t r = 0; r < rows; r++) {
    if (t->crow[r] > t->crow[r + 1] || t->crow[r + 1] > (int64_t)t->n)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "the row indices of a sparse tensor decrease");
    for (int64_t i = t->crow[r]; i < t->crow[r + 1]; i++)
      if (t->col[i] < 0 || t->col[i] >= cols ||
          (i > t->crow[r] && t->col[i] <= t->col[i - 1]))
        return tnk__lm_refuse(
            why, TNK_EINVAL,
            "the column indices of a sparse tensor are out of order or range");
  }
  return TNK_OK;
}

static int spread(local_tensor_t *t, tnk__arena_t *arena, int64_t pad,
                  tnk__lm_why_t *why) {
  size_t n;
  size_t size = t->ints != NULL ? 8 : 4;
  void *dense;
  int err = check_layout(t, why);

  if (err != TNK_OK)
    return err;
  n = (size_t)t->shape[0] * (size_t)t->shape[1];
  dense = tnk__arena_calloc(arena, n, size);
  if (dense == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; pad != 0 && size == 8 && i < n; i++)
    ((int64_t *)dense)[i] = pad;
  for (int64_t r = 0; r < t->shape[0]; r++)
    for (int64_t i = t->crow[r]; i < t->crow[r + 1]; i++) {
      int64_t at = r * t->shape[1] + t->col[i];

      if (size == 8)
        ((int64_t *)dense)[at] = t->ints[i];
      else
        ((float *)dense)[at] = t->floats[i];
    }
  if (size == 8)
    t->ints = dense;
  else
    t->floats = dense;
  t->n = n;
  return TNK_OK;
}

static int finish(local_tensor_t *t, tnk__arena_t *arena, int64_t pad,
                  tnk__lm_why_t *why) {
  size_t n = 1;

  if (t->crow != NULL || t->col != NULL) {
    if (t->crow == NULL || t->col == NULL || t->n_crow == 0)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "a sparse tensor needs row and column indices");
    return spread(t, arena, pad, why);
  }
  for (size_t i = 0; i < t->n_dims; i++) {
    if (t->shape[i] < 0 || t->shape[i] > LOCAL_MAX_ELEMENTS ||
        n > (size_t)LOCAL_MAX_ELEMENTS)
      return tnk__lm_refuse(why, TNK_EINVAL, "the shape is out of range");
    n *= (size_t)t->shape[i];
  }
  if (t->n_dims > 0 && n != t->n)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "%zu values do not fill a shape of %zu", t->n, n);
  return TNK_OK;
}

int local_tensor_proto(local_tensor_t *out, tnk__arena_t *arena,
                       const TinkerPublic__Tensor *tensor, int64_t pad,
                       tnk__lm_why_t *why) {
  static const ProtobufCBinaryData none = {0, NULL};
  const ProtobufCBinaryData *values = &none;
  int err = TNK_OK;

  *out = (local_tensor_t){0};
  if (tensor == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "the tensor is missing");
  if (tensor->n_shape > 8)
    return tnk__lm_refuse(why, TNK_EINVAL, "too many dimensions");
  out->n_dims = tensor->n_shape;
  for (size_t i = 0; i < tensor->n_shape; i++)
    out->shape[i] = tensor->shape[i];
  if (tensor->encoding_case == TINKER_PUBLIC__TENSOR__ENCODING_DENSE) {
    values = &tensor->dense;
  } else if (tensor->encoding_case ==
             TINKER_PUBLIC__TENSOR__ENCODING_SPARSE_CSR) {
    const TinkerPublic__SparseCsr *sparse = tensor->sparse_csr;

    values = &sparse->values;
    err = int64s(&out->crow, arena, &sparse->crow_indices, &out->n_crow, why);
    if (err == TNK_OK)
      err = int64s(&out->col, arena, &sparse->col_indices, &out->n_listed, why);
  }
  if (err == TNK_OK)
    err = values_proto(out, arena, (int)tensor->dtype, values, why);
  return err == TNK_OK ? finish(out, arena, pad, why) : err;
}

/* ---- Tensors: JSON ---- */

static int indices(const int64_t **out, tnk__arena_t *arena,
                   const json_t *array, size_t *n, tnk__lm_why_t *why) {
  int64_t *values;

  *n = json_array_size(array);
  values = tnk__arena_calloc(arena, *n, sizeof(*values));
  if (values == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < *n; i++) {
    const json_t *value = json_array_get(array, i);

    if (!json_is_integer(value))
      return tnk__lm_refuse(why, TNK_EINVAL, "element %zu is not an integer",
                            i);
    values[i] = json_integer_value(value);
  }
  *out = values;
  return TNK_OK;
}

static int floats(local_tensor_t *out, tnk__arena_t *arena, const json_t *array,
                  tnk__lm_why_t *why) {
  out->n = json_array_size(array);
  out->floats = tnk__arena_calloc(arena, out->n, sizeof(*out->floats));
  if (out->floats == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < out->n; i++) {
    const json_t *value = json_array_get(array, i);

    if (!json_is_number(value))
      return tnk__lm_refuse(why, TNK_EINVAL, "element %zu is not a number", i);
    out->floats[i] = (float)json_number_value(value);
  }
  return TNK_OK;
}

static int shape_json(local_tensor_t *out, const json_t *tensor,
                      tnk__lm_why_t *why) {
  const json_t *shape = NULL;

  if (tnk__json_get_array(tensor, "shape", &shape) == TNK__JSON_WRONG ||
      json_array_size(shape) > 8)
    return tnk__lm_refuse(why, TNK_EINVAL, "\"shape\" is not a shape");
  out->n_dims = json_array_size(shape);
  for (size_t i = 0; i < out->n_dims; i++) {
    const json_t *dim = json_array_get(shape, i);

    if (!json_is_integer(dim))
      return tnk__lm_refuse(why, TNK_EINVAL, "\"shape\" is not a shape");
    out->shape[i] = json_integer_value(dim);
  }
  return TNK_OK;
}

int local_tensor_json(local_tensor_t *out, tnk__arena_t *arena,
                      const json_t *tensor, int64_t pad, tnk__lm_why_t *why) {
  const char *dtype = tnk__json_str(tensor, "dtype");
  const json_t *data = tnk__json_arr(tensor, "data");
  const json_t *crow = tnk__json_arr(tensor, "sparse_crow_indices");
  const json_t *col = tnk__json_arr(tensor, "sparse_col_indices");
  const int64_t *ints = NULL;
  int err;

  *out = (local_tensor_t){0};
  if (data == NULL || dtype == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "a tensor needs data and dtype");
  err = shape_json(out, tensor, why);
  if (err == TNK_OK && strcmp(dtype, "int64") == 0) {
    err = indices(&ints, arena, data, &out->n, why);
    out->ints = (int64_t *)ints;
  } else if (err == TNK_OK && strcmp(dtype, "float32") == 0) {
    err = floats(out, arena, data, why);
  } else if (err == TNK_OK) {
    err = tnk__lm_refuse(why, TNK_EINVAL, "dtype must be float32 or int64");
  }
  if (err == TNK_OK && crow != NULL)
    err = indices(&out->crow, arena, crow, &out->n_crow, why);
  if (err == TNK_OK && col != NULL)
    err = indices(&out->col, arena, col, &out->n_listed, why);
  return err == TNK_OK ? finish(out, arena, pad, why) : err;
}

/* ---- Prompts ---- */

static const json_t *chunk_tokens(const json_t *chunk) {
  const char *type = tnk__json_str(chunk, "type");

  if (type != NULL && strcmp(type, "encoded_text") != 0)
    return NULL;
  return tnk__json_arr(chunk, "tokens");
}

int local_tokens_json(tnk__arena_t *arena, const json_t *input,
                      const int32_t **out, size_t *n, tnk__lm_why_t *why) {
  const json_t *chunks = tnk__json_arr(input, "chunks");
  size_t total = 0;
  int32_t *tokens;

  if (chunks == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "\"chunks\" is missing");
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *list = chunk_tokens(json_array_get(chunks, i));

    if (list == NULL)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "chunk %zu: %s reads text chunks only", i,
                            TNK__LM_NAME);
    total += json_array_size(list);
  }
  tokens = tnk__arena_calloc(arena, total, sizeof(*tokens));
  if (tokens == NULL)
    return TNK_ENOMEM;
  *out = tokens;
  *n = total;
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *list = chunk_tokens(json_array_get(chunks, i));

    for (size_t k = 0; k < json_array_size(list); k++) {
      const json_t *token = json_array_get(list, k);
      json_int_t id = json_integer_value(token);

      if (!json_is_integer(token) || id < INT32_MIN || id > INT32_MAX)
        return tnk__lm_refuse(why, TNK_EINVAL,
                              "chunk %zu: token %zu is not a token id", i, k);
      *tokens++ = (int32_t)id;
    }
  }
  return TNK_OK;
}
