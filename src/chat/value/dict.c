/* SPDX-License-Identifier: MIT */
/*
 * Dicts with the hashes and the equality of Python. Values may be nested
 * deeply: JSON has a limit, but a template is limited only by its steps. The
 * depth is therefore counted here. Values beyond the limit are unequal.
 */
#include <string.h>

#include "chat/value/value.h"
#include "tnk/error.h"

/* Up to this many members are searched linearly. */
enum { FEW = 8 };

/* ---- Hashes ---- */

/* Of 64 bits everywhere: the low half of a small number, as a double, is zero,
 * so its hash must take the low bits from the high half. */
static uint64_t mix(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static uint64_t hash_bytes(const char *text, size_t n, uint64_t seed) {
  uint64_t hash = n ^ seed;
  uint64_t word;

  for (; n >= sizeof(word); text += sizeof(word), n -= sizeof(word)) {
    memcpy(&word, text, sizeof(word));
    hash = mix(hash, word);
  }
  for (word = 0; n > 0; n--)
    word = word << 8 | (unsigned char)*text++;
  return mix(hash, word);
}

static uint64_t hash_depth(tnk__value_t value, uint64_t seed, int depth) {
  uint64_t hash = 7 ^ seed;
  double real = 0;

  if (value.kind == TNK__VALUE_TEXT)
    return hash_bytes(value.as.text, value.n_text, seed);
  if (tnk__value_number(value, &real)) {
    /* Zero has two signs and one hash. Integers that convert to the same double
     * have the same hash. */
    if (real == 0)
      real = 0;
    return hash_bytes((const char *)&real, sizeof(real), seed);
  }
  if (value.kind == TNK__VALUE_TUPLE && depth < TNK__VALUE_DEPTH) {
    for (size_t i = 0; i < value.as.list->n; i++)
      hash = mix(hash, hash_depth(value.as.list->items[i], seed, depth + 1));
    return hash;
  }
  if (value.kind == TNK__VALUE_OBJECT)
    return mix(hash, (uintptr_t)value.as.object);
  return mix(hash, value.kind);
}

/* The hash depends on the address of the dict. A peer does not know it, so it
 * cannot choose keys that collide. */
static size_t hash_of(const tnk__value_dict_t *dict, tnk__value_t value) {
  return (size_t)hash_depth(value, mix((uintptr_t)dict, 0), 0);
}

static int is_hashable(tnk__value_t value, int depth) {
  if (value.kind == TNK__VALUE_LIST || value.kind == TNK__VALUE_DICT ||
      depth > TNK__VALUE_DEPTH)
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

/* ---- Dicts ---- */

tnk__value_t tnk__value_dict(tnk__heap_t *heap) {
  tnk__value_t value = {.kind = TNK__VALUE_DICT};

  value.as.dict = tnk__heap_alloc(heap, sizeof(*value.as.dict));
  if (value.as.dict == NULL)
    return tnk__value_undefined();
  *value.as.dict = (tnk__value_dict_t){.entries = NULL};
  return value;
}

static int is_same_key(tnk__value_t a, tnk__value_t b) {
  if (a.kind == TNK__VALUE_TEXT && b.kind == TNK__VALUE_TEXT)
    return a.n_text == b.n_text &&
           (a.as.text == b.as.text ||
            memcmp(a.as.text, b.as.text, a.n_text) == 0);
  return tnk__value_equal(a, b);
}

/* The index of a key in the entries, or n. */
static size_t find_place(const tnk__value_dict_t *dict, tnk__value_t key) {
  size_t i;

  if (dict->index == NULL) {
    for (i = 0; i < dict->n; i++)
      if (is_same_key(dict->entries[i].key, key))
        break;
    return i;
  }
  i = hash_of(dict, key) & (dict->n_index - 1);
  for (; dict->index[i] != 0; i = (i + 1) & (dict->n_index - 1))
    if (is_same_key(dict->entries[dict->index[i] - 1].key, key))
      return dict->index[i] - 1;
  return dict->n;
}

static void put_index(tnk__value_dict_t *dict, size_t place) {
  size_t i = hash_of(dict, dict->entries[place].key) & (dict->n_index - 1);

  while (dict->index[i] != 0)
    i = (i + 1) & (dict->n_index - 1);
  dict->index[i] = (uint32_t)place + 1;
}

/* Make room for one more entry, and keep the hash table at most half full. */
static int grow_dict(tnk__heap_t *heap, tnk__value_dict_t *dict) {
  const size_t cap = dict->cap == 0 ? 4 : dict->cap * 2;
  tnk__value_entry_t *entries;
  uint32_t *index = NULL;

  if (cap > UINT32_MAX / 4) {
    heap->err = heap->err != TNK_OK ? heap->err : TNK_ETOOBIG;
    return 0;
  }
  entries = tnk__heap_alloc(heap, cap * sizeof(*entries));
  if (cap > FEW)
    index = tnk__heap_alloc(heap, 2 * cap * sizeof(*index));
  if (entries == NULL || (cap > FEW && index == NULL))
    return 0;
  if (dict->n > 0)
    memcpy(entries, dict->entries, dict->n * sizeof(*entries));
  dict->entries = entries;
  dict->cap = cap;
  if (index == NULL)
    return 1;
  memset(index, 0, 2 * cap * sizeof(*index));
  dict->index = index;
  dict->n_index = 2 * cap;
  for (size_t i = 0; i < dict->n; i++)
    put_index(dict, i);
  return 1;
}

void tnk__value_put(tnk__heap_t *heap, tnk__value_t dict, tnk__value_t key,
                    tnk__value_t value) {
  tnk__value_dict_t *d = dict.as.dict;
  size_t place;

  if (dict.kind != TNK__VALUE_DICT)
    return;
  place = find_place(d, key);
  if (place < d->n) {
    d->entries[place].value = value;
    return;
  }
  if (d->n == d->cap && !grow_dict(heap, d))
    return;
  d->entries[d->n] = (tnk__value_entry_t){key, value};
  d->n++;
  if (d->index != NULL)
    put_index(d, d->n - 1);
}

void tnk__value_set(tnk__heap_t *heap, tnk__value_t dict, const char *key,
                    tnk__value_t value) {
  const tnk__value_t text = tnk__value_text(key, strlen(key));
  size_t place;

  if (dict.kind != TNK__VALUE_DICT)
    return;
  /* Copy the key only if it is new. */
  place = find_place(dict.as.dict, text);
  if (place < dict.as.dict->n)
    dict.as.dict->entries[place].value = value;
  else
    tnk__value_put(heap, dict, tnk__value_copy_text(heap, key, text.n_text),
                   value);
}

int tnk__value_look_up(tnk__value_t dict, tnk__value_t key, tnk__value_t *out) {
  size_t place;

  if (dict.kind != TNK__VALUE_DICT)
    return 0;
  place = find_place(dict.as.dict, key);
  if (place == dict.as.dict->n)
    return 0;
  *out = dict.as.dict->entries[place].value;
  return 1;
}

tnk__value_t tnk__value_find(tnk__value_t dict, tnk__value_t key) {
  tnk__value_t value = tnk__value_undefined();

  (void)tnk__value_look_up(dict, key, &value);
  return value;
}

int tnk__value_has(tnk__value_t dict, tnk__value_t key) {
  return dict.kind == TNK__VALUE_DICT &&
         find_place(dict.as.dict, key) < dict.as.dict->n;
}

tnk__value_t tnk__value_get(tnk__value_t dict, const char *key) {
  return tnk__value_find(dict, tnk__value_text(key, strlen(key)));
}

/* ---- Equality ---- */

static int equal_depth(tnk__value_t a, tnk__value_t b, int depth);

static int equal_dicts(tnk__value_t a, tnk__value_t b, int depth) {
  const tnk__value_dict_t *d = a.as.dict;
  tnk__value_t other;

  if (d->n != b.as.dict->n)
    return 0;
  for (size_t i = 0; i < d->n; i++) {
    other = tnk__value_find(b, d->entries[i].key);
    /* A member that is undefined exists, but its value equals nothing. */
    if (!equal_depth(d->entries[i].value, other, depth + 1))
      return 0;
  }
  return 1;
}

static int equal_depth(tnk__value_t a, tnk__value_t b, int depth) {
  if (depth > TNK__VALUE_DEPTH)
    return 0;
  if (tnk__value_is_number(a) && tnk__value_is_number(b))
    return tnk__value_compare_numbers(a, b) == 0;
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
