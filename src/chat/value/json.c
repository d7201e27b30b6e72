/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chat/value/value.h"
#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_pull.h"
#include "lib/wire/format/number_text.h"
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

/* ---- Writing ---- */

typedef struct {
  tnk__buf_t *buf;
  const tnk__value_json_t *how;
  const char *between, *behind_key;
  int has_lines;
  int err;
} writer_t;

/* Write \\uXXXX. It is written by hand for speed, as texts may consist of
 * it. */
static void write_code(writer_t *w, uint32_t c) {
  static const char digits[] = "0123456789abcdef";
  const char text[] = {'\\',
                       'u',
                       digits[c >> 12 & 15],
                       digits[c >> 8 & 15],
                       digits[c >> 4 & 15],
                       digits[c & 15]};

  tnk__buf_append(w->buf, text, sizeof(text));
}

static void write_escape(writer_t *w, uint32_t c) {
  static const char from[] = "\"\\\b\f\n\r\t";
  static const char to[] = "\"\\bfnrt";
  const char *known = c < 0x80 ? memchr(from, (int)c, sizeof(from) - 1) : NULL;

  if (known != NULL) {
    tnk__buf_byte(w->buf, '\\');
    tnk__buf_byte(w->buf, (uint8_t)to[known - from]);
  } else if (c < 0x10000) {
    write_code(w, c);
  } else {
    write_code(w, 0xd800 + ((c - 0x10000) >> 10));
    write_code(w, 0xdc00 + ((c - 0x10000) & 0x3ff));
  }
}

/* Returns whether the character with this first byte needs no escape. */
static int is_plain(const writer_t *w, unsigned char c) {
  return c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || !w->how->is_ascii);
}

static void write_text(writer_t *w, const char *text, size_t n) {
  const char *at = text, *end = text + n, *from;

  tnk__buf_byte(w->buf, '"');
  while (at < end) {
    for (from = at; at < end && is_plain(w, (unsigned char)*at);)
      at++;
    tnk__buf_append(w->buf, from, (size_t)(at - from));
    if (at < end)
      write_escape(w, tnk__value_char(&at));
  }
  tnk__buf_byte(w->buf, '"');
}

/* Write a number that JSON does not have. */
static void write_wide(writer_t *w, double real) {
  if (w->how->has_wide)
    tnk__buf_text(w->buf, isnan(real) ? "NaN"
                          : real > 0  ? "Infinity"
                                      : "-Infinity");
  else if (isnan(real))
    w->err = TNK_EINVAL;
  else
    tnk__buf_text(w->buf, real > 0 ? "1e999" : "-1e999");
}

/* Write numbers, booleans and null, also as names of members. Returns 0 for
 * other values. */
static int write_plain(writer_t *w, tnk__value_t value) {
  char text[TNK__VALUE_NUMBER];

  switch (value.kind) {
  case TNK__VALUE_NONE:
    tnk__buf_text(w->buf, "null");
    return 1;
  case TNK__VALUE_BOOL:
    tnk__buf_text(w->buf, value.as.is_true ? "true" : "false");
    return 1;
  case TNK__VALUE_INT:
    tnk__buf_append(w->buf, text, tnk__int_text(text, value.as.number));
    return 1;
  case TNK__VALUE_FLOAT:
    if (!isfinite(value.as.real))
      write_wide(w, value.as.real);
    else
      tnk__buf_append(w->buf, text, tnk__value_float_text(text, value.as.real));
    return 1;
  default:
    return 0;
  }
}

static void new_line(writer_t *w, int depth) {
  if (!w->has_lines)
    return;
  tnk__buf_byte(w->buf, '\n');
  for (int i = 0; i < depth && w->buf->err == TNK_OK; i++) {
    if (w->how->indent_text != NULL)
      tnk__buf_text(w->buf, w->how->indent_text);
    else if (w->how->indent > 0)
      tnk__buf_printf(w->buf, "%*s", w->how->indent, "");
  }
}

static void write_value(writer_t *w, tnk__value_t value, int depth);

static void write_list(writer_t *w, const tnk__value_list_t *list, int depth) {
  if (list->n == 0) {
    tnk__buf_text(w->buf, "[]");
    return;
  }
  tnk__buf_byte(w->buf, '[');
  for (size_t i = 0; i < list->n; i++) {
    if (i > 0)
      tnk__buf_text(w->buf, w->between);
    new_line(w, depth + 1);
    write_value(w, list->items[i], depth + 1);
  }
  new_line(w, depth);
  tnk__buf_byte(w->buf, ']');
}

static int compare_entries(const void *a, const void *b) {
  const tnk__value_entry_t *const *x = a;
  const tnk__value_entry_t *const *y = b;
  int order = 0;

  tnk__value_compare((*x)->key, (*y)->key, &order);
  return order;
}

/* The entries in sorted order, or NULL. */
static const tnk__value_entry_t **sort_entries(writer_t *w,
                                               const tnk__value_dict_t *dict) {
  const tnk__value_entry_t **sorted =
      tnk__alloc_array(w->buf->alloc, dict->n, sizeof(*sorted));
  int order;

  if (sorted == NULL) {
    w->err = TNK_ENOMEM;
    return NULL;
  }
  for (size_t i = 0; i < dict->n; i++) {
    sorted[i] = &dict->entries[i];
    if (!tnk__value_compare(dict->entries[0].key, dict->entries[i].key,
                            &order)) {
      w->err = TNK_EINVAL;
      tnk__free(w->buf->alloc, sorted);
      return NULL;
    }
  }
  qsort(sorted, dict->n, sizeof(*sorted), compare_entries);
  return sorted;
}

static void write_dict(writer_t *w, const tnk__value_dict_t *dict, int depth) {
  const tnk__value_entry_t **sorted = NULL;
  const tnk__value_entry_t *entry;

  if (dict->n == 0) {
    tnk__buf_text(w->buf, "{}");
    return;
  }
  if (w->how->is_sorted) {
    sorted = sort_entries(w, dict);
    if (sorted == NULL)
      return;
  }
  tnk__buf_byte(w->buf, '{');
  for (size_t i = 0; i < dict->n && w->err == TNK_OK; i++) {
    entry = sorted != NULL ? sorted[i] : &dict->entries[i];
    if (i > 0)
      tnk__buf_text(w->buf, w->between);
    new_line(w, depth + 1);
    if (entry->key.kind == TNK__VALUE_TEXT) {
      write_text(w, entry->key.as.text, entry->key.n_text);
    } else {
      tnk__buf_byte(w->buf, '"');
      if (!write_plain(w, entry->key))
        w->err = TNK_EINVAL;
      tnk__buf_byte(w->buf, '"');
    }
    tnk__buf_text(w->buf, w->behind_key);
    write_value(w, entry->value, depth + 1);
  }
  new_line(w, depth);
  tnk__buf_byte(w->buf, '}');
  tnk__free(w->buf->alloc, sorted);
}

static void write_value(writer_t *w, tnk__value_t value, int depth) {
  if (depth > TNK__VALUE_DEPTH)
    w->err = TNK_EINVAL;
  if (w->err != TNK_OK || w->buf->err != TNK_OK || write_plain(w, value))
    return;
  switch (value.kind) {
  case TNK__VALUE_TEXT:
    write_text(w, value.as.text, value.n_text);
    return;
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
    write_list(w, value.as.list, depth);
    return;
  case TNK__VALUE_DICT:
    write_dict(w, value.as.dict, depth);
    return;
  default:
    w->err = TNK_EINVAL;
  }
}

int tnk__value_to_json(tnk__buf_t *buf, tnk__value_t value,
                       const tnk__value_json_t *how) {
  static const tnk__value_json_t plain;
  writer_t w = {.buf = buf, .how = how != NULL ? how : &plain};

  w.has_lines = w.how->indent != 0 || w.how->indent_text != NULL;
  w.between = w.how->between;
  w.behind_key = w.how->behind_key;
  if (w.between == NULL)
    w.between = w.how->is_compact || w.has_lines ? "," : ", ";
  if (w.behind_key == NULL)
    w.behind_key = w.how->is_compact ? ":" : ": ";
  write_value(&w, value, 0);
  return w.err != TNK_OK ? w.err : buf->err;
}
