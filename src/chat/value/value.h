#ifndef TNK_CHAT_VALUE_VALUE_H
#define TNK_CHAT_VALUE_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/*
 * Values as templates and messages have them: what JSON can say, and what
 * templates add. They live in an arena and are freed with it; who makes one
 * checks for TNK__VALUE_UNDEFINED only where the function says so, since a
 * value that could not be had for lack of memory sets `err` of its heap, which
 * is sticky and is looked at in the end.
 *
 * Texts, lists and dicts are never changed once others can see them: what
 * templates call a change makes a new one. Builders append to a list or dict of
 * their own.
 */
typedef enum {
  TNK__VALUE_UNDEFINED = 0, /* a name or member that is not there */
  TNK__VALUE_NONE,
  TNK__VALUE_BOOL,
  TNK__VALUE_INT,
  TNK__VALUE_FLOAT,
  TNK__VALUE_TEXT,
  TNK__VALUE_LIST,
  TNK__VALUE_TUPLE, /* a list that prints with round brackets */
  TNK__VALUE_DICT,  /* in the order of insertion */
  TNK__VALUE_OBJECT /* of the interpreter's own: namespace, macro, function */
} tnk__value_kind_t;

typedef struct tnk__value_list tnk__value_list_t;
typedef struct tnk__value_dict tnk__value_dict_t;

/* Small; handed around by value. */
typedef struct tnk__value {
  uint8_t kind;      /* a tnk__value_kind_t */
  uint8_t is_markup; /* of TEXT: what templates call safe */
  uint16_t spare;    /* of OBJECT: its type, of the interpreter's own */
  uint32_t n_text;   /* of TEXT: its bytes, UTF-8 */
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
  tnk__value_t key; /* of any kind that has a hash: text, nearly always */
  tnk__value_t value;
} tnk__value_entry_t;

struct tnk__value_dict {
  tnk__value_entry_t *entries;
  size_t n, cap;
  uint32_t *index; /* hash table over entries, once there are more than eight */
  size_t n_index;
};

/* Where values are made. After a failure it makes no more of them. */
typedef struct {
  tnk__arena_t arena;
  int err; /* the first failure: TNK_ENOMEM or TNK_ETOOBIG; sticky */
} tnk__heap_t;

void tnk__heap_init(tnk__heap_t *heap, const tnk_allocator_t *alloc,
                    size_t max);
void tnk__heap_deinit(tnk__heap_t *heap);
/* Memory of the heap, not zeroed; NULL sets its `err`. */
void *tnk__heap_alloc(tnk__heap_t *heap, size_t size);

tnk__value_t tnk__value_undefined(void);
tnk__value_t tnk__value_none(void);
tnk__value_t tnk__value_bool(int is_true);
tnk__value_t tnk__value_int(int64_t number);
tnk__value_t tnk__value_float(double real);
/* Point to bytes that outlive the value. */
tnk__value_t tnk__value_text(const char *text, size_t n);
/* Copy bytes into the heap. */
tnk__value_t tnk__value_copy_text(tnk__heap_t *heap, const char *text,
                                  size_t n);
/* Make an empty list, or dict, to be filled. */
tnk__value_t tnk__value_list(tnk__heap_t *heap);
tnk__value_t tnk__value_tuple(tnk__heap_t *heap);
tnk__value_t tnk__value_dict(tnk__heap_t *heap);
void tnk__value_append(tnk__heap_t *heap, tnk__value_t list, tnk__value_t item);
/* Set a member; one that is there keeps its place. */
void tnk__value_set(tnk__heap_t *heap, tnk__value_t dict, const char *key,
                    tnk__value_t value);
void tnk__value_put(tnk__heap_t *heap, tnk__value_t dict, tnk__value_t key,
                    tnk__value_t value);
/* A member, or UNDEFINED where there is none or the value is no dict. */
tnk__value_t tnk__value_get(tnk__value_t dict, const char *key);
tnk__value_t tnk__value_find(tnk__value_t dict, tnk__value_t key);
/* Whether there is such a member, whatever its value. */
int tnk__value_has(tnk__value_t dict, tnk__value_t key);
/* Both at once: *out is left alone where there is none. */
int tnk__value_look_up(tnk__value_t dict, tnk__value_t key, tnk__value_t *out);
/* Whether it is a text with these bytes. */
static inline int tnk__value_is(tnk__value_t value, const char *text) {
  const size_t n = strlen(text);

  return value.kind == TNK__VALUE_TEXT && value.n_text == n &&
         memcmp(value.as.text, text, n) == 0;
}
/* Whether it can be the key of a dict. */
int tnk__value_is_hashable(tnk__value_t value);
/* As Python's bool() and == see them. Objects are true, and equal to
 * themselves. */
int tnk__value_truth(tnk__value_t value);
int tnk__value_equal(tnk__value_t a, tnk__value_t b);
/* As Python's < sees them: *out is below, at or above zero, or 2 where one is
 * no number (NaN). 0: they have no order. */
int tnk__value_compare(tnk__value_t a, tnk__value_t b, int *out);
/* Whether it is BOOL or INT, which Python takes for whole numbers, and which
 * one; and the same for FLOAT too. */
int tnk__value_whole(tnk__value_t value, int64_t *out);
int tnk__value_number(tnk__value_t value, double *out);
int tnk__value_is_number(tnk__value_t value);
/* Two numbers, exactly: below, at or above zero, or 2 for NaN. */
int tnk__value_compare_numbers(tnk__value_t a, tnk__value_t b);

/* The character at *at in a text, which goes behind it. */
uint32_t tnk__value_char(const char **at);

/* Room that a number as text needs; none writes a terminator. */
enum { TNK__VALUE_NUMBER = 40 };

/* Values around one, at most: deeper ones are neither written nor compared. All
 * of it is recursion, for which a small stack must do. JSON is nested less. */
enum { TNK__VALUE_DEPTH = 100 };

/* Write a number as Python's repr() does: 1.0, 1e-05, inf. */
size_t tnk__value_float_text(char *out, double real);
/* Read a number that has a point or an exponent, or whole ones that do not fit
 * in 64 bits: digits, point and exponent only. 0: it is too long. */
int tnk__value_read_float(const char *text, size_t n, double *out);

/*
 * Read JSON. Texts are copied into the heap; of members with one name the last
 * counts; numbers without a point or exponent that fit are INT, others FLOAT.
 * An escaped NUL, or half a surrogate pair, becomes U+FFFD.
 * @return TNK_OK; TNK_EINVAL for what is no JSON or is nested too deep;
 *   TNK_ENOMEM; TNK_ETOOBIG.
 */
int tnk__value_from_json(tnk__heap_t *heap, const char *json, size_t n,
                         tnk__value_t *out);
/* How JSON is written. Zeros are what Python's json.dumps(ensure_ascii=False)
 * does: ", " and ": ". */
typedef struct {
  int is_compact; /* "," and ":" */
  int is_ascii;   /* other characters escaped */
  int is_sorted;  /* members by name */
  /* NaN and Infinity as Python writes them. Else NaN is refused, and Infinity
   * is 1e999, which is JSON and is read as what it was. */
  int has_wide;
  int indent; /* 0: all in one line; else blanks a level; below 0: lines
                 without blanks */
  /* What stands between items, and behind a key; NULL: as said above. */
  const char *between, *behind_key;
  /* What a level is indented with; NULL: blanks. */
  const char *indent_text;
} tnk__value_json_t;
/* Append a value as JSON; NULL is all zeros. TNK_EINVAL for what JSON cannot
 * say: undefined values, objects, NaN, keys that are no plain values, members
 * that have no order where they are to be sorted. */
int tnk__value_to_json(tnk__buf_t *buf, tnk__value_t value,
                       const tnk__value_json_t *how);

#endif
