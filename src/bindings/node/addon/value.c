/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/addon/addon.h"

/* Below this size a copy is cheaper than a reference with a finalizer. */
#define MIN_VIEW 4096

/* ---- Memory of one call ---- */

typedef struct block {
  struct block *next;
  max_align_t data[];
} block_t;

void *scratch_take(scratch_t *scratch, size_t size) {
  block_t *block = calloc(1, sizeof(*block) + (size > 0 ? size : 1));

  if (block == NULL)
    return NULL;
  block->next = scratch->first;
  scratch->first = block;
  return block->data;
}

/* Throws an exception if memory is out. */
static void *take(napi_env env, scratch_t *scratch, size_t size) {
  void *memory = scratch_take(scratch, size);

  if (memory == NULL)
    napi_throw_error(env, "TNK_ENOMEM", "out of memory");
  return memory;
}

void scratch_free(scratch_t *scratch) {
  block_t *block = scratch->first;

  while (block != NULL) {
    block_t *next = block->next;
    free(block);
    block = next;
  }
  scratch->first = NULL;
}

/* ---- From JavaScript ---- */

int is_given(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;

  if (value == NULL || napi_typeof(env, value, &type) != napi_ok)
    return 0;
  return type != napi_undefined && type != napi_null;
}

int get_property(napi_env env, napi_value object, const char *name,
                 napi_value *out) {
  napi_valuetype type = napi_undefined;

  if (object == NULL || napi_typeof(env, object, &type) != napi_ok ||
      type != napi_object)
    return 0;
  if (napi_get_named_property(env, object, name, out) != napi_ok)
    return 0;
  return is_given(env, *out);
}

static int bad(napi_env env, const char *what, const char *expected) {
  char text[160];
  bool is_pending = false;

  napi_is_exception_pending(env, &is_pending);
  snprintf(text, sizeof(text), "%s: expected %s", what, expected);
  if (!is_pending)
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", text);
  return 0;
}

char *read_text(napi_env env, napi_value value, const char *what,
                size_t *length, scratch_t *scratch) {
  size_t n = 0;

  if (napi_get_value_string_utf8(env, value, NULL, 0, &n) != napi_ok) {
    bad(env, what, "a string");
    return NULL;
  }
  char *text = take(env, scratch, n + 1);
  if (text == NULL)
    return NULL;
  napi_get_value_string_utf8(env, value, text, n + 1, &n);
  /* With a length the text may contain any character. */
  if (length != NULL)
    *length = n;
  else if (strlen(text) != n)
    return bad(env, what, "a string without NUL"), NULL;
  return text;
}

int read_array(napi_env env, napi_value value, napi_typedarray_type type,
               const char *what, const void **data, size_t *n) {
  static const char *const names[] = {"an Int8Array",        "a Uint8Array",
                                      "a Uint8ClampedArray", "an Int16Array",
                                      "a Uint16Array",       "an Int32Array",
                                      "a Uint32Array",       "a Float32Array",
                                      "a Float64Array",      "a BigInt64Array"};
  napi_typedarray_type has = napi_int8_array;
  void *bytes = NULL;
  bool is = false;

  if (value == NULL || napi_is_typedarray(env, value, &is) != napi_ok || !is ||
      napi_get_typedarray_info(env, value, &has, n, &bytes, NULL, NULL) !=
          napi_ok ||
      has != type)
    return bad(env, what, names[type]);
  /* An empty array may have no memory, which would mean that it is absent. */
  static const int64_t nothing = 0;
  *data = bytes != NULL ? bytes : (const void *)&nothing;
  return 1;
}

/* A whole number from `low` to `high`; infinity is `high` if allowed. */
static int read_whole(napi_env env, napi_value value, const field_t *field,
                      double low, double high, double *out) {
  double number = 0;

  if (napi_get_value_double(env, value, &number) != napi_ok)
    return bad(env, field->name, "a number");
  if (number != floor(number) || number < low ||
      (number > high && !isinf(number)))
    return bad(env, field->name,
               low < 0 ? "a whole number" : "a whole number, not negative");
  *out = number;
  return 1;
}

static int read_texts(napi_env env, napi_value value, const field_t *field,
                      void *at, scratch_t *scratch) {
  uint32_t n = 0;

  if (napi_get_array_length(env, value, &n) != napi_ok)
    return bad(env, field->name, "an array of strings");
  /* Some members end with a NULL instead of having a length. */
  const char **texts = take(env, scratch, (n + 1) * sizeof(*texts));
  for (uint32_t i = 0; texts != NULL && i < n; i++) {
    napi_value item = NULL;
    napi_get_element(env, value, i, &item);
    texts[i] = read_text(env, item, field->name, NULL, scratch);
    if (texts[i] == NULL)
      return 0;
  }
  size_t length = n;
  memcpy(at, &texts, sizeof(texts));
  memcpy((char *)at + sizeof(texts), &length, sizeof(length));
  return texts != NULL;
}

static int read_pairs(napi_env env, napi_value value, const field_t *field,
                      void *at, scratch_t *scratch) {
  napi_value names = NULL;
  uint32_t n = 0;

  if (napi_get_property_names(env, value, &names) != napi_ok)
    return bad(env, field->name, "an object of strings");
  napi_get_array_length(env, names, &n);
  tnk_pair_t *pairs = take(env, scratch, (n + 1) * sizeof(*pairs));
  for (uint32_t i = 0; pairs != NULL && i < n; i++) {
    napi_value name = NULL, item = NULL;
    napi_get_element(env, names, i, &name);
    napi_get_property(env, value, name, &item);
    pairs[i].name = read_text(env, name, field->name, NULL, scratch);
    pairs[i].value = read_text(env, item, field->name, NULL, scratch);
    if (pairs[i].name == NULL || pairs[i].value == NULL)
      return 0;
  }
  size_t length = n;
  memcpy(at, &pairs, sizeof(pairs));
  memcpy((char *)at + sizeof(pairs), &length, sizeof(length));
  return pairs != NULL;
}

static int read_name(napi_env env, napi_value value, const field_t *field,
                     void *at) {
  char text[64];
  size_t n = 0;
  uint32_t found = 0;

  if (napi_get_value_string_utf8(env, value, text, sizeof(text), &n) != napi_ok)
    return bad(env, field->name, "a string");
  for (uint32_t i = 0; field->names[i] != NULL; i++)
    if (strcmp(field->names[i], text) == 0) {
      found = i + 1;
      break;
    }
  if (found == 0) {
    char why[256] = "one of";
    for (uint32_t i = 0; field->names[i] != NULL; i++) {
      size_t used = strlen(why);
      snprintf(why + used, sizeof(why) - used, " \"%s\"", field->names[i]);
    }
    return bad(env, field->name, why);
  }
  found--;
  memcpy(at, &found, sizeof(found));
  return 1;
}

static int read_boolean(napi_env env, napi_value value, const field_t *field,
                        void *at) {
  bool is = false;

  if (napi_get_value_bool(env, value, &is) != napi_ok)
    return bad(env, field->name, "true or false");
  int32_t number = field->type == FIELD_BOOL ? is : is ? TNK_YES : TNK_NO;
  memcpy(at, &number, sizeof(number));
  return 1;
}

static int read_number(napi_env env, napi_value value, const field_t *field,
                       void *at) {
  const double safe = 9007199254740991.0;
  double number = 0;
  uint32_t u32 = UINT32_MAX;
  uint64_t u64 = UINT64_MAX;
  int32_t i32 = 0;
  int64_t i64 = 0;

  switch (field->type) {
  case FIELD_U32:
    if (!read_whole(env, value, field, 0, UINT32_MAX, &number))
      return 0;
    u32 = isinf(number) ? UINT32_MAX : (uint32_t)number;
    memcpy(at, &u32, sizeof(u32));
    return 1;
  case FIELD_U64:
    if (!read_whole(env, value, field, 0, safe, &number))
      return 0;
    u64 = isinf(number) ? UINT64_MAX : (uint64_t)number;
    memcpy(at, &u64, sizeof(u64));
    return 1;
  case FIELD_I32:
    if (!read_whole(env, value, field, -INT32_MAX, INT32_MAX, &number) ||
        isinf(number))
      return bad(env, field->name, "a whole number of 32 bits");
    i32 = (int32_t)number;
    memcpy(at, &i32, sizeof(i32));
    return 1;
  case FIELD_DOUBLE:
    if (napi_get_value_double(env, value, &number) != napi_ok)
      return bad(env, field->name, "a number");
    memcpy(at, &number, sizeof(number));
    return 1;
  default:
    if (!read_whole(env, value, field, -safe, safe, &number) || isinf(number))
      return bad(env, field->name, "a whole number");
    i64 = (int64_t)number;
    memcpy(at, &i64, sizeof(i64));
    return 1;
  }
}

static int read_i32s(napi_env env, napi_value value, const field_t *field,
                     void *at) {
  const void *data = NULL;
  size_t n = 0;

  if (!read_array(env, value, napi_int32_array, field->name, &data, &n))
    return 0;
  memcpy(at, &data, sizeof(data));
  memcpy((char *)at + sizeof(data), &n, sizeof(n));
  return 1;
}

int read_field(napi_env env, napi_value value, const field_t *field, void *at,
               scratch_t *scratch) {
  const char *text = NULL;

  switch (field->type) {
  case FIELD_TEXT:
  case FIELD_JSON:
    text = read_text(env, value, field->name, NULL, scratch);
    memcpy(at, &text, sizeof(text));
    return text != NULL;
  case FIELD_TEXTS:
    return read_texts(env, value, field, at, scratch);
  case FIELD_PAIRS:
    return read_pairs(env, value, field, at, scratch);
  case FIELD_I32S:
    return read_i32s(env, value, field, at);
  case FIELD_CHOICE:
  case FIELD_BOOL:
    return read_boolean(env, value, field, at);
  case FIELD_ENUM:
    return read_name(env, value, field, at);
  default:
    return read_number(env, value, field, at);
  }
}

int read_fields(napi_env env, napi_value object, const field_t *fields,
                size_t n, void *out, scratch_t *scratch) {
  for (size_t i = 0; i < n; i++) {
    napi_value value = NULL;
    if (get_property(env, object, fields[i].name, &value) &&
        !read_field(env, value, &fields[i], (char *)out + fields[i].offset,
                    scratch))
      return 0;
  }
  bool is_pending = false;
  napi_is_exception_pending(env, &is_pending);
  return !is_pending;
}

/* ---- To JavaScript ---- */

napi_value make_undefined(napi_env env) {
  napi_value value = NULL;

  napi_get_undefined(env, &value);
  return value;
}

napi_value make_text(napi_env env, const char *text) {
  napi_value value = NULL;

  if (text == NULL)
    return make_undefined(env);
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  return value;
}

napi_value make_number(napi_env env, double number) {
  napi_value value = NULL;

  napi_create_double(env, number, &value);
  return value;
}

void set_number(napi_env env, napi_value object, const char *name,
                double number) {
  napi_set_named_property(env, object, name, make_number(env, number));
}

void set_text(napi_env env, napi_value object, const char *name,
              const char *text) {
  if (text != NULL)
    napi_set_named_property(env, object, name, make_text(env, text));
}

static napi_value make_date(napi_env env, double milliseconds) {
  napi_value value = NULL;

  napi_create_date(env, milliseconds, &value);
  return value;
}

static napi_value make_boolean(napi_env env, int is) {
  napi_value value = NULL;

  napi_get_boolean(env, is != 0, &value);
  return value;
}

/* The value of an integer or a boolean; NULL if it is absent. */
static napi_value write_integer(napi_env env, const field_t *field,
                                const char *at) {
  uint32_t u32 = 0;
  int32_t i32 = 0;
  int64_t i64 = 0;
  uint64_t u64 = 0;

  memcpy(&u32, at, sizeof(u32));
  memcpy(&i32, at, sizeof(i32));
  switch (field->type) {
  case FIELD_CHOICE:
    return i32 == TNK_DEFAULT ? NULL : make_boolean(env, i32 == TNK_YES);
  case FIELD_BOOL:
    return make_boolean(env, i32);
  case FIELD_U32:
    return make_number(env, u32);
  case FIELD_I32:
    return make_number(env, i32);
  case FIELD_ENUM:
    return make_text(env, field->names[u32]);
  default:
    break;
  }
  memcpy(&i64, at, sizeof(i64));
  memcpy(&u64, at, sizeof(u64));
  switch (field->type) {
  case FIELD_U64:
    return make_number(env, (double)u64);
  case FIELD_COUNT:
    return i64 < 0 ? NULL : make_number(env, (double)i64);
  case FIELD_TIME_US:
    return i64 == 0 ? NULL : make_date(env, (double)i64 / 1000);
  case FIELD_TIME_S:
    return i64 == 0 ? NULL : make_date(env, (double)i64 * 1000);
  default:
    return make_number(env, (double)i64);
  }
}

static napi_value write_pairs(napi_env env, const char *at) {
  const tnk_pair_t *pairs = NULL;
  size_t n = 0;
  napi_value value = NULL;

  memcpy(&pairs, at, sizeof(pairs));
  memcpy(&n, at + sizeof(pairs), sizeof(n));
  napi_create_object(env, &value);
  for (size_t i = 0; i < n; i++)
    set_text(env, value, pairs[i].name, pairs[i].value);
  return value;
}

static napi_value write_texts(napi_env env, const char *at) {
  const char *const *texts = NULL;
  size_t n = 0;
  napi_value value = NULL;

  memcpy(&texts, at, sizeof(texts));
  memcpy(&n, at + sizeof(texts), sizeof(n));
  napi_create_array(env, &value);
  for (size_t i = 0; i < n; i++)
    napi_set_element(env, value, (uint32_t)i, make_text(env, texts[i]));
  return value;
}

static napi_value write_field(napi_env env, const field_t *field,
                              const char *at) {
  const char *text = NULL;
  double number = 0;

  switch (field->type) {
  case FIELD_TEXT:
  case FIELD_JSON:
    memcpy(&text, at, sizeof(text));
    return text == NULL ? NULL : make_text(env, text);
  case FIELD_PAIRS:
    return write_pairs(env, at);
  case FIELD_TEXTS:
    return write_texts(env, at);
  case FIELD_DOUBLE:
    memcpy(&number, at, sizeof(number));
    return isnan(number) ? NULL : make_number(env, number);
  default:
    return write_integer(env, field, at);
  }
}

napi_value write_fields(napi_env env, const field_t *fields, size_t n,
                        const void *from) {
  napi_value object = NULL;

  napi_create_object(env, &object);
  for (size_t i = 0; i < n; i++) {
    napi_value value =
        write_field(env, &fields[i], (const char *)from + fields[i].offset);
    if (value != NULL)
      napi_set_named_property(env, object, fields[i].name, value);
  }
  return object;
}

static size_t width(napi_typedarray_type type) {
  return type == napi_bigint64_array || type == napi_float64_array ? 8
         : type == napi_uint8_array                                ? 1
                                                                   : 4;
}

napi_value make_array(napi_env env, napi_typedarray_type type, const void *data,
                      size_t n) {
  napi_value buffer = NULL, array = NULL;
  void *to = NULL;

  if (napi_create_arraybuffer(env, n * width(type), &to, &buffer) != napi_ok)
    return NULL;
  if (n > 0)
    memcpy(to, data, n * width(type));
  napi_create_typedarray(env, type, n, buffer, 0, &array);
  return array;
}

typedef struct {
  addon_t *addon;
  tnk_promise_t *promise;
} view_t;

static void view_free(napi_env env, void *data, void *hint) {
  view_t *view = hint;

  (void)env, (void)data;
  view->addon->counts.n_buffers--;
  addon_unref(view->addon);
  tnk_promise_unref(view->promise);
  free(view);
}

napi_value make_view(addon_t *addon, tnk_promise_t *promise,
                     napi_typedarray_type type, const void *data, size_t n) {
  napi_env env = addon->env;
  napi_value buffer = NULL, array = NULL;

  if (n * width(type) < MIN_VIEW)
    return make_array(env, type, data, n);
  view_t *view = calloc(1, sizeof(*view));
  if (view == NULL)
    return make_array(env, type, data, n);
  view->addon = addon;
  view->promise = tnk_promise_ref(promise);
  /* The result is constant for the library, and nothing else reads it. Some
   * builds of Node do not permit foreign memory. */
  if (napi_create_external_arraybuffer(env, (void *)(uintptr_t)data,
                                       n * width(type), view_free, view,
                                       &buffer) != napi_ok) {
    tnk_promise_unref(view->promise);
    free(view);
    return make_array(env, type, data, n);
  }
  addon->n_refs++;
  addon->counts.n_buffers++;
  napi_create_typedarray(env, type, n, buffer, 0, &array);
  return array;
}

void array_begin(array_t *array, napi_env env) {
  array->env = env;
  array->value = NULL;
  array->n = 0;
  napi_create_array(env, &array->value);
}

void array_add(array_t *array, napi_value value) {
  napi_set_element(array->env, array->value, array->n++, value);
}

napi_value make_metrics(napi_env env, const tnk_metrics_t *metrics) {
  napi_value object = NULL;

  napi_create_object(env, &object);
  for (size_t i = 0; i < tnk_metrics_count(metrics); i++)
    set_number(env, object, tnk_metrics_key(metrics, i),
               tnk_metrics_value(metrics, i));
  return object;
}

napi_value make_totals(napi_env env, const tnk_totals_t *totals) {
  static const field_t fields[] = {
      FIELD(tnk_totals_t, n_prompt_tokens, "promptTokens", FIELD_U64),
      FIELD(tnk_totals_t, n_cached_tokens, "cachedTokens", FIELD_U64),
      FIELD(tnk_totals_t, n_sampled_tokens, "sampledTokens", FIELD_U64),
      FIELD(tnk_totals_t, n_trained_tokens, "trainedTokens", FIELD_U64),
      FIELD(tnk_totals_t, n_doubtful_tokens, "doubtfulTokens", FIELD_U64),
      FIELD(tnk_totals_t, n_requests, "requests", FIELD_U64),
      FIELD(tnk_totals_t, n_bytes_sent, "bytesSent", FIELD_U64),
      FIELD(tnk_totals_t, n_bytes_received, "bytesReceived", FIELD_U64),
      FIELD(tnk_totals_t, n_unpriced_tokens, "unpricedTokens", FIELD_U64),
      FIELD(tnk_totals_t, cost_usd, "costUsd", FIELD_DOUBLE),
      FIELD(tnk_totals_t, doubtful_usd, "doubtfulUsd", FIELD_DOUBLE),
      FIELD(tnk_totals_t, reserved_usd, "reservedUsd", FIELD_DOUBLE),
  };

  return write_fields(env, fields, COUNT(fields), totals);
}
