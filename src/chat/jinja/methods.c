/* SPDX-License-Identifier: MIT */
/* Methods of lists and dicts, and predicates of texts. */
#include "chat/jinja/lex/chars.h"
#include "chat/jinja/run.h"
#include "tnk/error.h"

#define METHOD(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

/* ---- Predicates of texts ---- */

/* Returns true if the text is not empty and all characters have one of the
 * classes. */
static tnk__value_t all_are(tnk__run_t *run, tnk__value_t text,
                            const tnk__char_class_t *classes, size_t n) {
  const char *p = text.as.text;
  const char *end = p + text.n_text;

  if (!tnk__charge(run, TNK__COST_CLASSIFY, text.n_text))
    return tnk__value_undefined();
  while (p < end) {
    const uint32_t c = tnk__char_next(&p);
    int is_one = 0;

    for (size_t i = 0; i < n && !is_one; i++)
      is_one = tnk__char_is(c, classes[i]);
    if (!is_one)
      return tnk__value_bool(0);
  }
  return tnk__value_bool(text.n_text > 0);
}

#define ALL_ARE(...)                                                           \
  do {                                                                         \
    const tnk__char_class_t classes[] = {__VA_ARGS__};                         \
    (void)v, (void)args;                                                       \
    return all_are(run, self, classes, sizeof(classes) / sizeof(classes[0]));  \
  } while (0)

METHOD(check_alnum) {
  ALL_ARE(TNK__CHAR_ALPHA, TNK__CHAR_DECIMAL, TNK__CHAR_DIGIT,
          TNK__CHAR_NUMERIC);
}

METHOD(check_alpha) {
  ALL_ARE(TNK__CHAR_ALPHA);
}

METHOD(check_decimal) {
  ALL_ARE(TNK__CHAR_DECIMAL);
}

METHOD(check_digit) {
  ALL_ARE(TNK__CHAR_DIGIT);
}

METHOD(check_numeric) {
  ALL_ARE(TNK__CHAR_NUMERIC);
}

METHOD(check_space) {
  (void)v, (void)args;
  return tnk__value_bool(
      tnk__charge(run, TNK__COST_SCAN, self.n_text) && self.n_text > 0 &&
      tnk__blank_prefix(self.as.text, self.n_text) == self.n_text);
}

METHOD(check_ascii) {
  (void)v, (void)args;
  if (!tnk__charge(run, TNK__COST_COUNT, self.n_text))
    return tnk__value_undefined();
  for (uint32_t i = 0; i < self.n_text; i++)
    if ((unsigned char)self.as.text[i] >= 0x80)
      return tnk__value_bool(0);
  return tnk__value_bool(1);
}

METHOD(check_printable) {
  const char *p = self.as.text;
  const char *end = p + self.n_text;

  (void)v, (void)args;
  if (!tnk__charge(run, TNK__COST_CLASSIFY, self.n_text))
    return tnk__value_undefined();
  while (p < end)
    if (tnk__char_is(tnk__char_next(&p), TNK__CHAR_HIDDEN))
      return tnk__value_bool(0);
  return tnk__value_bool(1);
}

/* Returns true if the text has characters of one case and none of the other
 * case. */
static tnk__value_t one_case(tnk__run_t *run, tnk__value_t text,
                             tnk__char_class_t wanted,
                             tnk__char_class_t other) {
  const char *p = text.as.text;
  const char *end = p + text.n_text;
  int found = 0;

  if (!tnk__charge(run, TNK__COST_CLASSIFY, text.n_text))
    return tnk__value_undefined();
  while (p < end) {
    const uint32_t c = tnk__char_next(&p);

    if (tnk__char_is(c, other) || tnk__char_is(c, TNK__CHAR_TITLE))
      return tnk__value_bool(0);
    found |= tnk__char_is(c, wanted);
  }
  return tnk__value_bool(found);
}

METHOD(check_lower) {
  (void)v, (void)args;
  return one_case(run, self, TNK__CHAR_LOWER, TNK__CHAR_UPPER);
}

METHOD(check_upper) {
  (void)v, (void)args;
  return one_case(run, self, TNK__CHAR_UPPER, TNK__CHAR_LOWER);
}

METHOD(check_title) {
  const char *p = self.as.text;
  const char *end = p + self.n_text;
  int in_word = 0;
  int found = 0;

  (void)v, (void)args;
  if (!tnk__charge(run, TNK__COST_CLASSIFY, self.n_text))
    return tnk__value_undefined();
  while (p < end) {
    const uint32_t c = tnk__char_next(&p);
    const int is_big =
        tnk__char_is(c, TNK__CHAR_UPPER) || tnk__char_is(c, TNK__CHAR_TITLE);
    const int is_small = tnk__char_is(c, TNK__CHAR_LOWER);

    if ((is_big && in_word) || (is_small && !in_word))
      return tnk__value_bool(0);
    in_word = is_big || is_small;
    found |= in_word;
  }
  return tnk__value_bool(found);
}

const tnk__builtin_t tnk__methods_class[] = {
    {"isalnum", "/", 0, check_alnum},
    {"isalpha", "/", 0, check_alpha},
    {"isascii", "/", 0, check_ascii},
    {"isdecimal", "/", 0, check_decimal},
    {"isdigit", "/", 0, check_digit},
    {"islower", "/", 0, check_lower},
    {"isnumeric", "/", 0, check_numeric},
    {"isprintable", "/", 0, check_printable},
    {"isspace", "/", 0, check_space},
    {"istitle", "/", 0, check_title},
    {"isupper", "/", 0, check_upper},
    {NULL, NULL, 0, NULL},
};

/* ---- Dicts ---- */

static tnk__value_t view(tnk__run_t *run, tnk__value_t dict, char kind) {
  tnk__view_t *v = tnk__heap_alloc(run->heap, sizeof(*v));

  if (v != NULL)
    *v = (tnk__view_t){dict, kind};
  return tnk__object(TNK__OBJECT_VIEW, v);
}

METHOD(items) {
  (void)v, (void)args;
  return view(run, self, 'i');
}

METHOD(keys) {
  (void)v, (void)args;
  return view(run, self, 'k');
}

METHOD(values) {
  (void)v, (void)args;
  return view(run, self, 'v');
}

METHOD(get) {
  (void)args;
  if (!tnk__can_be_key(run, v[0]))
    return tnk__bad_type(run, "the name of a member is needed", v[0]);
  if (tnk__value_has(self, v[0]))
    return tnk__value_find(self, v[0]);
  return tnk__is_given(v[1]) ? v[1] : tnk__value_none();
}

METHOD(same) {
  (void)run, (void)v, (void)args;
  return self; /* values never change, so this is its own copy */
}

const tnk__builtin_t tnk__methods_dict[] = {
    {"copy", "/", 0, same},     {"get", "/key default", 1, get},
    {"items", "/", 0, items},   {"keys", "/", 0, keys},
    {"values", "/", 0, values}, {NULL, NULL, 0, NULL},
};

/* ---- Lists ---- */

METHOD(count) {
  int64_t n = 0;

  (void)args;
  if (!tnk__charge(run, TNK__COST_ITEM, self.as.list->n))
    return tnk__value_undefined();
  for (size_t i = 0; i < self.as.list->n &&
                     tnk__charge_equal(run, self.as.list->items[i], v[0]);
       i++)
    n += tnk__value_equal(self.as.list->items[i], v[0]);
  return tnk__value_int(n);
}

METHOD(index_of) {
  const int64_t n = (int64_t)self.as.list->n;
  int64_t from;
  int64_t to;

  (void)args;
  if (!tnk__arg_whole(run, v[1], 0, &from) ||
      !tnk__arg_whole(run, v[2], n, &to))
    return tnk__value_undefined();
  if (!tnk__charge(run, TNK__COST_ITEM, (uint64_t)n))
    return tnk__value_undefined();
  from = from < 0 ? (from + n < 0 ? 0 : from + n) : from;
  to = to < 0 ? to + n : to > n ? n : to;
  for (; from < to && tnk__charge_equal(run, self.as.list->items[from], v[0]);
       from++)
    if (tnk__value_equal(self.as.list->items[from], v[0]))
      return tnk__value_int(from);
  return tnk__fail(run, TNK_EINVAL, "the list has no such item");
}

const tnk__builtin_t tnk__methods_list[] = {
    {"copy", "/", 0, same},
    {"count", "/value", 1, count},
    {"index", "/value start stop", 1, index_of},
    {NULL, NULL, 0, NULL},
};

const tnk__builtin_t tnk__methods_tuple[] = {
    {"count", "/value", 1, count},
    {"index", "/value start stop", 1, index_of},
    {NULL, NULL, 0, NULL},
};
