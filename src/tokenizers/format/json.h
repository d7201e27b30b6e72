#ifndef TNK_TOKENIZERS_FORMAT_JSON_H
#define TNK_TOKENIZERS_FORMAT_JSON_H

#include <stddef.h>
#include <stdint.h>

/*
 * A reader of JSON that is already in memory and known to be UTF-8. It builds
 * nothing: a tokenizer.json has half a million strings, and they go where
 * they belong as they are read. All functions give TNK_OK or TNK_EPROTO; `p`
 * is then where the trouble is.
 */
#define TNK__JREAD_DEPTH 32

typedef struct {
  const uint8_t *base;
  const uint8_t *p;
  const uint8_t *end;
} tnk__jread_t;

/* What stands between two quotes, escapes as they are. */
typedef struct {
  const uint8_t *p;
  size_t n;
  int escaped;
} tnk__jread_text_t;

void tnk__jread_init(tnk__jread_t *json, const void *data, size_t n);
/* The next byte that is no blank, 0 at the end. */
uint8_t tnk__jread_peek(tnk__jread_t *json);
/* Take this byte if it is next. */
int tnk__jread_take(tnk__jread_t *json, uint8_t byte);
/* After the opening bracket: 1 when there is another member or item, 0 behind
 * the closing one. *n counts and must begin as 0. */
int tnk__jread_next_key(tnk__jread_t *json, size_t *n, tnk__jread_text_t *key);
int tnk__jread_next_item(tnk__jread_t *json, size_t *n);
int tnk__jread_text(tnk__jread_t *json, tnk__jread_text_t *text);
/* Resolve escapes; `out` has room for text->n bytes. */
int tnk__jread_unescape(const tnk__jread_text_t *text, uint8_t *out, size_t *n);
int tnk__jread_uint(tnk__jread_t *json, uint32_t *value);
int tnk__jread_bool(tnk__jread_t *json, int *value);
/* Take null if it is next; 1 when it was. */
int tnk__jread_null(tnk__jread_t *json);
int tnk__jread_skip(tnk__jread_t *json);
/* Whether a text, its escapes resolved, is `word`. */
int tnk__jread_is(const tnk__jread_text_t *text, const char *word);

#endif
