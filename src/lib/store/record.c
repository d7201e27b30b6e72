/* SPDX-License-Identifier: MIT */
#include "lib/store/record.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/format/time_text.h"
#include "tnk/common.h"
#include "tnk/error.h"

/* Record a failure and the member that caused it. */
static void fail(tnk__record_reader_t *reader, int err, const char *what) {
  if (reader->err == TNK_OK) {
    reader->err = err;
    reader->what = what;
  }
  tnk__json_pull_bad(&reader->pull);
}

/* ---- Growing arrays ---- */

typedef struct {
  tnk__record_reader_t *reader;
  char *items;
  size_t size; /* size of one element */
  size_t n;
  size_t cap;
} array_t;

/* Allocate memory. Returns NULL also if the body needs more than its size can
 * explain. */
static void *get(tnk__record_reader_t *reader, size_t size) {
  const tnk__arena_t *arena = reader->arena;
  void *ptr = tnk__arena_alloc(reader->arena, size);

  if (ptr == NULL)
    fail(reader, size > arena->max - arena->total ? TNK_EPROTO : TNK_ENOMEM,
         NULL);
  return ptr;
}

/* Add one element; NULL without memory. The old array stays in the arena, which
 * has a limit. */
static void *array_add(array_t *array) {
  char *items;
  size_t cap;

  if (array->n == array->cap) {
    cap = array->cap > 0 ? array->cap * 2 : 8;
    items = get(array->reader, cap * array->size);
    if (items == NULL)
      return NULL;
    if (array->n > 0)
      memcpy(items, array->items, array->n * array->size);
    array->items = items;
    array->cap = cap;
  }
  return array->items + array->n++ * array->size;
}

/* ---- Values ---- */

static const char *keep(tnk__record_reader_t *reader, const char *text,
                        size_t n) {
  char *copy = get(reader, n + 1);

  if (copy == NULL)
    return NULL;
  memcpy(copy, text, n);
  copy[n] = '\0';
  return copy;
}

static int has_no_fraction(const char *text, size_t n) {
  const char *point = memchr(text, '.', n);

  if (point == NULL)
    return 1;
  for (point++; point < text + n; point++)
    if (*point != '0')
      return 0;
  return 1;
}

/* Both "8" and "8.0" are 8. */
static int int_of(const char *text, size_t n, int64_t *out) {
  const int is_negative = n > 0 && text[0] == '-';
  uint64_t value = 0;
  size_t i;

  for (i = (size_t)is_negative; i < n && text[i] >= '0' && text[i] <= '9';
       i++) {
    if (value > (uint64_t)INT64_MAX / 10 - 1)
      return 0;
    value = value * 10 + (uint64_t)(text[i] - '0');
  }
  if (i == (size_t)is_negative || (i < n && text[i] != '.') ||
      !has_no_fraction(text + i, n - i))
    return 0;
  *out = is_negative ? -(int64_t)value : (int64_t)value;
  return 1;
}

/* Only few members have a fraction, so jansson parses them: it ignores the
 * locale. */
static int number_of(const char *text, size_t n, double *out) {
  json_t *value;

  if (tnk__json_parse(&value, text, n) != TNK_OK)
    return 0;
  *out = json_number_value(value);
  n = json_is_number(value);
  json_decref(value);
  return n != 0;
}

/* The characters of a number, also of one in a string. */
static const char *number_text(tnk__record_reader_t *reader, size_t *n) {
  return tnk__json_pull_kind(&reader->pull) == TNK__PULL_TEXT
             ? tnk__json_pull_text(&reader->pull, n)
             : tnk__json_pull_number(&reader->pull, n);
}

static int read_int(tnk__record_reader_t *reader, int64_t *out) {
  size_t n;
  const char *text = number_text(reader, &n);

  return text != NULL && int_of(text, n, out);
}

static int read_number(tnk__record_reader_t *reader, double *out) {
  size_t n;
  const char *text = number_text(reader, &n);

  return text != NULL && number_of(text, n, out);
}

static int is_one_of(const char *text, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(text, words[i]) == 0)
      return 1;
  return 0;
}

static int read_bool(tnk__record_reader_t *reader, int *out) {
  static const char *const yes[] = {"true", "True", "yes", "on", "1"};
  static const char *const no[] = {"false", "False", "no", "off", "0"};
  const tnk__pull_kind_t kind = tnk__json_pull_kind(&reader->pull);
  const char *text;
  int64_t value;

  if (kind == TNK__PULL_TRUE || kind == TNK__PULL_FALSE) {
    tnk__json_pull_skip(&reader->pull, NULL, NULL);
    *out = kind == TNK__PULL_TRUE;
    return 1;
  }
  if (kind == TNK__PULL_TEXT) {
    text = tnk__json_pull_text(&reader->pull, NULL);
    *out = text != NULL && is_one_of(text, yes, sizeof(yes) / sizeof(*yes));
    return *out ||
           (text != NULL && is_one_of(text, no, sizeof(no) / sizeof(*no)));
  }
  if (!read_int(reader, &value) || value < 0 || value > 1)
    return 0;
  *out = (int)value;
  return 1;
}

static int read_choice(tnk__record_reader_t *reader, tnk_choice_t *out) {
  int value;

  if (!read_bool(reader, &value))
    return 0;
  *out = value ? TNK_YES : TNK_NO;
  return 1;
}

static int read_time(tnk__record_reader_t *reader, int64_t *out) {
  double number;
  const char *text;
  size_t n;

  if (tnk__json_pull_kind(&reader->pull) == TNK__PULL_NUMBER)
    return read_number(reader, &number) && tnk__time_of_number(out, number);
  text = tnk__json_pull_text(&reader->pull, &n);
  return text != NULL && tnk__time_read(out, text, n);
}

static int read_id(tnk__record_reader_t *reader, const char **out) {
  const char *text;
  size_t n;

  if (tnk__json_pull_kind(&reader->pull) == TNK__PULL_NUMBER) {
    text = tnk__json_pull_number(&reader->pull, &n);
    *out = text != NULL ? keep(reader, text, n) : NULL;
    return *out != NULL;
  }
  *out = tnk__json_pull_text(&reader->pull, &n);
  return *out != NULL && n > 0;
}

static int read_json(tnk__record_reader_t *reader, const char **out) {
  const char *raw;
  size_t n;

  tnk__json_pull_skip(&reader->pull, &raw, &n);
  *out = reader->pull.is_bad ? NULL : keep(reader, raw, n);
  return *out != NULL;
}

/* A value that is not a string is kept as its JSON. */
static int read_pairs(tnk__record_reader_t *reader, tnk_pair_t **out,
                      size_t *n) {
  array_t array = {.reader = reader, .size = sizeof(tnk_pair_t)};
  const char *key;
  tnk_pair_t *pair;

  if (!tnk__json_pull_begin(&reader->pull, '{'))
    return 0;
  while ((key = tnk__json_pull_member(&reader->pull, NULL)) != NULL) {
    pair = array_add(&array);
    if (pair == NULL)
      return 0;
    pair->name = key;
    pair->value = NULL;
    if (tnk__json_pull_kind(&reader->pull) == TNK__PULL_TEXT)
      pair->value = tnk__json_pull_text(&reader->pull, NULL);
    else if (!read_json(reader, &pair->value))
      return 0;
  }
  *out = (tnk_pair_t *)(void *)array.items;
  *n = array.n;
  return !reader->pull.is_bad;
}

static int read_texts(tnk__record_reader_t *reader, const char ***out,
                      size_t *n) {
  array_t array = {.reader = reader, .size = sizeof(const char *)};
  const char **text;

  if (!tnk__json_pull_begin(&reader->pull, '['))
    return 0;
  while (tnk__json_pull_element(&reader->pull)) {
    text = array_add(&array);
    if (text == NULL || !read_id(reader, text))
      return 0;
  }
  *out = (const char **)(void *)array.items;
  *n = array.n;
  return !reader->pull.is_bad;
}

/* ---- Records ---- */

/* The count of a list follows the pointer to it. */
static size_t *count_behind(void *pointer) {
  return (size_t *)(void *)((char *)pointer + sizeof(void *));
}

static int read_record(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                       void **out) {
  const tnk__json_pull_t before = reader->pull;
  const char *raw = NULL;

  *out = get(reader, shape->size);
  if (*out == NULL)
    return 0;
  if (shape->raw_at != 0) {
    if (!read_json(reader, &raw))
      return 0;
    reader->pull = before; /* parse it a second time */
  }
  tnk__record_read(reader, shape, *out);
  if (shape->raw_at != 0)
    *(const char **)(void *)((char *)*out + shape->raw_at) = raw;
  return reader->err == TNK_OK;
}

static int read_records(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                        void **out, size_t *n) {
  array_t array = {.reader = reader, .size = shape->size};
  void *record;

  if (!tnk__json_pull_begin(&reader->pull, '['))
    return 0;
  while (tnk__json_pull_element(&reader->pull)) {
    record = array_add(&array);
    if (record == NULL)
      return 0;
    tnk__record_read(reader, shape, record);
  }
  *out = array.items;
  *n = array.n;
  return !reader->pull.is_bad;
}

/* As read_records(), for an object: each record begins with its key. */
static int read_map(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                    void **out, size_t *n) {
  array_t array = {.reader = reader, .size = shape->size};
  const char *key;
  void *record;

  if (!tnk__json_pull_begin(&reader->pull, '{'))
    return 0;
  while ((key = tnk__json_pull_member(&reader->pull, NULL)) != NULL) {
    record = array_add(&array);
    if (record == NULL)
      return 0;
    tnk__record_read(reader, shape, record);
    *(const char **)record = key;
  }
  *out = array.items;
  *n = array.n;
  return !reader->pull.is_bad;
}

static int read_value(tnk__record_reader_t *reader, const tnk__field_t *field,
                      void *at) {
  switch ((tnk__field_type_t)field->type) {
  case TNK__FIELD_TEXT:
    *(const char **)at = tnk__json_pull_text(&reader->pull, NULL);
    return *(const char **)at != NULL;
  case TNK__FIELD_ID:
    return read_id(reader, at);
  case TNK__FIELD_INT:
    return read_int(reader, at);
  case TNK__FIELD_BOOL:
    return read_bool(reader, at);
  case TNK__FIELD_CHOICE:
    return read_choice(reader, at);
  case TNK__FIELD_NUMBER:
    return read_number(reader, at);
  case TNK__FIELD_TIME:
    return read_time(reader, at);
  case TNK__FIELD_PAIRS:
    return read_pairs(reader, at, count_behind(at));
  case TNK__FIELD_TEXTS:
    return read_texts(reader, at, count_behind(at));
  case TNK__FIELD_RECORD:
    return read_record(reader, field->shape, at);
  case TNK__FIELD_RECORDS:
    return read_records(reader, field->shape, at, count_behind(at));
  case TNK__FIELD_MAP:
    return read_map(reader, field->shape, at, count_behind(at));
  case TNK__FIELD_JSON:
    return read_json(reader, at);
  }
  return 0;
}

/* Find the field of a key, beginning at `next`, because servers keep their
 * order. */
static size_t find(const tnk__shape_t *shape, size_t next, const char *key,
                   size_t n) {
  for (size_t i = 0; i < shape->n_fields; i++) {
    const size_t at = (next + i) % shape->n_fields;

    if (shape->fields[at].n_key == n &&
        memcmp(shape->fields[at].key, key, n) == 0)
      return at;
  }
  return shape->n_fields;
}

/* Parse the value of a field. A null counts as absent and leaves the field
 * unchanged. Returns whether the value was present. */
static int read_field(tnk__record_reader_t *reader, const tnk__field_t *field,
                      void *out) {
  if (tnk__json_pull_kind(&reader->pull) == TNK__PULL_NULL) {
    tnk__json_pull_skip(&reader->pull, NULL, NULL);
    return 0;
  }
  if (!read_value(reader, field, (char *)out + field->offset))
    fail(reader, TNK_EPROTO, field->key);
  return 1;
}

static void check_required(tnk__record_reader_t *reader,
                           const tnk__shape_t *shape, uint32_t seen) {
  for (size_t i = 0; i < shape->n_fields; i++)
    if (shape->fields[i].is_required && !(seen & (uint32_t)1 << i))
      fail(reader, TNK_EPROTO, shape->fields[i].key);
}

void tnk__record_read(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                      void *out) {
  const char *wrong;
  uint32_t seen = 0;
  size_t next = 0;
  const char *key;
  size_t n;

  if (shape->blank != NULL)
    memcpy(out, shape->blank, shape->size);
  else
    memset(out, 0, shape->size);
  if (!tnk__json_pull_begin(&reader->pull, '{')) {
    fail(reader, TNK_EPROTO, NULL);
    return;
  }
  while ((key = tnk__json_pull_member(&reader->pull, &n)) != NULL) {
    const size_t at = find(shape, next, key, n);

    if (at == shape->n_fields) {
      tnk__json_pull_skip(&reader->pull, NULL, NULL);
      continue;
    }
    if (read_field(reader, &shape->fields[at], out))
      seen |= (uint32_t)1 << at;
    next = at + 1 < shape->n_fields ? at + 1 : 0;
  }
  if (reader->pull.is_bad)
    fail(reader, TNK_EPROTO, NULL);
  else
    check_required(reader, shape, seen);
  if (reader->err == TNK_OK && shape->finish != NULL) {
    wrong = shape->finish(out);
    if (wrong != NULL)
      fail(reader, TNK_EPROTO, wrong);
  }
}
