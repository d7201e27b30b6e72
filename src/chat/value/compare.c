/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/value/value.h"

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
