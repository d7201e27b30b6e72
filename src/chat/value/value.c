/* SPDX-License-Identifier: MIT */
#include "chat/value/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

void tnk__heap_init(tnk__heap_t *heap, const tnk_allocator_t *alloc,
                    size_t max) {
  tnk__arena_init(&heap->arena, alloc, max);
  heap->err = TNK_OK;
}

void tnk__heap_deinit(tnk__heap_t *heap) {
  tnk__arena_deinit(&heap->arena);
}

void *tnk__heap_alloc(tnk__heap_t *heap, size_t size) {
  void *data =
      heap->err != TNK_OK ? NULL : tnk__arena_alloc(&heap->arena, size);

  /* The arena does not report which of the two it was. A size that can never
   * fit is too big. */
  if (data == NULL && heap->err == TNK_OK)
    heap->err =
        size > heap->arena.max - heap->arena.total ? TNK_ETOOBIG : TNK_ENOMEM;
  return data;
}

tnk__value_t tnk__value_undefined(void) {
  return (tnk__value_t){.kind = TNK__VALUE_UNDEFINED};
}

tnk__value_t tnk__value_none(void) {
  return (tnk__value_t){.kind = TNK__VALUE_NONE};
}

tnk__value_t tnk__value_bool(int is_true) {
  return (tnk__value_t){.kind = TNK__VALUE_BOOL, .as.is_true = is_true != 0};
}

tnk__value_t tnk__value_int(int64_t number) {
  return (tnk__value_t){.kind = TNK__VALUE_INT, .as.number = number};
}

tnk__value_t tnk__value_float(double real) {
  return (tnk__value_t){.kind = TNK__VALUE_FLOAT, .as.real = real};
}

tnk__value_t tnk__value_text(const char *text, size_t n) {
  return (tnk__value_t){
      .kind = TNK__VALUE_TEXT, .n_text = (uint32_t)n, .as.text = text};
}

tnk__value_t tnk__value_copy_text(tnk__heap_t *heap, const char *text,
                                  size_t n) {
  char *copy;

  if (n == 0)
    return tnk__value_text("", 0);
  if (n > UINT32_MAX) {
    if (heap->err == TNK_OK)
      heap->err = TNK_ETOOBIG;
    return tnk__value_undefined();
  }
  copy = tnk__heap_alloc(heap, n);
  if (copy == NULL)
    return tnk__value_undefined();
  memcpy(copy, text, n);
  return tnk__value_text(copy, n);
}

/* ---- Lists ---- */

static tnk__value_t make_list(tnk__heap_t *heap, uint8_t kind) {
  tnk__value_t value = {.kind = kind};

  value.as.list = tnk__heap_alloc(heap, sizeof(*value.as.list));
  if (value.as.list == NULL)
    return tnk__value_undefined();
  *value.as.list = (tnk__value_list_t){.items = NULL};
  return value;
}

tnk__value_t tnk__value_list(tnk__heap_t *heap) {
  return make_list(heap, TNK__VALUE_LIST);
}

tnk__value_t tnk__value_tuple(tnk__heap_t *heap) {
  return make_list(heap, TNK__VALUE_TUPLE);
}

void tnk__value_append(tnk__heap_t *heap, tnk__value_t list,
                       tnk__value_t item) {
  tnk__value_list_t *l = list.as.list;
  tnk__value_t *items;
  size_t cap;

  if (list.kind != TNK__VALUE_LIST && list.kind != TNK__VALUE_TUPLE)
    return;
  if (l->n == l->cap) {
    cap = l->cap == 0 ? 4 : l->cap * 2;
    items = tnk__heap_alloc(heap, cap * sizeof(*items));
    if (items == NULL)
      return;
    if (l->n > 0)
      memcpy(items, l->items, l->n * sizeof(*items));
    l->items = items;
    l->cap = cap;
  }
  l->items[l->n++] = item;
}

uint32_t tnk__value_char(const char **at) {
  const unsigned char *p = (const unsigned char *)*at;

  if (p[0] < 0x80) {
    *at += 1;
    return p[0];
  }
  if (p[0] < 0xe0) {
    *at += 2;
    return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
  }
  if (p[0] < 0xf0) {
    *at += 3;
    return (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
  }
  *at += 4;
  return (p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
         (p[3] & 0x3fu);
}

/* ---- Truth and order ---- */

int tnk__value_truth(tnk__value_t value) {
  switch (value.kind) {
  case TNK__VALUE_BOOL:
    return value.as.is_true;
  case TNK__VALUE_INT:
    return value.as.number != 0;
  case TNK__VALUE_FLOAT:
    return value.as.real != 0;
  case TNK__VALUE_TEXT:
    return value.n_text > 0;
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
    return value.as.list->n > 0;
  case TNK__VALUE_DICT:
    return value.as.dict->n > 0;
  case TNK__VALUE_OBJECT:
    return 1;
  default:
    return 0;
  }
}

static int compare_texts(tnk__value_t a, tnk__value_t b) {
  const size_t n = a.n_text < b.n_text ? a.n_text : b.n_text;
  /* The bytewise order of UTF-8 is the order of code points. */
  const int order = n > 0 ? memcmp(a.as.text, b.as.text, n) : 0;

  if (order != 0)
    return order < 0 ? -1 : 1;
  return (a.n_text > b.n_text) - (a.n_text < b.n_text);
}

static int compare_depth(tnk__value_t a, tnk__value_t b, int *out, int depth) {
  const tnk__value_list_t *x;
  const tnk__value_list_t *y;

  if (tnk__value_is_number(a) && tnk__value_is_number(b)) {
    *out = tnk__value_compare_numbers(a, b);
    return 1;
  }
  if (a.kind != b.kind || depth > TNK__VALUE_DEPTH)
    return 0;
  if (a.kind == TNK__VALUE_TEXT) {
    *out = compare_texts(a, b);
    return 1;
  }
  if (a.kind != TNK__VALUE_LIST && a.kind != TNK__VALUE_TUPLE)
    return 0;
  x = a.as.list;
  y = b.as.list;
  for (size_t i = 0; i < x->n && i < y->n; i++)
    if (!tnk__value_equal(x->items[i], y->items[i]))
      return compare_depth(x->items[i], y->items[i], out, depth + 1);
  *out = (x->n > y->n) - (x->n < y->n);
  return 1;
}

int tnk__value_compare(tnk__value_t a, tnk__value_t b, int *out) {
  return compare_depth(a, b, out, 0);
}

/* ---- Errors ---- */

int tnk__why(tnk__why_t *why, int code, uint32_t line, const char *format,
             ...) {
  size_t at = 0;
  va_list args;

  if (why == NULL)
    return code;
  why->code = code;
  why->line = line;
  if (line > 0)
    at = (size_t)snprintf(why->text, sizeof(why->text),
                          "line %lu: ", (unsigned long)line);
  va_start(args, format);
  vsnprintf(why->text + at, sizeof(why->text) - at, format, args);
  va_end(args);
  /* Truncation may have split a character. */
  tnk__utf8_repair(why->text);
  for (char *p = why->text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
  return code;
}
