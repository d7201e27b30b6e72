/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_JSON_PULL_H
#define TNK_LIB_WIRE_FORMAT_JSON_PULL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a peer's JSON from front to back in place. It builds no tree and
 * decodes strings in place, so a list of records costs one pass over its bytes.
 * The reader asks for the kind of value that it expects:
 *
 *     tnk__json_pull_init(&pull, data, n);
 *     if (tnk__json_pull_begin(&pull, '{'))
 *       while ((key = tnk__json_pull_member(&pull, &n_key)) != NULL)
 *         ... take the value, or tnk__json_pull_skip(&pull, NULL, NULL) ...
 *     err = tnk__json_pull_finish(&pull);
 *
 * Malformed JSON, or a value of another kind than expected, makes the reader
 * bad. From then on it returns no members, elements or values.
 */
typedef struct {
  uint8_t *at;
  uint8_t *end;
  unsigned depth; /* number of open objects and arrays */
  uint8_t fresh;  /* the innermost one is empty so far */
  uint8_t is_bad;
} tnk__json_pull_t;

typedef enum {
  TNK__PULL_NONE = 0, /* malformed, or no value left */
  TNK__PULL_OBJECT,
  TNK__PULL_ARRAY,
  TNK__PULL_TEXT,
  TNK__PULL_NUMBER,
  TNK__PULL_TRUE,
  TNK__PULL_FALSE,
  TNK__PULL_NULL
} tnk__pull_kind_t;

/* Begin with bytes that reading changes. They must stay valid as long as the
 * strings are used. */
void tnk__json_pull_init(tnk__json_pull_t *pull, uint8_t *data, size_t n);
/* Mark the input as malformed, because its content is invalid. */
void tnk__json_pull_bad(tnk__json_pull_t *pull);
/* The kind of the next value, without reading it. */
tnk__pull_kind_t tnk__json_pull_kind(tnk__json_pull_t *pull);

/* Enter an object ('{') or an array ('['). Returns 0 if the value is another
 * one, or deeper than TNK__MAX_JSON_DEPTH. */
int tnk__json_pull_begin(tnk__json_pull_t *pull, char open);
/* The key of the next member, or NULL at the end of the object. */
const char *tnk__json_pull_member(tnk__json_pull_t *pull, size_t *n);
/* Returns whether there is another element; 0 at the end of the array. */
int tnk__json_pull_element(tnk__json_pull_t *pull);

/* Read a string: decoded, with a NUL appended. An escaped NUL or half a
 * surrogate pair, which C strings cannot represent, becomes U+FFFD. Returns
 * NULL if the value is not a string. */
const char *tnk__json_pull_text(tnk__json_pull_t *pull, size_t *n);
/* Read a number as its bytes, which are not terminated. Returns NULL if the
 * value is not a number. */
const char *tnk__json_pull_number(tnk__json_pull_t *pull, size_t *n);
/* Skip a value of any kind. If `raw` and `n` are not NULL, they receive its
 * unchanged bytes. */
void tnk__json_pull_skip(tnk__json_pull_t *pull, const char **raw, size_t *n);

/* End reading: TNK_OK, or TNK_EPROTO if the input was bad or bytes follow. */
int tnk__json_pull_finish(tnk__json_pull_t *pull);

#endif
