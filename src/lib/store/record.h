#ifndef TNK_LIB_STORE_RECORD_H
#define TNK_LIB_STORE_RECORD_H

#include "lib/base/arena.h"
#include "lib/wire/format/json_pull.h"

/*
 * Records, read by tables: a shape says which members an object has and where
 * in a struct each of them goes. Unknown members are passed over. A null counts
 * as absent. Numbers and truth may also come as texts, as some servers send
 * them; anything else than what is asked for is an error.
 */
typedef enum {
  TNK__FIELD_TEXT,    /* const char * */
  TNK__FIELD_ID,      /* the same; not empty, and may be a whole number */
  TNK__FIELD_INT,     /* int64_t */
  TNK__FIELD_BOOL,    /* int */
  TNK__FIELD_CHOICE,  /* tnk_choice_t */
  TNK__FIELD_NUMBER,  /* double */
  TNK__FIELD_TIME,    /* int64_t, in microseconds */
  TNK__FIELD_PAIRS,   /* const tnk_pair_t *, with their number behind it */
  TNK__FIELD_TEXTS,   /* const char *const *, with their number behind it */
  TNK__FIELD_RECORD,  /* a pointer to a struct of another shape */
  TNK__FIELD_RECORDS, /* a pointer to many, with their number behind it */
  TNK__FIELD_MAP,     /* the same of an object; each begins with its key */
  TNK__FIELD_JSON     /* const char *: the value as it is, whatever it is */
} tnk__field_type_t;

struct tnk__shape;

typedef struct {
  const char *key;
  size_t n_key;
  size_t offset;
  const struct tnk__shape *shape; /* of RECORD */
  uint8_t type;                   /* a tnk__field_type_t */
  uint8_t is_required;
} tnk__field_t;

typedef struct tnk__shape {
  const tnk__field_t *fields; /* in the order in which servers send them */
  size_t n_fields;            /* 32 at most */
  size_t size;                /* of the struct */
  const void *blank;          /* what it begins with; NULL: zeroes */
  /* Works out the rest; the name of a member that is wrong, or NULL. May be
   * NULL itself. */
  const char *(*finish)(void *record);
  size_t raw_at; /* where the record gets its own bytes, if not 0 */
} tnk__shape_t;

/* The members of a shape, of an array of fields. */
#define TNK__FIELDS(fields_)                                                   \
  .fields = (fields_), .n_fields = sizeof(fields_) / sizeof((fields_)[0])

#define TNK__FIELD(type_, struct_, member, name, required)                     \
  {                                                                            \
    .key = (name), .n_key = sizeof(name) - 1,                                  \
    .offset = offsetof(struct_, member), .type = TNK__FIELD_##type_,           \
    .is_required = (required)                                                  \
  }
/* Where a list is; or it does not compile, as its number is not behind it. */
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

/* Reads one answer. The first failure sticks. */
typedef struct {
  tnk__json_pull_t pull;
  tnk__arena_t *arena;
  int err;          /* TNK_OK, TNK_EPROTO or TNK_ENOMEM */
  const char *what; /* the member that is wrong or missing; or NULL */
} tnk__record_reader_t;

/* Read an object into `out`, which has shape->size bytes. */
void tnk__record_read(tnk__record_reader_t *reader, const tnk__shape_t *shape,
                      void *out);

#endif
