/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/tensor_read.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/wire/data/data.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"

enum { FLOAT32 = 1, INT64 = 2, INT32 = 3, BFLOAT16 = 4 };

size_t tnk__wire_size(int dtype) {
  static const uint8_t sizes[] = {0, 4, 8, 4, 2};

  return dtype > 0 && dtype <= BFLOAT16 ? sizes[dtype] : 0;
}

const void *tnk__wire_array(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                            size_t size, size_t *n) {
  *n = 0;
  if (bytes->len % size != 0)
    tnk__room_bad(room);
  if (room->err != TNK_OK || bytes->len == 0)
    return NULL;
  *n = bytes->len / size;
  tnk__le_copy(bytes->data, bytes->data, *n, size);
  return bytes->data;
}

static const void *widen_int32(tnk__room_t *room, const uint8_t *from,
                               size_t n) {
  int64_t *to = tnk__room_get(room, n, sizeof(*to));

  for (size_t i = 0; i < n && to != NULL; i++)
    to[i] = (int32_t)tnk__le_get32(from + 4 * i);
  return to;
}

/* A bfloat16 is the upper half of a float. */
static const void *widen_bfloat16(tnk__room_t *room, const uint8_t *from,
                                  size_t n) {
  float *to = tnk__room_get(room, n, sizeof(*to));

  for (size_t i = 0; i < n && to != NULL; i++) {
    uint32_t bits = tnk__le_get16(from + 2 * i) << 16;

    memcpy(&to[i], &bits, sizeof(bits));
  }
  return to;
}

int tnk__wire_elements(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                       int dtype, tnk_tensor_t *out) {
  size_t size = tnk__wire_size(dtype);

  if (size == 0 || bytes->len % size != 0) {
    tnk__room_bad(room);
    return 0;
  }
  if (room->err != TNK_OK)
    return 0;
  out->dtype = dtype == INT64 || dtype == INT32 ? TNK_I64 : TNK_F32;
  out->n_values = bytes->len / size;
  if (out->n_values == 0)
    out->data = NULL;
  else if (dtype == INT32)
    out->data = widen_int32(room, bytes->data, out->n_values);
  else if (dtype == BFLOAT16)
    out->data = widen_bfloat16(room, bytes->data, out->n_values);
  else
    out->data = tnk__wire_array(room, bytes, size, &out->n_values);
  return room->err == TNK_OK;
}

static int set_shape(tnk__room_t *room, const int64_t *shape, size_t n,
                     tnk_tensor_t *out) {
  size_t elements;

  /* More than the limit of tnk/data.h. */
  if (n > TNK_MAX_DIMS) {
    tnk__room_bad(room);
    return 0;
  }
  out->n_dims = (uint32_t)n;
  for (size_t i = 0; i < n; i++)
    out->shape[i] = shape[i];
  if (!tnk__tensor_elements(out, &elements) ||
      (out->crow == NULL && elements != out->n_values))
    tnk__room_bad(room);
  return room->err == TNK_OK;
}

/* tnk/data.h guarantees that following crow and col of a CSR tensor never
 * leaves these arrays or the shape. Check that. */
static int csr_holds(const tnk_tensor_t *tensor, size_t n_crow, size_t n_col) {
  const int64_t *crow = tensor->crow;
  int64_t n = (int64_t)tensor->n_values;

  if (tensor->n_dims != 2 || tensor->shape[0] < 0 || n_crow == 0 ||
      (uint64_t)tensor->shape[0] != n_crow - 1 || n_col != tensor->n_values)
    return 0;
  if (crow[0] != 0 || crow[n_crow - 1] != n)
    return 0;
  for (size_t row = 0; row + 1 < n_crow; row++)
    if (crow[row + 1] < crow[row])
      return 0;
  for (size_t i = 0; i < n_col; i++)
    if (tensor->col[i] < 0 || tensor->col[i] >= tensor->shape[1])
      return 0;
  return 1;
}

static void wire_csr(tnk__room_t *room, const TinkerPublic__Tensor *message,
                     tnk_tensor_t *out) {
  const TinkerPublic__SparseCsr *csr = message->sparse_csr;
  size_t n_crow, n_col;

  if (csr == NULL ||
      !tnk__wire_elements(room, &csr->values, (int)message->dtype, out)) {
    tnk__room_bad(room);
    return;
  }
  out->crow = tnk__wire_array(room, &csr->crow_indices, 8, &n_crow);
  out->col = tnk__wire_array(room, &csr->col_indices, 8, &n_col);
  if (out->crow == NULL ||
      !set_shape(room, message->shape, message->n_shape, out) ||
      !csr_holds(out, n_crow, n_col))
    tnk__room_bad(room);
}

int tnk__wire_tensor(tnk__room_t *room, const TinkerPublic__Tensor *message,
                     tnk_tensor_t *out) {
  static const ProtobufCBinaryData nothing;
  const ProtobufCBinaryData *dense = &nothing;

  memset(out, 0, sizeof(*out));
  if (message->encoding_case == TINKER_PUBLIC__TENSOR__ENCODING_SPARSE_CSR) {
    wire_csr(room, message, out);
    return room->err == TNK_OK;
  }
  /* If neither is set, the tensor has no elements. */
  if (message->encoding_case == TINKER_PUBLIC__TENSOR__ENCODING_DENSE)
    dense = &message->dense;
  if (!tnk__wire_elements(room, dense, (int)message->dtype, out))
    return 0;
  /* Here no dimensions mean a scalar, not an unknown shape. */
  if (message->n_shape == 0 && out->n_values != 1)
    tnk__room_bad(room);
  return set_shape(room, message->shape, message->n_shape, out);
}

/* ---- JSON ---- */

float tnk__float_of(double value) {
  if (value > (double)FLT_MAX)
    return INFINITY;
  if (value < -(double)FLT_MAX)
    return -INFINITY;
  return (float)value;
}

float *tnk__json_floats_of(tnk__room_t *room, const json_t *array, size_t *n) {
  size_t size = json_array_size(array);
  float *values;

  *n = 0;
  if (!json_is_array(array))
    tnk__room_bad(room);
  values = size == 0 ? NULL : tnk__room_get(room, size, sizeof(*values));
  for (size_t i = 0; i < size && values != NULL; i++) {
    const json_t *value = json_array_get(array, i);

    if (!json_is_number(value) && !json_is_null(value)) {
      tnk__room_bad(room);
      return NULL;
    }
    values[i] =
        json_is_null(value) ? NAN : tnk__float_of(json_number_value(value));
  }
  if (values != NULL)
    *n = size;
  return values;
}

/* 1.0 is accepted as an integer, because some servers store ids as floats. */
static int whole(const json_t *value, int64_t *out) {
  double real = json_real_value(value);

  if (json_is_integer(value)) {
    *out = json_integer_value(value);
    return 1;
  }
  /* Below 2^53 every integer is a distinct double. */
  if (!json_is_real(value) || !(real > -9.0e15 && real < 9.0e15))
    return 0;
  *out = (int64_t)real;
  return (double)*out == real;
}

static int64_t *int64s_of(tnk__room_t *room, const json_t *array, size_t *n) {
  size_t size = json_array_size(array);
  int64_t *values;

  *n = 0;
  if (!json_is_array(array))
    tnk__room_bad(room);
  values = size == 0 ? NULL : tnk__room_get(room, size, sizeof(*values));
  for (size_t i = 0; i < size && values != NULL; i++)
    if (!whole(json_array_get(array, i), &values[i])) {
      tnk__room_bad(room);
      return NULL;
    }
  if (values != NULL)
    *n = size;
  return values;
}

static tnk_dtype_t dtype_of_values(const json_t *array) {
  for (size_t i = 0; i < json_array_size(array); i++)
    if (!json_is_integer(json_array_get(array, i)))
      return TNK_F32;
  return TNK_I64;
}

/* Returns 0 for an unknown name. Without a name the type follows from the
 * values. */
static int json_dtype(const json_t *object, const json_t *data,
                      tnk_dtype_t *out) {
  static const char *const ints[] = {"int64", "int32", "int"};
  static const char *const floats[] = {"float32", "bfloat16", "float16",
                                       "float64", "float"};
  const char *name = NULL;
  tnk__json_has_t has = tnk__json_get_text(object, "dtype", &name);

  *out = TNK_I64;
  for (size_t i = 0; name != NULL && i < sizeof(ints) / sizeof(ints[0]); i++)
    if (strcmp(name, ints[i]) == 0)
      return 1;
  *out = TNK_F32;
  for (size_t i = 0; name != NULL && i < sizeof(floats) / sizeof(floats[0]);
       i++)
    if (strcmp(name, floats[i]) == 0)
      return 1;
  if (name == NULL)
    *out = dtype_of_values(data);
  return name == NULL && has != TNK__JSON_WRONG;
}

static void json_values(tnk__room_t *room, const json_t *array,
                        tnk_tensor_t *out) {
  if (out->dtype == TNK_I64)
    out->data = int64s_of(room, array, &out->n_values);
  else
    out->data = tnk__json_floats_of(room, array, &out->n_values);
}

static void json_shape(tnk__room_t *room, const json_t *object,
                       tnk_tensor_t *out) {
  const json_t *array = NULL;
  tnk__json_has_t has = tnk__json_get_array(object, "shape", &array);
  int64_t vector = (int64_t)out->n_values;
  const int64_t *shape = &vector;
  size_t n = 1;

  if (has == TNK__JSON_WRONG)
    tnk__room_bad(room);
  /* [] with one value is a scalar. With more values the shape was never set. */
  if (array != NULL && (json_array_size(array) > 0 || vector == 1))
    shape = int64s_of(room, array, &n);
  if (room->err == TNK_OK)
    set_shape(room, shape, n, out);
}

static void json_csr(tnk__room_t *room, const json_t *object,
                     tnk_tensor_t *out) {
  static const char crow_key[] = "sparse_crow_indices";
  static const char col_key[] = "sparse_col_indices";
  const json_t *crow = NULL, *col = NULL;
  size_t n_crow = 0, n_col = 0;

  if (tnk__json_get_array(object, crow_key, &crow) == TNK__JSON_WRONG ||
      tnk__json_get_array(object, col_key, &col) == TNK__JSON_WRONG ||
      (crow == NULL) != (col == NULL))
    tnk__room_bad(room);
  if (crow != NULL && col != NULL) {
    out->crow = int64s_of(room, crow, &n_crow);
    out->col = int64s_of(room, col, &n_col);
    /* There is one row start more than rows, so at least one. */
    if (out->crow == NULL)
      tnk__room_bad(room);
  }
  if (room->err == TNK_OK)
    json_shape(room, object, out);
  if (room->err == TNK_OK && out->crow != NULL &&
      !csr_holds(out, n_crow, n_col))
    tnk__room_bad(room);
}

static void json_scalar(tnk__room_t *room, const json_t *value,
                        tnk_tensor_t *out) {
  int64_t *place = tnk__room_get(room, 1, sizeof(*place));
  float narrow = tnk__float_of(json_number_value(value));

  if (place == NULL)
    return;
  if (json_is_integer(value)) {
    *place = json_integer_value(value);
    out->dtype = TNK_I64;
  } else {
    memcpy(place, &narrow, sizeof(narrow));
    out->dtype = TNK_F32;
  }
  out->data = place;
  out->n_values = 1;
}

int tnk__json_tensor(tnk__room_t *room, const json_t *value,
                     tnk_tensor_t *out) {
  const json_t *data =
      json_is_array(value) ? value : tnk__json_arr(value, "data");

  memset(out, 0, sizeof(*out));
  if (json_is_number(value)) {
    json_scalar(room, value, out);
  } else if (data == NULL || !json_dtype(value, data, &out->dtype)) {
    tnk__room_bad(room);
  } else {
    json_values(room, data, out);
    if (room->err == TNK_OK)
      json_csr(room, value, out);
  }
  return room->err == TNK_OK;
}
