/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/datum_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/base64.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* The state of the reader, including the path for messages. */
typedef struct {
  tnk__arena_t *arena;
  char *text;
  size_t size;
  char path[192];
} reader_t;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
refuse(const reader_t *r, const char *format, ...) {
  char what[192];
  va_list args;

  va_start(args, format);
  vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  if (r->text != NULL && r->size > 0)
    snprintf(r->text, r->size, "%s%s", r->path, what);
  return TNK_EINVAL;
}

/* ---- Arrays of numbers ---- */

static int read_int64s(reader_t *r, const char *name, const json_t *array,
                       const int64_t **out) {
  size_t n = json_array_size(array);
  int64_t *values = tnk__arena_calloc(r->arena, n + 1, sizeof(*values));
  size_t i;

  if (values == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    const json_t *value = json_array_get(array, i);
    if (!json_is_integer(value))
      return refuse(r, ".%s[%zu] is not an integer", name, i);
    values[i] = json_integer_value(value);
  }
  *out = values;
  return TNK_OK;
}

/* Read numbers as doubles, so that the checks detect one that is too large for
 * an f32. */
static int read_doubles(reader_t *r, const json_t *array, const void **out) {
  size_t n = json_array_size(array);
  double *values = tnk__arena_calloc(r->arena, n + 1, sizeof(*values));
  size_t i;

  if (values == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    const json_t *value = json_array_get(array, i);
    if (!json_is_number(value))
      return refuse(r, ".data[%zu] is not a number", i);
    values[i] = json_number_value(value);
  }
  *out = values;
  return TNK_OK;
}

/* ---- Chunks ---- */

static int read_text(reader_t *r, const json_t *chunk, tnk_chunk_t *out) {
  const json_t *tokens = tnk__json_arr(chunk, "tokens");
  size_t n = json_array_size(tokens);
  int32_t *ids;
  size_t i;

  if (tokens == NULL)
    return refuse(r, " has no array \"tokens\"");
  ids = tnk__arena_calloc(r->arena, n + 1, sizeof(*ids));
  if (ids == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    const json_t *value = json_array_get(tokens, i);
    if (!json_is_integer(value))
      return refuse(r, ".tokens[%zu] is not an integer", i);
    if (json_integer_value(value) < INT32_MIN ||
        json_integer_value(value) > INT32_MAX)
      return refuse(r, ".tokens[%zu] is %lld, more than 32 bits", i,
                    (long long)json_integer_value(value));
    ids[i] = (int32_t)json_integer_value(value);
  }
  *out = tnk_chunk_text(ids, n);
  return TNK_OK;
}

static int read_bytes(reader_t *r, const json_t *chunk, const char *name,
                      tnk_chunk_t *out) {
  const char *data = tnk__json_str(chunk, name);
  tnk__buf_t buf;
  int err;

  if (data == NULL)
    return refuse(r, " has no text \"%s\"", name);
  tnk__buf_init(&buf, r->arena->alloc, TNK__MAX_REQUEST_BODY);
  err = tnk__base64_read(&buf, data, strlen(data));
  if (err == TNK_OK) {
    out->bytes = tnk__arena_copy(r->arena, buf.data, buf.len);
    out->n_bytes = buf.len;
    err = out->bytes != NULL || buf.len == 0 ? TNK_OK : TNK_ENOMEM;
  }
  tnk__buf_deinit(&buf);
  return err == TNK_EPROTO ? refuse(r, ".%s is not base64", name) : err;
}

static int read_image(reader_t *r, const json_t *chunk, tnk_chunk_t *out) {
  const char *format = tnk__json_str(chunk, "format");
  int64_t expected = -1;

  if (tnk__json_get_int(chunk, "expected_tokens", 0, INT32_MAX, &expected) ==
      TNK__JSON_WRONG)
    return refuse(r, ".expected_tokens is not a number of tokens");
  out->expected_tokens = (int32_t)expected;
  if (format != NULL && strcmp(format, "png") == 0)
    out->format = TNK_PNG;
  else if (format != NULL && strcmp(format, "jpeg") == 0)
    out->format = TNK_JPEG;
  else
    return refuse(r, ".format is neither \"png\" nor \"jpeg\"");
  if (out->kind == TNK_CHUNK_IMAGE)
    return read_bytes(r, chunk, "data", out);
  out->location = tnk__json_str(chunk, "location");
  return out->location != NULL ? TNK_OK
                               : refuse(r, " has no text \"location\"");
}

static int read_chunk(reader_t *r, const json_t *chunk, tnk_chunk_t *out) {
  const char *type = tnk__json_str(chunk, "type");

  if (!json_is_object(chunk))
    return refuse(r, " is not an object");
  if (type == NULL || strcmp(type, "encoded_text") == 0)
    return read_text(r, chunk, out);
  if (strcmp(type, "dmel") == 0) {
    out->kind = TNK_CHUNK_DMEL;
    return read_bytes(r, chunk, "dmel", out);
  }
  if (strcmp(type, "image") == 0)
    out->kind = TNK_CHUNK_IMAGE;
  else if (strcmp(type, "image_asset_pointer") == 0)
    out->kind = TNK_CHUNK_IMAGE_POINTER;
  else
    return refuse(r, ".type is \"%.40s\", which is not known", type);
  return read_image(r, chunk, out);
}

static int read_input(reader_t *r, const json_t *input,
                      tnk_model_input_t *out) {
  const json_t *list = tnk__json_arr(input, "chunks");
  size_t n = json_array_size(list);
  tnk_chunk_t *chunks;
  size_t i;
  int err = TNK_OK;

  if (input == NULL)
    return refuse(r, "model_input is missing, or not an object");
  if (list == NULL)
    return refuse(r, "model_input.chunks is missing, or not an array");
  chunks = tnk__arena_calloc(r->arena, n + 1, sizeof(*chunks));
  if (chunks == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n && err == TNK_OK; i++) {
    snprintf(r->path, sizeof(r->path), "model_input.chunks[%zu]", i);
    err = read_chunk(r, json_array_get(list, i), &chunks[i]);
  }
  r->path[0] = '\0';
  *out = (tnk_model_input_t){.chunks = chunks, .n_chunks = n};
  return err;
}

/* ---- Tensors ---- */

static int read_shape(reader_t *r, const json_t *value, tnk_tensor_t *out) {
  const json_t *shape = NULL;
  size_t i;

  if (tnk__json_get_array(value, "shape", &shape) == TNK__JSON_WRONG)
    return refuse(r, ".shape is not an array");
  if (json_array_size(shape) > TNK_MAX_DIMS)
    return refuse(r, ".shape has %zu dimensions, at most %d",
                  json_array_size(shape), TNK_MAX_DIMS);
  for (i = 0; i < json_array_size(shape); i++) {
    const json_t *n = json_array_get(shape, i);
    if (!json_is_integer(n) || json_integer_value(n) < 0)
      return refuse(r, ".shape[%zu] is not a size", i);
    out->shape[i] = json_integer_value(n);
  }
  out->n_dims = (uint32_t)i;
  if (shape != NULL && i == 0 && out->n_values != 1)
    return refuse(r, " has %zu values, but its shape [] is that of one",
                  out->n_values);
  return TNK_OK;
}

static int read_sparse(reader_t *r, const json_t *value, tnk_tensor_t *out) {
  static const char crow_name[] = "sparse_crow_indices";
  static const char col_name[] = "sparse_col_indices";
  const json_t *crow = NULL;
  const json_t *col = NULL;
  int err;

  if (tnk__json_get_array(value, crow_name, &crow) == TNK__JSON_WRONG ||
      tnk__json_get_array(value, col_name, &col) == TNK__JSON_WRONG)
    return refuse(r, "'s sparse indices are not arrays");
  if ((crow == NULL) != (col == NULL))
    return refuse(r, " has only one of %s and %s", crow_name, col_name);
  if (crow == NULL)
    return TNK_OK;
  /* The checks cannot verify the lengths of these two, so verify them here. */
  if (out->n_dims != 2 || (uint64_t)out->shape[0] + 1 != json_array_size(crow))
    return refuse(r, ".%s must have one entry more than rows", crow_name);
  if (json_array_size(col) != out->n_values)
    return refuse(r, ".%s must have as many entries as data", col_name);
  err = read_int64s(r, crow_name, crow, &out->crow);
  return err == TNK_OK ? read_int64s(r, col_name, col, &out->col) : err;
}

static int read_tensor(reader_t *r, const json_t *value, tnk_tensor_t *out) {
  const char *dtype = tnk__json_str(value, "dtype");
  const json_t *data = tnk__json_arr(value, "data");
  const int64_t *ints = NULL;
  int err;

  if (data == NULL)
    return refuse(r, " has no array \"data\"");
  out->n_values = json_array_size(data);
  if (dtype != NULL && strcmp(dtype, "int64") == 0) {
    out->dtype = TNK_I64;
    err = read_int64s(r, "data", data, &ints);
    out->data = ints;
  } else if (dtype != NULL && strcmp(dtype, "float32") == 0) {
    out->dtype = TNK_F64;
    err = read_doubles(r, data, &out->data);
  } else {
    return refuse(r, ".dtype is neither \"int64\" nor \"float32\"");
  }
  if (err == TNK_OK)
    err = read_shape(r, value, out);
  return err == TNK_OK ? read_sparse(r, value, out) : err;
}

static int read_loss_inputs(reader_t *r, const json_t *object,
                            tnk_datum_t *out) {
  size_t n = json_object_size(object);
  tnk_loss_input_t *inputs;
  const char *key;
  json_t *value;
  int err = TNK_OK;

  if (object == NULL)
    return refuse(r, "loss_fn_inputs is missing, or not an object");
  inputs = tnk__arena_calloc(r->arena, n + 1, sizeof(*inputs));
  if (inputs == NULL)
    return TNK_ENOMEM;
  out->loss_inputs = inputs;
  /* jansson's iterator takes a non-const object but does not modify it. */
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    snprintf(r->path, sizeof(r->path), "loss_fn_inputs.%.100s", key);
    inputs[out->n_loss_inputs].name = key;
    err = read_tensor(r, value, &inputs[out->n_loss_inputs++].tensor);
    if (err != TNK_OK)
      break;
  }
  return err;
}

/* ---- Provenance ---- */

static int read_span(reader_t *r, const json_t *value, tnk_span_t *out) {
  const char *kind = tnk__json_str(value, "kind");

  if (kind != NULL && strcmp(kind, "prompt") == 0)
    out->kind = TNK_SPAN_PROMPT;
  else if (kind != NULL && strcmp(kind, "sampled") == 0)
    out->kind = TNK_SPAN_SAMPLED;
  else
    return refuse(r, ".kind is neither \"prompt\" nor \"sampled\"");
  out->sequence_id = tnk__json_str(value, "sequence_id");
  if (out->sequence_id == NULL)
    return refuse(r, " has no text \"sequence_id\"");
  if (tnk__json_get_int(value, "offset", 0, INT64_MAX, &out->offset) ==
      TNK__JSON_WRONG)
    return refuse(r, ".offset is not a number of tokens");
  return tnk__json_get_int(value, "length", 0, INT64_MAX, &out->length) ==
                 TNK__JSON_FOUND
             ? TNK_OK
             : refuse(r, ".length is not a number of tokens");
}

/* Read an optional list. */
static int read_spans(reader_t *r, const json_t *datum, const char *name,
                      const tnk_span_t **out, size_t *n) {
  const json_t *list = NULL;
  tnk_span_t *spans;
  int err = TNK_OK;

  r->path[0] = '\0';
  if (tnk__json_get_array(datum, name, &list) == TNK__JSON_WRONG)
    return refuse(r, "%s is not an array", name);
  if (list == NULL)
    return TNK_OK;
  *n = json_array_size(list);
  spans = tnk__arena_calloc(r->arena, *n + 1, sizeof(*spans));
  if (spans == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < *n && err == TNK_OK; i++) {
    snprintf(r->path, sizeof(r->path), "%s[%zu]", name, i);
    err = read_span(r, json_array_get(list, i), &spans[i]);
  }
  *out = spans;
  return err;
}

int tnk__datum_read(tnk_datum_t *out, tnk__arena_t *arena, const json_t *datum,
                    char *text, size_t size) {
  reader_t r = {.arena = arena, .text = text, .size = size};
  int err;

  memset(out, 0, sizeof(*out));
  if (!json_is_object(datum))
    return refuse(&r, "it is not an object");
  err = read_input(&r, tnk__json_obj(datum, "model_input"), &out->input);
  if (err == TNK_OK)
    err = read_loss_inputs(&r, tnk__json_obj(datum, "loss_fn_inputs"), out);
  if (err == TNK_OK)
    err = read_spans(&r, datum, "model_input_spans", &out->input_spans,
                     &out->n_input_spans);
  if (err == TNK_OK)
    err = read_spans(&r, datum, "loss_fn_input_spans", &out->loss_input_spans,
                     &out->n_loss_input_spans);
  return err;
}
