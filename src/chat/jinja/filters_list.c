/* SPDX-License-Identifier: MIT */
/* Filters that sort, group or combine items. */
#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define FILTER(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

/* Prepare a value for comparison: texts in lower case unless `as_is`. */
static tnk__value_t fold(tnk__run_t *run, tnk__value_t value, int as_is) {
  return as_is || value.kind != TNK__VALUE_TEXT ? value
                                                : tnk__text_lower(run, value);
}

/* The part of a path up to the next dot. It is a number if it has only
 * digits. */
static tnk__value_t path_part(tnk__value_t path, size_t from, size_t *to) {
  int64_t number = 0;
  int is_number = 1;

  for (*to = from; *to < path.n_text && path.as.text[*to] != '.'; ++*to) {
    const char c = path.as.text[*to];

    is_number &= c >= '0' && c <= '9';
    if (is_number && number < INT64_MAX / 100)
      number = number * 10 + (c - '0');
  }
  return is_number && *to > from ? tnk__value_int(number)
                                 : tnk__text_part(path, from, *to);
}

/* Get an attribute of an item: a number, or names separated by dots. */
static tnk__value_t pick(tnk__run_t *run, tnk__value_t item,
                         tnk__value_t attribute) {
  size_t from = 0;
  size_t to;

  if (attribute.kind == TNK__VALUE_NONE || !tnk__is_given(attribute))
    return item;
  if (attribute.kind == TNK__VALUE_INT)
    return tnk__getitem(run, item, attribute);
  if (attribute.kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "an attribute is a name or number", attribute);
  if (!tnk__charge(run, TNK__COST_COUNT, attribute.n_text))
    return tnk__value_undefined();
  do {
    item = tnk__getitem(run, item, path_part(attribute, from, &to));
    from = to + 1;
  } while (to < attribute.n_text);
  return item;
}

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
    item = fold(run, pick(run, item, attribute), as_is);
    tnk__value_append(run->heap, key, item);
    return key;
  }
  for (; from <= attribute.n_text; from = to + 1) {
    to = tnk__text_find(run, attribute, tnk__value_text(",", 1), from);
    if (to == SIZE_MAX)
      to = attribute.n_text;
    tnk__value_append(
        run->heap, key,
        fold(run, pick(run, item, tnk__text_part(attribute, from, to)), as_is));
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
        fold(run, pairs.as.list->items[i].as.list->items[by_value], as_is));
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
        fold(run, pick(run, self.as.list->items[i], v[0]), as_is));
  if (!tnk__is_fine(run))
    return tnk__value_undefined();
  self = sorted(run, self, keys, 0);
  for (size_t i = 0; tnk__is_fine(run) && i < self.as.list->n; i++) {
    key = pick(run, self.as.list->items[i], v[0]);
    if (group.kind != TNK__VALUE_LIST ||
        !tnk__compare(run, TNK__OP_EQ, fold(run, key, as_is), previous)) {
      group = tnk__value_list(run->heap);
      previous = fold(run, key, as_is);
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

/* ---- Choosing items ---- */

/* Filters that select items, or a part of each item. */

tnk__value_t tnk__pick_all(tnk__run_t *run, tnk__value_t items,
                           tnk__value_t attribute) {
  const tnk__value_t list = tnk__value_list(run->heap);
  tnk__iter_t iter;
  tnk__value_t item;

  if (!tnk__iter_begin(run, &iter, items))
    return list;
  while (tnk__iter_next(run, &iter, &item)) {
    item = pick(run, item, attribute);
    if (run->err != TNK_OK)
      break;
    tnk__value_append(run->heap, list, item);
  }
  return list;
}

static tnk__value_t named(const tnk__args_t *args, const char *name) {
  for (size_t i = 0; i < args->n_named; i++)
    if (tnk__value_is(args->names[i], name))
      return args->values[i];
  return tnk__missing();
}

/* The arguments after the first n. */
static tnk__args_t behind(const tnk__args_t *args, size_t n) {
  return (tnk__args_t){args->items + n, args->n - n, args->names, args->values,
                       args->n_named};
}

static void map_attribute(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t list,
                          const tnk__args_t *args) {
  const tnk__value_t attribute = named(args, "attribute");
  const tnk__value_t otherwise = named(args, "default");
  tnk__value_t item;

  if (args->n_named != (size_t)1 + (size_t)tnk__is_given(otherwise)) {
    tnk__fail(run, TNK_EINVAL, "\"map\" takes a filter, or \"attribute\"");
    return;
  }
  while (tnk__iter_next(run, iter, &item)) {
    item = pick(run, item, attribute);
    if (run->err != TNK_OK)
      return;
    if (item.kind == TNK__VALUE_UNDEFINED && tnk__is_given(otherwise) &&
        otherwise.kind != TNK__VALUE_NONE)
      item = otherwise;
    tnk__value_append(run->heap, list, item);
  }
}

static void map_filter(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t list,
                       const tnk__args_t *args) {
  const tnk__args_t rest = behind(args, 1);
  const tnk__builtin_t *known =
      args->items[0].kind == TNK__VALUE_TEXT
          ? tnk__builtin_among(run->tables->filters, args->items[0])
          : NULL;
  tnk__value_t item;

  if (known == NULL) {
    tnk__fail(run, TNK_EUNSUPPORTED,
              "\"map\" is given no filter that is "
              "known");
    return;
  }
  while (tnk__iter_next(run, iter, &item)) {
    item = tnk__builtin_call(run, known, item, &rest);
    if (run->err != TNK_OK)
      return;
    tnk__value_append(run->heap, list, item);
  }
}

FILTER(map) {
  const tnk__value_t list = tnk__value_list(run->heap);
  tnk__iter_t iter;

  (void)v;
  if (!tnk__truth(self))
    return tnk__stream(run, list);
  if (tnk__iter_begin(run, &iter, self)) {
    if (args->n == 0 && tnk__is_given(named(args, "attribute")))
      map_attribute(run, &iter, list, args);
    else if (args->n == 0)
      tnk__fail(run, TNK_EINVAL, "\"map\" needs a filter");
    else
      map_filter(run, &iter, list, args);
  }
  return tnk__stream(run, list);
}

/* select and reject, by the item or by an attribute. */
static tnk__value_t choose(tnk__run_t *run, tnk__value_t self,
                           const tnk__args_t *args, int by_attribute,
                           int wanted) {
  const tnk__value_t list = tnk__value_list(run->heap);
  const size_t n = (size_t)by_attribute;
  const tnk__builtin_t *known = NULL;
  tnk__iter_t iter;
  tnk__value_t item;
  tnk__value_t value;
  tnk__args_t rest;

  if (!tnk__truth(self))
    return tnk__stream(run, list);
  if (args->n < n)
    tnk__fail(run, TNK_EINVAL, "the name of an attribute is missing");
  rest = behind(args, args->n > n ? n + 1 : n);
  if (args->n > n) {
    known = args->items[n].kind == TNK__VALUE_TEXT
                ? tnk__builtin_find(run->tables->tests, args->items[n])
                : NULL;
    if (known == NULL)
      tnk__fail(run, TNK_EUNSUPPORTED, "there is no test of this name");
  }
  if (run->err == TNK_OK && tnk__iter_begin(run, &iter, self))
    while (tnk__iter_next(run, &iter, &item)) {
      value = by_attribute ? pick(run, item, args->items[0]) : item;
      if (known != NULL && run->err == TNK_OK)
        value = tnk__builtin_call(run, known, value, &rest);
      if (run->err != TNK_OK)
        break;
      if (tnk__truth(value) == wanted)
        tnk__value_append(run->heap, list, item);
    }
  return tnk__stream(run, list);
}

FILTER(select_items) {
  (void)v;
  return choose(run, self, args, 0, 1);
}

FILTER(reject) {
  (void)v;
  return choose(run, self, args, 0, 0);
}

FILTER(selectattr) {
  (void)v;
  return choose(run, self, args, 1, 1);
}

FILTER(rejectattr) {
  (void)v;
  return choose(run, self, args, 1, 0);
}

FILTER(unique) {
  const int as_is = tnk__arg_truth(v[0], 0);
  const tnk__value_t list = tnk__value_list(run->heap);
  const tnk__value_t seen = tnk__value_dict(run->heap);
  tnk__iter_t iter;
  tnk__value_t item;
  tnk__value_t key;

  (void)args;
  if (tnk__iter_begin(run, &iter, self))
    while (tnk__iter_next(run, &iter, &item)) {
      key = fold(run, pick(run, item, v[1]), as_is);
      if (run->err == TNK_OK && !tnk__can_be_key(run, key))
        tnk__bad_type(run, "lists and dicts have no \"unique\"", key);
      if (run->err != TNK_OK)
        break;
      if (!tnk__value_has(seen, key)) {
        tnk__value_put(run->heap, seen, key, tnk__value_none());
        tnk__value_append(run->heap, list, item);
      }
    }
  return tnk__stream(run, list);
}

FILTER(first) {
  tnk__iter_t iter;
  tnk__value_t item;

  (void)v, (void)args;
  if (!tnk__iter_begin(run, &iter, self) || !tnk__iter_next(run, &iter, &item))
    return tnk__value_undefined();
  return item;
}

FILTER(last) {
  const int64_t n = tnk__length(run, self);

  (void)v, (void)args;
  if (n < 0)
    return tnk__bad_type(run, "\"last\" needs a list", self);
  self = tnk__list_of(run, self);
  return n == 0 || run->err != TNK_OK ? tnk__value_undefined()
                                      : self.as.list->items[n - 1];
}

/* The minimum or the maximum. */
static tnk__value_t extreme(tnk__run_t *run, tnk__value_t self,
                            const tnk__value_t *v, tnk__op_t op) {
  const int as_is = tnk__arg_truth(v[0], 0);
  tnk__value_t best = tnk__value_undefined();
  tnk__value_t best_key = tnk__value_undefined();
  tnk__iter_t iter;
  tnk__value_t item;
  tnk__value_t key;
  int has_one = 0;

  if (!tnk__iter_begin(run, &iter, self))
    return best;
  while (tnk__iter_next(run, &iter, &item)) {
    key = fold(run, pick(run, item, v[1]), as_is);
    if (!has_one || tnk__compare(run, op, key, best_key)) {
      best = item;
      best_key = key;
    }
    has_one = 1;
  }
  return best;
}

FILTER(min) {
  (void)args;
  return extreme(run, self, v, TNK__OP_LT);
}

FILTER(max) {
  (void)args;
  return extreme(run, self, v, TNK__OP_GT);
}

FILTER(sum) {
  tnk__value_t total = tnk__is_given(v[1]) ? v[1] : tnk__value_int(0);
  tnk__iter_t iter;
  tnk__value_t item;

  (void)args;
  if (total.kind == TNK__VALUE_TEXT)
    return tnk__fail(run, TNK_EINVAL, "texts have no sum");
  if (!tnk__iter_begin(run, &iter, self))
    return total;
  while (tnk__iter_next(run, &iter, &item))
    total = tnk__binary(run, TNK__OP_ADD, total, pick(run, item, v[0]));
  return total;
}

const tnk__builtin_t tnk__filters_pick[] = {
    {"map", NULL, 0, map},
    {"select", NULL, 0, select_items},
    {"reject", NULL, 0, reject},
    {"selectattr", NULL, 0, selectattr},
    {"rejectattr", NULL, 0, rejectattr},
    {"unique", "case_sensitive attribute", 0, unique},
    {"first", "", 0, first},
    {"last", "", 0, last},
    {"min", "case_sensitive attribute", 0, min},
    {"max", "case_sensitive attribute", 0, max},
    {"sum", "attribute start", 0, sum},
    {NULL, NULL, 0, NULL},
};
