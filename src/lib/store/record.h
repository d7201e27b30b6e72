/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_RECORD_H
#define TNK_LIB_STORE_RECORD_H

#include "lib/base/arena.h"
#include "lib/wire/format/json_pull.h"

/*
 * Reads records by tables. A shape lists the members of an object and their
 * offsets in a struct. The command tnk writes records by the same tables.
 * Unknown members are ignored. A null counts as absent. Numbers and booleans
 * may also be strings, as some servers send them. Any other type is an error.
 */
typedef enum {
  TNK__FIELD_TEXT,    /* const char * */
  TNK__FIELD_ID,      /* the same; not empty, also accepts an integer */
  TNK__FIELD_INT,     /* int64_t */
  TNK__FIELD_BOOL,    /* int */
  TNK__FIELD_CHOICE,  /* tnk_choice_t */
  TNK__FIELD_NUMBER,  /* double */
  TNK__FIELD_TIME,    /* int64_t, in microseconds */
  TNK__FIELD_PAIRS,   /* const tnk_pair_t *, followed by the count */
  TNK__FIELD_TEXTS,   /* const char *const *, followed by the count */
  TNK__FIELD_RECORD,  /* pointer to a struct of another shape */
  TNK__FIELD_RECORDS, /* pointer to an array, followed by the count */
  TNK__FIELD_MAP,     /* the same from an object; each begins with its key */
  TNK__FIELD_JSON     /* const char *: the value as JSON */
} tnk__field_type_t;

struct tnk__shape;

typedef struct {
  const char *key;
  size_t n_key;
  size_t offset;
  const struct tnk__shape *shape; /* shape of a RECORD */
  uint8_t type;                   /* a tnk__field_type_t */
  uint8_t is_required;
} tnk__field_t;

typedef struct tnk__shape {
  /* In the order in which they are written. A server that sends them in this
   * order is read fastest. */
  const tnk__field_t *fields;
  size_t n_fields;   /* at most 32 */
  size_t size;       /* sizeof the struct */
  const void *blank; /* initial value of the struct; NULL: zeros */
  /* Computes derived members. Returns the name of a wrong member, or NULL. May
   * itself be NULL. */
  const char *(*finish)(void *record);
  size_t raw_at;     /* offset of the record's own JSON; 0: not kept */
  uint8_t is_sparse; /* its absent members are not written (tnk) */
} tnk__shape_t;

/* Initializes the members of a shape from an array of fields. */
#define TNK__FIELDS(fields_)                                                   \
  .fields = (fields_), .n_fields = sizeof(fields_) / sizeof((fields_)[0])

#define TNK__FIELD(type_, struct_, member, name, required)                     \
  {                                                                            \
    .key = (name), .n_key = sizeof(name) - 1,                                  \
    .offset = offsetof(struct_, member), .type = TNK__FIELD_##type_,           \
    .is_required = (required)                                                  \
  }
/* Offset of a list. Does not compile unless its count follows directly. */
#define TNK__LIST_OFFSET(struct_, member, number)                              \
  (offsetof(struct_, member) +                                                 \
   0 * sizeof(char[offsetof(struct_, number) ==                                \
                           offsetof(struct_, member) + sizeof(void *)          \
                       ? 1                                                     \
                       : -1]))
#define TNK__FIELD_LIST(type_, struct_, member, number, name, shape_,          \
                        required)                                              \
  {                                                                            \
    .key = (name), .n_key = sizeof(name) - 1,                                  \
    .offset = TNK__LIST_OFFSET(struct_, member, number), .shape = (shape_),    \
    .type = TNK__FIELD_##type_, .is_required = (required)                      \
  }
#define TNK__FIELD_RECORD_AT(struct_, member, name, shape_, required)          \
  {                                                                            \
    .key = (name), .n_key = sizeof(name) - 1,                                  \
    .offset = offsetof(struct_, member), .shape = (shape_),                    \
    .type = TNK__FIELD_RECORD, .is_required = (required)                       \
  }

/* Reads one answer. The first failure is kept. */
typedef struct {
  tnk__json_pull_t pull;
  tnk__arena_t *arena;
  int err;          /* TNK_OK, TNK_EPROTO or TNK_ENOMEM */
  const char *what; /* the wrong or missing member, or NULL */
} tnk__record_reader_t;

/* Parse an object into `out`, which has shape->size bytes. */
void tnk__record_read(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                      void *out);

#endif
