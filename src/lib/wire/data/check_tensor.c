#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/data.h"
#include "lib/wire/data/dmel.h"
#include "lib/wire/format/scan.h"
#include "tnk/error.h"

int tnk__refuse(const tnk__where_t *where, const char *format, ...) {
  int used = 0;
  va_list args;

  if (where->text == NULL || where->size == 0)
    return TNK_EINVAL;
  /* In case formatting fails. */
  where->text[0] = '\0';
  if (where->kind != NULL)
    used = snprintf(where->text, where->size, "%s %zu: ", where->kind,
                    where->index);
  if (used >= 0 && (size_t)used < where->size) {
    va_start(args, format);
    vsnprintf(where->text + used, where->size - (size_t)used, format, args);
    va_end(args);
  }
  return TNK_EINVAL;
}

int tnk__check_text_at(const tnk__where_t *where, const char *what,
                       const char *value) {
  size_t n;

  if (value == NULL)
    return tnk__refuse(where, "%s is missing", what);
  n = strlen(value);
  if (tnk__utf8_valid((const uint8_t *)value, n) < n)
    return tnk__refuse(where, "%s is not valid UTF-8", what);
  return TNK_OK;
}

static int check_shape(const tnk__where_t *where, const char *name,
                       const tnk_tensor_t *tensor) {
  size_t n;

  if (tensor->n_dims > TNK_MAX_DIMS)
    return tnk__refuse(where, "\"%s\" has %u dimensions, at most %d", name,
                       (unsigned)tensor->n_dims, TNK_MAX_DIMS);
  if (!tnk__tensor_elements(tensor, &n))
    return tnk__refuse(
        where, "\"%s\" has a dimension that is negative or too large", name);
  if (tensor->crow == NULL && n != tensor->n_values)
    return tnk__refuse(where, "\"%s\" has %zu values, its shape has %zu", name,
                       tensor->n_values, n);
  /* This keeps sizes in bytes from overflowing later. */
  if (tensor->n_values > SIZE_MAX / sizeof(int64_t))
    return tnk__refuse(where, "\"%s\" has too many values", name);
  if (tensor->n_values > 0 && tensor->data == NULL)
    return tnk__refuse(where, "\"%s\" has no data", name);
  return TNK_OK;
}

/* Check that row starts increase from 0 to the number of values, and columns
 * increase within each row. */
static int check_csr(const tnk__where_t *where, const char *name,
                     const tnk_tensor_t *tensor) {
  const int64_t *crow = tensor->crow;
  int64_t n = (int64_t)tensor->n_values;

  if (tensor->n_dims != 2)
    return tnk__refuse(where, "\"%s\" is sparse and needs two dimensions",
                       name);
  if (tensor->n_values > 0 && tensor->col == NULL)
    return tnk__refuse(where, "\"%s\" is sparse and has no columns", name);
  /* tnk/data.h requires that crow has rows + 1 entries, which cannot be
   * checked. */
  if (crow[0] != 0 || crow[tensor->shape[0]] != n)
    return tnk__refuse(where, "\"%s\": its row starts do not go from 0 to %zu",
                       name, tensor->n_values);
  for (int64_t row = 0; row < tensor->shape[0]; row++) {
    if (crow[row + 1] < crow[row] || crow[row + 1] > n)
      return tnk__refuse(where, "\"%s\": the start of row %lld is wrong", name,
                         (long long)row + 1);
    for (int64_t i = crow[row]; i < crow[row + 1]; i++)
      if (tensor->col[i] < 0 || tensor->col[i] >= tensor->shape[1] ||
          (i > crow[row] && tensor->col[i] <= tensor->col[i - 1]))
        return tnk__refuse(
            where, "\"%s\": row %lld has a column out of order or range", name,
            (long long)row);
  }
  return TNK_OK;
}

static int check_finite(const tnk__where_t *where, const char *name,
                        const tnk_tensor_t *tensor) {
  size_t i = 0;

  if (tensor->dtype == TNK_F32)
    i = tnk__scan_not_finite(tensor->data, tensor->n_values);
  for (; i < tensor->n_values; i++) {
    double value = tnk__tensor_float(tensor, i);

    if (!isfinite(value))
      return tnk__refuse(where, "\"%s\" value %zu is not a finite number", name,
                         i);
    /* Messages have no doubles, so the value must fit in a float. */
    if (tensor->dtype == TNK_F64 && isinf((float)value))
      return tnk__refuse(where, "\"%s\" value %zu is too large for f32", name,
                         i);
  }
  return TNK_OK;
}

int tnk__check_tensor_at(const tnk__where_t *where, const char *name,
                         const tnk_tensor_t *tensor) {
  int err;

  if (tensor->reserved != 0)
    return tnk__refuse(where, "\"%s\" has a reserved member set", name);
  if (tnk__dtype_size(tensor->dtype) == 0)
    return tnk__refuse(where, "\"%s\" has no known element type", name);
  err = check_shape(where, name, tensor);
  if (err == TNK_OK && tensor->crow != NULL)
    err = check_csr(where, name, tensor);
  if (err == TNK_OK && !tnk__dtype_is_int(tensor->dtype))
    err = check_finite(where, name, tensor);
  return err;
}

static int check_image(const tnk__where_t *where, size_t i,
                       const tnk_chunk_t *chunk) {
  if (chunk->format != TNK_PNG && chunk->format != TNK_JPEG)
    return tnk__refuse(where, "chunk %zu is an image of no known format", i);
  if (chunk->kind == TNK_CHUNK_IMAGE &&
      (chunk->bytes == NULL || chunk->n_bytes == 0))
    return tnk__refuse(where, "chunk %zu is an image without bytes", i);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER &&
      (chunk->location == NULL || chunk->location[0] == '\0'))
    return tnk__refuse(where, "chunk %zu has no location", i);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER)
    return tnk__check_text_at(where, "location of an image", chunk->location);
  return TNK_OK;
}

static int check_dmel(const tnk__where_t *where, size_t i,
                      const tnk_chunk_t *chunk) {
  const char *why;

  if (chunk->bytes == NULL || chunk->n_bytes == 0)
    return tnk__refuse(where, "chunk %zu is audio without bytes", i);
  if (tnk__dmel_length(chunk->bytes, chunk->n_bytes, &why) < 0)
    return tnk__refuse(where, "chunk %zu is no dMel: %s", i, why);
  return TNK_OK;
}

static int check_tokens(const tnk__where_t *where, size_t i,
                        const tnk_chunk_t *chunk) {
  size_t t;

  /* The largest estimate is 10 bytes for each token (lib/wire/data/data.c), and
   * must not overflow. */
  if (chunk->n_tokens > SIZE_MAX / 16)
    return tnk__refuse(where, "chunk %zu has too many tokens", i);
  if (chunk->n_tokens > 0 && chunk->tokens == NULL)
    return tnk__refuse(where, "chunk %zu has no tokens", i);
  t = tnk__scan_negative(chunk->tokens, chunk->n_tokens);
  if (t < chunk->n_tokens)
    return tnk__refuse(where, "chunk %zu: token %zu is %ld", i, t,
                       (long)chunk->tokens[t]);
  return TNK_OK;
}

static int check_chunk(const tnk__where_t *where, size_t i,
                       const tnk_chunk_t *chunk, int allow_pointer) {
  const int is_text = chunk->kind == TNK_CHUNK_TEXT;
  const int is_dmel = chunk->kind == TNK_CHUNK_DMEL;

  if (chunk->reserved != 0)
    return tnk__refuse(where, "chunk %zu has a reserved member set", i);
  if (!is_text && !is_dmel && chunk->kind != TNK_CHUNK_IMAGE &&
      chunk->kind != TNK_CHUNK_IMAGE_POINTER)
    return tnk__refuse(where, "chunk %zu is of no known kind", i);
  /* Text is kind 0. A chunk with other data but without a kind would be read as
   * no tokens. */
  if (is_text && (chunk->bytes != NULL || chunk->location != NULL))
    return tnk__refuse(
        where, "chunk %zu is text, and has %s", i,
        chunk->format == 0 && chunk->location == NULL ? "bytes" : "an image");
  if (!is_text && chunk->tokens != NULL)
    return tnk__refuse(where, "chunk %zu is %s, and has tokens", i,
                       is_dmel ? "audio" : "an image");
  if (is_text)
    return check_tokens(where, i, chunk);
  if (is_dmel)
    return check_dmel(where, i, chunk);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER && !allow_pointer)
    return tnk__refuse(
        where, "chunk %zu is an image pointer, which training does not take",
        i);
  return check_image(where, i, chunk);
}

int tnk__check_input_at(const tnk__where_t *where,
                        const tnk_model_input_t *input, int allow_pointer) {
  int err = TNK_OK;

  if (input->tokens != NULL && (input->chunks != NULL || input->n_chunks > 0))
    return tnk__refuse(where,
                       "the model input is given as tokens and as chunks");
  if (input->n_tokens > 0 && input->tokens == NULL)
    return tnk__refuse(where, "the model input has no tokens");
  if (input->n_chunks > 0 && input->chunks == NULL)
    return tnk__refuse(where, "the model input has no chunks");
  for (size_t i = 0; i < tnk__input_n_chunks(input) && err == TNK_OK; i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    err = check_chunk(where, i, &chunk, allow_pointer);
  }
  return err;
}
