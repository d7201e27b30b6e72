/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_VALUE_VALUE_H
#define TNK_CHAT_VALUE_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* Reason of an error: a code of tnk/error.h, a line of the template or 0, and a
 * sentence. */
typedef struct {
  int code;
  uint32_t line; /* starts at 1 */
  char text[368];
} tnk__why_t;

/* Set the reason, unless `why` is NULL, and return the code. Long text is
 * truncated, and control characters become spaces. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__why(tnk__why_t *why, int code, uint32_t line, const char *format, ...);

/*
 * Values of templates and messages: the values of JSON, and additional ones of
 * templates. They are allocated in an arena and freed with it. If memory runs
 * out, a constructor returns a value of kind UNDEFINED and sets `err` of the
 * heap. `err` keeps the first error, so callers check it once, at the end.
 *
 * Strings, lists and dicts never change once they are shared. An operation of a
 * template that changes a value makes a new one. Builders append to lists and
 * dicts that they have just made.
 */
typedef enum {
  TNK__VALUE_UNDEFINED = 0, /* a missing name or member */
  TNK__VALUE_NONE,
  TNK__VALUE_BOOL,
  TNK__VALUE_INT,
  TNK__VALUE_FLOAT,
  TNK__VALUE_TEXT,
  TNK__VALUE_LIST,
  TNK__VALUE_TUPLE, /* a list that prints with parentheses */
  TNK__VALUE_DICT,  /* keeps the order of insertion */
  TNK__VALUE_OBJECT /* internal to the interpreter: namespace, macro, function
                     */
} tnk__value_kind_t;

typedef struct tnk__value_list tnk__value_list_t;
typedef struct tnk__value_dict tnk__value_dict_t;

/* Small, so it is passed by value. */
typedef struct tnk__value {
  uint8_t kind;      /* a tnk__value_kind_t */
  uint8_t is_markup; /* TEXT: is "safe" in templates */
  uint16_t spare;    /* OBJECT: its type, defined by the interpreter */
  uint32_t n_text;   /* TEXT: number of bytes of UTF-8 */
  union {
    int is_true;
    int64_t number;
    double real;
    const char *text; /* not NUL-terminated */
    tnk__value_list_t *list;
    tnk__value_dict_t *dict;
    void *object;
  } as;
} tnk__value_t;

struct tnk__value_list {
  tnk__value_t *items;
  size_t n, cap;
};

typedef struct {
  tnk__value_t key; /* of any hashable kind; nearly always text */
  tnk__value_t value;
} tnk__value_entry_t;

struct tnk__value_dict {
  tnk__value_entry_t *entries;
  size_t n, cap;
  uint32_t *index; /* hash table of the entries, if there are more than eight */
  size_t n_index;
};

/* Memory of values. After an error it allocates nothing more. */
typedef struct {
  tnk__arena_t arena;
  int err; /* the first error: TNK_ENOMEM or TNK_ETOOBIG */
} tnk__heap_t;

void tnk__heap_init(tnk__heap_t *heap, const tnk_allocator_t *alloc,
                    size_t max);
void tnk__heap_deinit(tnk__heap_t *heap);
/* Allocate memory of the heap, not zeroed. On failure returns NULL and sets
 * `err`. */
void *tnk__heap_alloc(tnk__heap_t *heap, size_t size);

tnk__value_t tnk__value_undefined(void);
tnk__value_t tnk__value_none(void);
tnk__value_t tnk__value_bool(int is_true);
tnk__value_t tnk__value_int(int64_t number);
tnk__value_t tnk__value_float(double real);
/* Refer to bytes that must outlive the value. */
tnk__value_t tnk__value_text(const char *text, size_t n);
/* Copy bytes into the heap. */
tnk__value_t tnk__value_copy_text(tnk__heap_t *heap, const char *text,
                                  size_t n);
/* Make an empty list, tuple or dict, to be filled. */
tnk__value_t tnk__value_list(tnk__heap_t *heap);
tnk__value_t tnk__value_tuple(tnk__heap_t *heap);
tnk__value_t tnk__value_dict(tnk__heap_t *heap);
void tnk__value_append(tnk__heap_t *heap, tnk__value_t list, tnk__value_t item);
/* Set a member. An existing member keeps its position. */
void tnk__value_set(tnk__heap_t *heap, tnk__value_t dict, const char *key,
                    tnk__value_t value);
void tnk__value_put(tnk__heap_t *heap, tnk__value_t dict, tnk__value_t key,
                    tnk__value_t value);
/* Get a member. Returns UNDEFINED if it is missing or the value is not a
 * dict. */
tnk__value_t tnk__value_get(tnk__value_t dict, const char *key);
tnk__value_t tnk__value_find(tnk__value_t dict, tnk__value_t key);
/* Returns whether the member exists, whatever its value. */
int tnk__value_has(tnk__value_t dict, tnk__value_t key);
/* Both in one call. If the member is missing, *out is unchanged. */
int tnk__value_look_up(tnk__value_t dict, tnk__value_t key, tnk__value_t *out);
/* Returns whether it is a text with these bytes. */
static inline int tnk__value_is(tnk__value_t value, const char *text) {
  const size_t n = strlen(text);

  return value.kind == TNK__VALUE_TEXT && value.n_text == n &&
         memcmp(value.as.text, text, n) == 0;
}
/* Returns whether it can be the key of a dict. */
int tnk__value_is_hashable(tnk__value_t value);
/* bool() and == of Python. Objects are true, and equal only to themselves. */
int tnk__value_truth(tnk__value_t value);
int tnk__value_equal(tnk__value_t a, tnk__value_t b);
/* < of Python. *out is negative, 0 or positive, or 2 if one is NaN. Returns 0
 * if the values have no order. */
int tnk__value_compare(tnk__value_t a, tnk__value_t b, int *out);
/* tnk__value_whole() accepts BOOL and INT, which are both integers in Python.
 * The others also accept FLOAT. */
int tnk__value_whole(tnk__value_t value, int64_t *out);
int tnk__value_number(tnk__value_t value, double *out);
int tnk__value_is_number(tnk__value_t value);
/* Compare two numbers exactly. Returns a negative value, 0, a positive value,
 * or 2 for NaN. */
int tnk__value_compare_numbers(tnk__value_t a, tnk__value_t b);

/* Read the character at *at and move *at after it. */
uint32_t tnk__value_char(const char **at);

/* Buffer size for a number as text. No terminator is written. */
enum { TNK__VALUE_NUMBER = 40 };

/* Maximum depth of values that are written or compared. These functions are
 * recursive and must work with a small stack. JSON is nested less deeply. */
enum { TNK__VALUE_DEPTH = 100 };

/* Write a number as repr() of Python does: 1.0, 1e-05, inf. */
size_t tnk__value_float_text(char *out, double real);
/* Read a number with a point or an exponent, or an integer beyond 64 bits. The
 * text must have only digits, point and exponent. Returns 0 if it is too
 * long. */
int tnk__value_read_float(const char *text, size_t n, double *out);

/*
 * Read JSON. Strings are copied into the heap. Of members with the same name
 * the last one is kept. Numbers without a point or exponent are INT if they
 * fit, others are FLOAT. An escaped NUL, or half of a surrogate pair, becomes
 * U+FFFD.
 *
 * @return TNK_OK; TNK_EINVAL for malformed or too deeply nested JSON;
 *   TNK_ENOMEM; TNK_ETOOBIG.
 */
int tnk__value_from_json(tnk__heap_t *heap, const char *json, size_t n,
                         tnk__value_t *out);
/* Format of JSON output. Zeros select the format of
 * json.dumps(ensure_ascii=False) in Python: ", " and ": ". */
typedef struct {
  int is_compact; /* "," and ":" */
  int is_ascii;   /* escape all other characters */
  int is_sorted;  /* sort members by name */
  /* Write NaN and Infinity as Python does. Otherwise NaN is rejected, and
   * Infinity is written as 1e999, which is valid JSON and is read as
   * Infinity. */
  int has_wide;
  int indent; /* 0: one line; > 0: spaces per level; < 0: lines without
                 indentation */
  /* Separators between items and after a key. NULL: as described above. */
  const char *between, *behind_key;
  /* Indentation of a level. NULL: spaces. */
  const char *indent_text;
} tnk__value_json_t;
/* Append a value as JSON. `how` may be NULL, which means all zeros. TNK_EINVAL
 * for values that JSON cannot express: undefined values, objects, NaN, keys
 * that are not plain values, and unordered members that should be sorted. */
int tnk__value_to_json(tnk__buf_t *buf, tnk__value_t value,
                       const tnk__value_json_t *how);

#endif
