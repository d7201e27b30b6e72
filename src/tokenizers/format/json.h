/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_FORMAT_JSON_H
#define TNK_TOKENIZERS_FORMAT_JSON_H

#include <stddef.h>
#include <stdint.h>

/*
 * A reader for JSON in memory that is known to be valid UTF-8. It builds no
 * tree: a tokenizer.json has half a million strings, and each is stored as it
 * is read. All functions return TNK_OK or TNK_EPROTO, unless they say
 * otherwise. On an error `p` is its position.
 */
#define TNK__JREAD_DEPTH 32

typedef struct {
  const uint8_t *base;
  const uint8_t *p;
  const uint8_t *end;
} tnk__jread_t;

/* The bytes between two quotes, with escapes. */
typedef struct {
  const uint8_t *p;
  size_t n;
  int escaped;
} tnk__jread_text_t;

void tnk__jread_init(tnk__jread_t *json, const void *data, size_t n);
/* The next byte that is not white space; 0 at the end. */
uint8_t tnk__jread_peek(tnk__jread_t *json);
/* Consume this byte if it is next, otherwise fail. */
int tnk__jread_take(tnk__jread_t *json, uint8_t byte);
/* Call these after the opening bracket. They return 1 if there is another
 * member or item, and 0 after the closing bracket. *n counts; it must start at
 * 0. */
int tnk__jread_next_key(tnk__jread_t *json, size_t *n, tnk__jread_text_t *key);
int tnk__jread_next_item(tnk__jread_t *json, size_t *n);
int tnk__jread_text(tnk__jread_t *json, tnk__jread_text_t *text);
/* Resolve escapes. `out` needs room for text->n bytes. */
int tnk__jread_unescape(const tnk__jread_text_t *text, uint8_t *out, size_t *n);
int tnk__jread_uint(tnk__jread_t *json, uint32_t *value);
int tnk__jread_bool(tnk__jread_t *json, int *value);
/* Consume null if it is next. Returns 1 if it was. */
int tnk__jread_null(tnk__jread_t *json);
int tnk__jread_skip(tnk__jread_t *json);
/* Returns whether a string with its escapes resolved equals `word`. */
int tnk__jread_is(const tnk__jread_text_t *text, const char *word);

#endif
