#include "chat/value/value.h"

#include <string.h>

#include "chat/value/hash.h"
#include "tnk/error.h"

/* Up to so many members are looked through one by one. */
enum { FEW = 8 };

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

  /* The arena does not tell which of the two it was; a piece that would not
   * have fitted in any case was too big. */
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

/* The place of a key in the entries, or n. */
static size_t find_place(const tnk__value_dict_t *dict, tnk__value_t key) {
  size_t i;

  if (dict->index == NULL) {
    for (i = 0; i < dict->n; i++)
      if (is_same_key(dict->entries[i].key, key))
        break;
    return i;
  }
  i = tnk__value_hash(key) & (dict->n_index - 1);
  for (; dict->index[i] != 0; i = (i + 1) & (dict->n_index - 1))
    if (is_same_key(dict->entries[dict->index[i] - 1].key, key))
      return dict->index[i] - 1;
  return dict->n;
}

static void put_index(tnk__value_dict_t *dict, size_t place) {
  size_t i = tnk__value_hash(dict->entries[place].key) & (dict->n_index - 1);

  while (dict->index[i] != 0)
    i = (i + 1) & (dict->n_index - 1);
  dict->index[i] = (uint32_t)place + 1;
}

/* Make room for one more entry, and a table that stays half empty. */
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
  /* A key is copied only where it is new. */
  place = find_place(dict.as.dict, text);
  if (place < dict.as.dict->n)
    dict.as.dict->entries[place].value = value;
  else
    tnk__value_put(heap, dict, tnk__value_copy_text(heap, key, text.n_text),
                   value);
}

tnk__value_t tnk__value_find(tnk__value_t dict, tnk__value_t key) {
  size_t place;

  if (dict.kind != TNK__VALUE_DICT)
    return tnk__value_undefined();
  place = find_place(dict.as.dict, key);
  return place < dict.as.dict->n ? dict.as.dict->entries[place].value
                                 : tnk__value_undefined();
}

tnk__value_t tnk__value_get(tnk__value_t dict, const char *key) {
  return tnk__value_find(dict, tnk__value_text(key, strlen(key)));
}

int tnk__value_is(tnk__value_t value, const char *text) {
  return value.kind == TNK__VALUE_TEXT && value.n_text == strlen(text) &&
         memcmp(value.as.text, text, value.n_text) == 0;
}
