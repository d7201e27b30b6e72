/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/value/value.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_pull.h"
#include "tnk/error.h"

static tnk__value_t read_number(tnk__json_pull_t *pull) {
  size_t n = 0;
  const char *text = tnk__json_pull_number(pull, &n);
  const char *at = text;
  uint64_t digits;
  double real = 0;
  int is_negative;

  if (text == NULL)
    return tnk__value_undefined();
  is_negative = *text == '-';
  at += is_negative;
  if (tnk__read_u64(&at, text + n, (uint64_t)INT64_MAX, &digits) == TNK_OK &&
      at == text + n)
    return tnk__value_int(is_negative ? -(int64_t)digits : (int64_t)digits);
  if (!tnk__value_read_float(text, n, &real))
    tnk__json_pull_bad(pull);
  return tnk__value_float(real);
}

static tnk__value_t read_word(tnk__json_pull_t *pull, tnk__pull_kind_t kind) {
  tnk__json_pull_skip(pull, NULL, NULL);
  return kind == TNK__PULL_NULL ? tnk__value_none()
                                : tnk__value_bool(kind == TNK__PULL_TRUE);
}

/* The reader limits the depth of the recursion. */
static tnk__value_t read_value(tnk__heap_t *heap, tnk__json_pull_t *pull) {
  const tnk__pull_kind_t kind = tnk__json_pull_kind(pull);
  tnk__value_t value;
  const char *text;
  size_t n = 0;

  switch (kind) {
  case TNK__PULL_OBJECT:
    value = tnk__value_dict(heap);
    if (tnk__json_pull_begin(pull, '{'))
      while ((text = tnk__json_pull_member(pull, &n)) != NULL)
        tnk__value_put(heap, value, tnk__value_text(text, n),
                       read_value(heap, pull));
    return value;
  case TNK__PULL_ARRAY:
    value = tnk__value_list(heap);
    if (tnk__json_pull_begin(pull, '['))
      while (tnk__json_pull_element(pull))
        tnk__value_append(heap, value, read_value(heap, pull));
    return value;
  case TNK__PULL_TEXT:
    text = tnk__json_pull_text(pull, &n);
    return tnk__value_text(text != NULL ? text : "", n);
  case TNK__PULL_NUMBER:
    return read_number(pull);
  case TNK__PULL_TRUE:
  case TNK__PULL_FALSE:
  case TNK__PULL_NULL:
    return read_word(pull, kind);
  default:
    tnk__json_pull_bad(pull);
    return tnk__value_undefined();
  }
}

int tnk__value_from_json(tnk__heap_t *heap, const char *json, size_t n,
                         tnk__value_t *out) {
  tnk__json_pull_t pull;
  uint8_t *copy;

  *out = tnk__value_undefined();
  if (n > UINT32_MAX)
    return TNK_ETOOBIG;
  /* Copy the JSON once; strings are decoded in place. */
  copy = tnk__heap_alloc(heap, n + 1);
  if (copy == NULL)
    return heap->err;
  if (n > 0)
    memcpy(copy, json, n);
  tnk__json_pull_init(&pull, copy, n);
  *out = read_value(heap, &pull);
  if (heap->err != TNK_OK)
    return heap->err;
  return tnk__json_pull_finish(&pull) == TNK_OK ? TNK_OK : TNK_EINVAL;
}
