/*
 * What Python's operators see. Values nest as deep as they were made: JSON has
 * a limit of its own, and what a template builds is bounded by its steps, so
 * that the depth is counted here and very deep ones are taken for unequal.
 */
#include <math.h>
#include <string.h>

#include "chat/value/hash.h"
#include "chat/value/value.h"

enum { MAX_DEPTH = 200 };

int tnk__value_whole(tnk__value_t value, int64_t *out) {
  if (value.kind == TNK__VALUE_BOOL)
    *out = value.as.is_true;
  else if (value.kind == TNK__VALUE_INT)
    *out = value.as.number;
  else
    return 0;
  return 1;
}

int tnk__value_number(tnk__value_t value, double *out) {
  int64_t whole;

  if (value.kind == TNK__VALUE_FLOAT)
    *out = value.as.real;
  else if (tnk__value_whole(value, &whole))
    *out = (double)whole;
  else
    return 0;
  return 1;
}

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

/* ---- Hashes ---- */

static size_t mix(size_t hash, size_t more) {
  hash = (hash ^ more) * (size_t)0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

static size_t hash_bytes(const char *text, size_t n) {
  size_t hash = n;
  size_t word;

  for (; n >= sizeof(word); text += sizeof(word), n -= sizeof(word)) {
    memcpy(&word, text, sizeof(word));
    hash = mix(hash, word);
  }
  for (word = 0; n > 0; n--)
    word = word << 8 | (unsigned char)*text++;
  return mix(hash, word);
}

static size_t hash_depth(tnk__value_t value, int depth) {
  size_t hash = 7;
  double real = 0;

  if (value.kind == TNK__VALUE_TEXT)
    return hash_bytes(value.as.text, value.n_text);
  if (tnk__value_number(value, &real)) {
    /* Zero has two signs and one hash; whole numbers that a double cannot tell
     * apart share theirs. */
    if (real == 0)
      real = 0;
    return hash_bytes((const char *)&real, sizeof(real));
  }
  if (value.kind == TNK__VALUE_TUPLE && depth < MAX_DEPTH) {
    for (size_t i = 0; i < value.as.list->n; i++)
      hash = mix(hash, hash_depth(value.as.list->items[i], depth + 1));
    return hash;
  }
  if (value.kind == TNK__VALUE_OBJECT)
    return mix(hash, (size_t)(uintptr_t)value.as.object);
  return mix(hash, value.kind);
}

size_t tnk__value_hash(tnk__value_t value) {
  return hash_depth(value, 0);
}

static int is_hashable(tnk__value_t value, int depth) {
  if (value.kind == TNK__VALUE_LIST || value.kind == TNK__VALUE_DICT ||
      depth > MAX_DEPTH)
    return 0;
  if (value.kind == TNK__VALUE_TUPLE)
    for (size_t i = 0; i < value.as.list->n; i++)
      if (!is_hashable(value.as.list->items[i], depth + 1))
        return 0;
  return 1;
}

int tnk__value_is_hashable(tnk__value_t value) {
  return is_hashable(value, 0);
}

/* ---- Equality and order ---- */

/* A whole number beside a double, exactly: -1, 0, 1, or 2 for NaN. */
static int compare_mixed(int64_t whole, double real) {
  double floor_of;
  int64_t other;

  if (isnan(real))
    return 2;
  if (real >= 9223372036854775808.0)
    return -1;
  if (real < -9223372036854775808.0)
    return 1;
  floor_of = floor(real);
  other = (int64_t)floor_of;
  if (whole != other)
    return whole < other ? -1 : 1;
  return floor_of < real ? -1 : 0;
}

/* Both are numbers. */
static int compare_numbers(tnk__value_t a, tnk__value_t b) {
  int64_t x = 0;
  int64_t y = 0;
  int order;

  if (tnk__value_whole(a, &x)) {
    if (tnk__value_whole(b, &y))
      return (x > y) - (x < y);
    return compare_mixed(x, b.as.real);
  }
  if (tnk__value_whole(b, &y)) {
    order = compare_mixed(y, a.as.real);
    return order == 2 ? 2 : -order;
  }
  if (isnan(a.as.real) || isnan(b.as.real))
    return 2;
  return (a.as.real > b.as.real) - (a.as.real < b.as.real);
}

static int is_number(tnk__value_t value) {
  return value.kind == TNK__VALUE_BOOL || value.kind == TNK__VALUE_INT ||
         value.kind == TNK__VALUE_FLOAT;
}

static int equal_depth(tnk__value_t a, tnk__value_t b, int depth);

static int equal_dicts(tnk__value_t a, tnk__value_t b, int depth) {
  const tnk__value_dict_t *d = a.as.dict;
  tnk__value_t other;

  if (d->n != b.as.dict->n)
    return 0;
  for (size_t i = 0; i < d->n; i++) {
    other = tnk__value_find(b, d->entries[i].key);
    /* An undefined member is there, and is not found. */
    if (!equal_depth(d->entries[i].value, other, depth + 1))
      return 0;
  }
  return 1;
}

static int equal_depth(tnk__value_t a, tnk__value_t b, int depth) {
  if (depth > MAX_DEPTH)
    return 0;
  if (is_number(a) && is_number(b))
    return compare_numbers(a, b) == 0;
  if (a.kind != b.kind)
    return 0;
  switch (a.kind) {
  case TNK__VALUE_TEXT:
    return a.n_text == b.n_text &&
           (a.n_text == 0 || memcmp(a.as.text, b.as.text, a.n_text) == 0);
  case TNK__VALUE_LIST:
  case TNK__VALUE_TUPLE:
    if (a.as.list->n != b.as.list->n)
      return 0;
    for (size_t i = 0; i < a.as.list->n; i++)
      if (!equal_depth(a.as.list->items[i], b.as.list->items[i], depth + 1))
        return 0;
    return 1;
  case TNK__VALUE_DICT:
    return equal_dicts(a, b, depth);
  case TNK__VALUE_OBJECT:
    return a.as.object == b.as.object;
  default:
    return 1;
  }
}

int tnk__value_equal(tnk__value_t a, tnk__value_t b) {
  return equal_depth(a, b, 0);
}

static int compare_texts(tnk__value_t a, tnk__value_t b) {
  const size_t n = a.n_text < b.n_text ? a.n_text : b.n_text;
  /* The order of UTF-8 is that of the characters. */
  const int order = n > 0 ? memcmp(a.as.text, b.as.text, n) : 0;

  if (order != 0)
    return order < 0 ? -1 : 1;
  return (a.n_text > b.n_text) - (a.n_text < b.n_text);
}

static int compare_depth(tnk__value_t a, tnk__value_t b, int *out, int depth) {
  const tnk__value_list_t *x;
  const tnk__value_list_t *y;

  if (is_number(a) && is_number(b)) {
    *out = compare_numbers(a, b);
    return 1;
  }
  if (a.kind != b.kind || depth > MAX_DEPTH)
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
