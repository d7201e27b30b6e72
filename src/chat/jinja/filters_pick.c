/* SPDX-License-Identifier: MIT */
/* Filters that select items, or a part of each item. */
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define FILTER(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

tnk__value_t tnk__fold(tnk__run_t *run, tnk__value_t value, int as_is) {
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

tnk__value_t tnk__pick(tnk__run_t *run, tnk__value_t item,
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

tnk__value_t tnk__pick_all(tnk__run_t *run, tnk__value_t items,
                           tnk__value_t attribute) {
  const tnk__value_t list = tnk__value_list(run->heap);
  tnk__iter_t iter;
  tnk__value_t item;

  if (!tnk__iter_begin(run, &iter, items))
    return list;
  while (tnk__iter_next(run, &iter, &item)) {
    item = tnk__pick(run, item, attribute);
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
    item = tnk__pick(run, item, attribute);
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
      value = by_attribute ? tnk__pick(run, item, args->items[0]) : item;
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
      key = tnk__fold(run, tnk__pick(run, item, v[1]), as_is);
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
    key = tnk__fold(run, tnk__pick(run, item, v[1]), as_is);
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
    total = tnk__binary(run, TNK__OP_ADD, total, tnk__pick(run, item, v[0]));
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
