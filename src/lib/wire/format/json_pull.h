#ifndef TNK_LIB_WIRE_FORMAT_JSON_PULL_H
#define TNK_LIB_WIRE_FORMAT_JSON_PULL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a peer's JSON from front to back, where it lies: no tree is built, and
 * texts are decoded in place, so that a list of records costs one pass over its
 * bytes. Who reads asks for the kind of value that he wants:
 *
 *     tnk__json_pull_init(&pull, data, n);
 *     if (tnk__json_pull_begin(&pull, '{'))
 *       while ((key = tnk__json_pull_member(&pull, &n_key)) != NULL)
 *         ... take the value, or tnk__json_pull_skip(&pull, NULL, NULL) ...
 *     err = tnk__json_pull_finish(&pull);
 *
 * The first thing that is no JSON, or is no value of the kind asked for, makes
 * it bad, and from then on there are no members, no elements and no values.
 */
typedef struct {
  uint8_t *at;
  uint8_t *end;
  unsigned depth; /* of open objects and arrays */
  uint8_t fresh;  /* the innermost has nothing in it so far */
  uint8_t is_bad;
} tnk__json_pull_t;

typedef enum {
  TNK__PULL_NONE = 0, /* malformed, or nothing left */
  TNK__PULL_OBJECT,
  TNK__PULL_ARRAY,
  TNK__PULL_TEXT,
  TNK__PULL_NUMBER,
  TNK__PULL_TRUE,
  TNK__PULL_FALSE,
  TNK__PULL_NULL
} tnk__pull_kind_t;

/* Begin with bytes that are changed by reading and must stay as long as the
 * texts are used. */
void tnk__json_pull_init(tnk__json_pull_t *pull, uint8_t *data, size_t n);
/* Note that what was read has no meaning. */
void tnk__json_pull_bad(tnk__json_pull_t *pull);
/* What the next value is. Nothing of it is read yet. */
tnk__pull_kind_t tnk__json_pull_kind(tnk__json_pull_t *pull);

/* Go into an object ('{') or an array ('['). 0: the value is none, or lies
 * deeper than TNK__MAX_JSON_DEPTH. */
int tnk__json_pull_begin(tnk__json_pull_t *pull, char open);
/* The key of the next member, or NULL at the end of the object. */
const char *tnk__json_pull_member(tnk__json_pull_t *pull, size_t *n);
/* Whether there is another element; 0 at the end of the array. */
int tnk__json_pull_element(tnk__json_pull_t *pull);

/* Take a text: with a NUL behind it and decoded. What no text of C can hold,
 * an escaped NUL or half a surrogate pair, becomes U+FFFD. NULL: it is none. */
const char *tnk__json_pull_text(tnk__json_pull_t *pull, size_t *n);
/* Take a number as the bytes it has; NULL: it is none. They end where another
 * byte follows. */
const char *tnk__json_pull_number(tnk__json_pull_t *pull, size_t *n);
/* Pass over a value of any kind; both of the others may be NULL, else they get
 * its bytes, which have not been changed. */
void tnk__json_pull_skip(tnk__json_pull_t *pull, const char **raw, size_t *n);

/* The end: TNK_OK, or TNK_EPROTO when it is bad or something follows. */
int tnk__json_pull_finish(tnk__json_pull_t *pull);

#endif
