/* SPDX-License-Identifier: MIT */
/* Filters that sort, group or combine items. */
#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define FILTER(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

/* An item and its sort key. */
typedef struct {
  tnk__value_t key, item;
} row_t;

static void merge(tnk__run_t *run, row_t *rows, row_t *spare, size_t mid,
                  size_t n, tnk__op_t op) {
  size_t i = 0;
  size_t k = mid;

  for (size_t at = 0; at < n; at++) {
    /* Take the item from the right only if it is strictly less, to keep the
     * sort stable. */
    const int from_right =
        i == mid || (k < n && tnk__compare(run, op, rows[k].key, rows[i].key));

    spare[at] = from_right ? rows[k] : rows[i];
    k += (size_t)from_right;
    i += (size_t)!from_right;
  }
  for (size_t at = 0; at < n; at++)
    rows[at] = spare[at];
}

/* A stable merge sort, as in Python. */
static void sort_rows(tnk__run_t *run, row_t *rows, row_t *spare, size_t n,
                      tnk__op_t op) {
  if (n < 2 || !tnk__charge(run, TNK__COST_ITEM, n))
    return;
  sort_rows(run, rows, spare, n / 2, op);
  sort_rows(run, rows + n / 2, spare, n - n / 2, op);
  merge(run, rows, spare, n / 2, n, op);
}

/* Return a new list with the items sorted by their keys. */
static tnk__value_t sorted(tnk__run_t *run, tnk__value_t items,
                           tnk__value_t keys, int is_reverse) {
  const tnk__value_t list = tnk__value_list(run->heap);
  const size_t n = items.kind == TNK__VALUE_LIST ? items.as.list->n : 0;
  row_t *rows = tnk__heap_alloc(run->heap, 2 * n * sizeof(*rows) + 1);

  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  for (size_t i = 0; i < n; i++)
    rows[i] = (row_t){keys.as.list->items[i], items.as.list->items[i]};
  sort_rows(run, rows, rows + n, n, is_reverse ? TNK__OP_GT : TNK__OP_LT);
  for (size_t i = 0; i < n; i++)
    tnk__value_append(run->heap, list, rows[i].item);
  return list;
}

/* The sort key of an item: its attributes, separated by commas, as a tuple.
 * Undefined ones in a tuple are equal, so they need no order. */
static tnk__value_t key_of(tnk__run_t *run, tnk__value_t item,
                           tnk__value_t attribute, int as_is) {
  const tnk__value_t key = tnk__value_tuple(run->heap);
  size_t from = 0;
  size_t to;

  if (attribute.kind != TNK__VALUE_TEXT) {
    item = tnk__fold(run, tnk__pick(run, item, attribute), as_is);
    tnk__value_append(run->heap, key, item);
    return key;
  }
  for (; from <= attribute.n_text; from = to + 1) {
    to = tnk__text_find(run, attribute, tnk__value_text(",", 1), from);
    if (to == SIZE_MAX)
      to = attribute.n_text;
    tnk__value_append(
        run->heap, key,
        tnk__fold(run,
                  tnk__pick(run, item, tnk__text_part(attribute, from, to)),
                  as_is));
  }
  return key;
}

FILTER(sort) {
  const int as_is = tnk__arg_truth(v[1], 0);
  const tnk__value_t keys = tnk__value_list(run->heap);

  (void)args;
  self = tnk__list_of(run, self);
  for (size_t i = 0; run->err == TNK_OK && i < self.as.list->n; i++)
    tnk__value_append(run->heap, keys,
                      key_of(run, self.as.list->items[i], v[2], as_is));
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  return sorted(run, self, keys, tnk__arg_truth(v[0], 0));
}

static tnk__value_t pair(tnk__run_t *run, tnk__value_t a, tnk__value_t b) {
  const tnk__value_t tuple = tnk__value_tuple(run->heap);

  tnk__value_append(run->heap, tuple, a);
  tnk__value_append(run->heap, tuple, b);
  return tuple;
}

static tnk__value_t pairs_of(tnk__run_t *run, tnk__value_t dict) {
  const tnk__value_t list = tnk__value_list(run->heap);

  if (!tnk__charge(run, 2 * TNK__COST_ITEM, dict.as.dict->n))
    return list;
  for (size_t i = 0; i < dict.as.dict->n; i++)
    tnk__value_append(run->heap, list,
                      pair(run, dict.as.dict->entries[i].key,
                           dict.as.dict->entries[i].value));
  return list;
}

FILTER(dictsort) {
  const int as_is = tnk__arg_truth(v[0], 0);
  const int by_value = tnk__is_given(v[1]) && tnk__value_is(v[1], "value");
  const tnk__value_t keys = tnk__value_list(run->heap);
  tnk__value_t pairs;

  (void)args;
  if (self.kind != TNK__VALUE_DICT)
    return tnk__bad_type(run, "\"dictsort\" needs a dict", self);
  if (tnk__is_given(v[1]) && !by_value && !tnk__value_is(v[1], "key"))
    return tnk__fail(run, TNK_EINVAL, "\"dictsort\" goes by key or value");
  pairs = pairs_of(run, self);
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  for (size_t i = 0; i < pairs.as.list->n; i++)
    tnk__value_append(
        run->heap, keys,
        tnk__fold(run, pairs.as.list->items[i].as.list->items[by_value],
                  as_is));
  return sorted(run, pairs, keys, tnk__arg_truth(v[2], 0));
}

FILTER(items) {
  (void)v, (void)args;
  if (self.kind == TNK__VALUE_UNDEFINED && self.spare == 0)
    return tnk__stream(run, tnk__value_list(run->heap));
  if (self.kind != TNK__VALUE_DICT) {
    tnk__bad_type(run, "\"items\" needs a dict", self);
    return tnk__stream(run, tnk__value_list(run->heap));
  }
  return tnk__stream(run, pairs_of(run, self));
}

FILTER(list) {
  (void)v, (void)args;
  return tnk__list_of(run, self);
}

static tnk__value_t reversed_text(tnk__run_t *run, tnk__value_t text) {
  const char *p = text.as.text + text.n_text;
  const char *end;
  tnk__buf_t buf;

  if (!tnk__charge(run, TNK__COST_WRITE, text.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  while (p > text.as.text) {
    end = p;
    tnk__char_prev(&p);
    tnk__buf_append(&buf, p, (size_t)(end - p));
  }
  return tnk__scratch_text(run, &buf);
}

FILTER(reverse) {
  const int is_stream = tnk__is_object(self, TNK__OBJECT_STREAM);
  const tnk__value_t list = tnk__value_list(run->heap);

  (void)v, (void)args;
  if (self.kind == TNK__VALUE_TEXT)
    return reversed_text(run, self);
  self = tnk__list_of(run, self);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  for (size_t i = self.as.list->n; i > 0; i--)
    tnk__value_append(run->heap, list, self.as.list->items[i - 1]);
  return is_stream ? list : tnk__stream(run, list);
}

FILTER(groupby) {
  const int as_is = tnk__arg_truth(v[2], 0);
  const tnk__value_t groups = tnk__value_list(run->heap);
  const tnk__value_t keys = tnk__value_list(run->heap);
  tnk__value_t group = tnk__value_undefined();
  tnk__value_t previous = tnk__value_undefined();
  tnk__value_t key;

  (void)args;
  self = tnk__list_of(run, self);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  if (tnk__is_given(v[1]))
    return tnk__fail(run, TNK_EUNSUPPORTED,
                     "\"groupby\" takes no default here");
  for (size_t i = 0; i < self.as.list->n; i++)
    tnk__value_append(
        run->heap, keys,
        tnk__fold(run, tnk__pick(run, self.as.list->items[i], v[0]), as_is));
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  self = sorted(run, self, keys, 0);
  for (size_t i = 0; tnk__is_fine(run) && i < self.as.list->n; i++) {
    key = tnk__pick(run, self.as.list->items[i], v[0]);
    if (group.kind != TNK__VALUE_LIST ||
        !tnk__compare(run, TNK__OP_EQ, tnk__fold(run, key, as_is), previous)) {
      group = tnk__value_list(run->heap);
      previous = tnk__fold(run, key, as_is);
      key = pair(run, key, group);
      key.spare = 1; /* has the attributes "grouper" and "list" */
      tnk__value_append(run->heap, groups, key);
    }
    tnk__value_append(run->heap, group, self.as.list->items[i]);
  }
  return groups;
}

FILTER(batch) {
  const tnk__value_t rows = tnk__value_list(run->heap);
  tnk__value_t row = tnk__value_undefined();
  tnk__iter_t iter;
  tnk__value_t item;
  int64_t n;

  (void)args;
  if (!tnk__arg_whole(run, v[0], 0, &n) || !tnk__iter_begin(run, &iter, self))
    return tnk__stream(run, rows);
  while (tnk__iter_next(run, &iter, &item)) {
    if (row.kind != TNK__VALUE_LIST || (int64_t)row.as.list->n == n) {
      row = tnk__value_list(run->heap);
      tnk__value_append(run->heap, rows, row);
    }
    if (row.kind != TNK__VALUE_LIST)
      break;
    tnk__value_append(run->heap, row, item);
  }
  if (tnk__is_given(v[1]) && v[1].kind != TNK__VALUE_NONE)
    while (row.kind == TNK__VALUE_LIST && (int64_t)row.as.list->n < n &&
           tnk__charge(run, TNK__COST_ITEM, 1) && tnk__is_fine(run))
      tnk__value_append(run->heap, row, v[1]);
  return tnk__stream(run, rows);
}

FILTER(slice) {
  const tnk__value_t rows = tnk__value_list(run->heap);
  const int fills = tnk__is_given(v[1]) && v[1].kind != TNK__VALUE_NONE;
  tnk__value_t row;
  int64_t n;
  size_t each;
  size_t more;
  size_t at = 0;

  (void)args;
  self = tnk__list_of(run, self);
  if (run->err == TNK_OK && tnk__arg_whole(run, v[0], 0, &n)) {
    if (n == 0)
      tnk__fail(run, TNK_EINVAL, "nothing can be cut into no slices");
    each = n > 0 ? self.as.list->n / (size_t)n : 0;
    more = n > 0 ? self.as.list->n % (size_t)n : 0;
    for (int64_t i = 0;
         i < n && tnk__charge(run, 2 * TNK__COST_ITEM, 1) && tnk__is_fine(run);
         i++) {
      row = tnk__value_list(run->heap);
      for (size_t k = 0; k < each + ((size_t)i < more); k++)
        tnk__value_append(run->heap, row, self.as.list->items[at++]);
      if (fills && (size_t)i >= more)
        tnk__value_append(run->heap, row, v[1]);
      tnk__value_append(run->heap, rows, row);
    }
  }
  return tnk__stream(run, rows);
}

const tnk__builtin_t tnk__filters_list[] = {
    {"items", "", 0, items},
    {"list", "", 0, list},
    {"sort", "reverse case_sensitive attribute", 0, sort},
    {"dictsort", "case_sensitive by reverse", 0, dictsort},
    {"reverse", "", 0, reverse},
    {"groupby", "attribute default case_sensitive", 1, groupby},
    {"batch", "linecount fill_with", 1, batch},
    {"slice", "slices fill_with", 1, slice},
    {NULL, NULL, 0, NULL},
};
