/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/json.h"

#include <string.h>

#include "lib/base/number.h"
#include "tnk/error.h"
#include "tokenizers/unicode/unicode.h"

void tnk__jread_init(tnk__jread_t *json, const void *data, size_t n) {
  json->base = data;
  json->p = json->base;
  json->end = json->base + n;
}

/* Files are indented, so skip four spaces at a time. */
static void skip_blanks(tnk__jread_t *json) {
  const uint8_t *p = json->p, *end = json->end;

  for (;;) {
    while (end - p >= 4 && memcmp(p, "    ", 4) == 0)
      p += 4;
    if (p == end || (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t'))
      break;
    p++;
  }
  json->p = p;
}

static inline uint8_t peek(tnk__jread_t *json) {
  if (json->p < json->end && *json->p <= ' ')
    skip_blanks(json);
  return json->p < json->end ? *json->p : 0;
}

uint8_t tnk__jread_peek(tnk__jread_t *json) {
  return peek(json);
}

static inline int take(tnk__jread_t *json, uint8_t byte) {
  if (peek(json) != byte)
    return TNK_EPROTO;
  json->p++;
  return TNK_OK;
}

int tnk__jread_take(tnk__jread_t *json, uint8_t byte) {
  return take(json, byte);
}

/* Returns 1 before another element, 0 after the closing bracket. */
static inline int next(tnk__jread_t *json, size_t *n, uint8_t close) {
  uint8_t byte = peek(json);

  if (byte == close) {
    json->p++;
    return 0;
  }
  if (*n > 0 && take(json, ',') < 0)
    return TNK_EPROTO;
  (*n)++;
  return 1;
}

int tnk__jread_next_key(tnk__jread_t *json, size_t *n, tnk__jread_text_t *key) {
  int more = next(json, n, '}');

  if (more <= 0)
    return more;
  if (tnk__jread_text(json, key) < 0 || take(json, ':') < 0)
    return TNK_EPROTO;
  return 1;
}

int tnk__jread_next_item(tnk__jread_t *json, size_t *n) {
  return next(json, n, ']');
}

int tnk__jread_text(tnk__jread_t *json, tnk__jread_text_t *text) {
  /* Bytes of a plain run: all except quotes, backslashes and control
   * characters. */
  static const uint64_t plain[4] = {
      UINT64_C(0xfffffffb00000000), UINT64_C(0xffffffffefffffff),
      UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff)};
  const uint8_t *p, *end = json->end;

  if (take(json, '"') < 0)
    return TNK_EPROTO;
  text->p = p = json->p;
  text->escaped = 0;
  for (;;) {
    while (p < end && (plain[*p >> 6] >> (*p & 63) & 1) != 0)
      p++;
    if (end - p < 2 || *p != '\\')
      break;
    text->escaped = 1;
    p += 2;
  }
  text->n = (size_t)(p - text->p);
  json->p = p;
  return take(json, '"');
}

static int hex4(const uint8_t *p, const uint8_t *end, uint32_t *value) {
  *value = 0;
  if (end - p < 4)
    return TNK_EPROTO;
  for (int i = 0; i < 4; i++) {
    uint8_t c = p[i], low = c | 0x20;
    uint32_t digit = c >= '0' && c <= '9'       ? c - (uint32_t)'0'
                     : low >= 'a' && low <= 'f' ? low - (uint32_t)'a' + 10
                                                : 16;

    if (digit == 16)
      return TNK_EPROTO;
    *value = *value << 4 | digit;
  }
  return TNK_OK;
}

/* Read XXXX of \uXXXX, or a surrogate pair, and move *p after it. A lone
 * surrogate is rejected, as it is not a character. */
static int unescape_unicode(const uint8_t **p, const uint8_t *end,
                            uint32_t *cp) {
  uint32_t low;

  if (hex4(*p, end, cp) < 0)
    return TNK_EPROTO;
  *p += 4;
  if (*cp < 0xd800 || *cp > 0xdfff)
    return TNK_OK;
  if (*cp > 0xdbff || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' ||
      hex4(*p + 2, end, &low) < 0 || low < 0xdc00 || low > 0xdfff)
    return TNK_EPROTO;
  *p += 6;
  *cp = 0x10000 + ((*cp - 0xd800) << 10 | (low - 0xdc00));
  return TNK_OK;
}

int tnk__jread_unescape(const tnk__jread_text_t *text, uint8_t *out,
                        size_t *n) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const uint8_t *p = text->p, *end = p + text->n;
  uint8_t *o = out;

  while (p < end) {
    const char *at;
    uint32_t cp;

    if (*p != '\\') {
      *o++ = *p++;
      continue;
    }
    p++;
    at = *p == 0 ? NULL : strchr(from, *p);
    if (at != NULL) {
      *o++ = (uint8_t)to[at - from];
      p++;
      continue;
    }
    if (*p++ != 'u' || unescape_unicode(&p, end, &cp) < 0)
      return TNK_EPROTO;
    o += tnk__utf8_put(o, cp);
  }
  *n = (size_t)(o - out);
  return TNK_OK;
}

int tnk__jread_uint(tnk__jread_t *json, uint32_t *value) {
  const char *p, *end = (const char *)json->end;
  uint64_t v;

  (void)peek(json);
  p = (const char *)json->p;
  if (tnk__read_u64(&p, end, UINT32_MAX, &v) != TNK_OK ||
      (p < end && (*p == '.' || *p == 'e' || *p == 'E')))
    return TNK_EPROTO;
  json->p = (const uint8_t *)p;
  *value = (uint32_t)v;
  return TNK_OK;
}

static int take_word(tnk__jread_t *json, const char *word) {
  size_t n = strlen(word);

  (void)peek(json);
  if ((size_t)(json->end - json->p) < n || memcmp(json->p, word, n) != 0)
    return TNK_EPROTO;
  json->p += n;
  return TNK_OK;
}

int tnk__jread_bool(tnk__jread_t *json, int *value) {
  *value = take_word(json, "true") == TNK_OK;
  return *value ? TNK_OK : take_word(json, "false");
}

int tnk__jread_null(tnk__jread_t *json) {
  return take_word(json, "null") == TNK_OK;
}

/* Numbers are skipped without validation, as their values are not used. */
static int skip_scalar(tnk__jread_t *json) {
  const uint8_t *p = json->p;
  tnk__jread_text_t text;
  int value;

  if (*p == '"')
    return tnk__jread_text(json, &text);
  if (*p == 't' || *p == 'f')
    return tnk__jread_bool(json, &value);
  if (*p == 'n')
    return tnk__jread_null(json) ? TNK_OK : TNK_EPROTO;
  while (p < json->end && ((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' ||
                           *p == '.' || (*p | 0x20) == 'e'))
    p++;
  if (p == json->p)
    return TNK_EPROTO;
  json->p = p;
  return TNK_OK;
}

int tnk__jread_skip(tnk__jread_t *json) {
  uint8_t close[TNK__JREAD_DEPTH];
  size_t count[TNK__JREAD_DEPTH];
  size_t depth = 0;

  for (;;) {
    uint8_t byte = peek(json);
    tnk__jread_text_t key;
    int more = 1;

    if (byte == '{' || byte == '[') {
      if (depth == TNK__JREAD_DEPTH)
        return TNK_EPROTO;
      close[depth] = byte == '{' ? '}' : ']';
      count[depth++] = 0;
      json->p++;
    } else if (byte == 0 || skip_scalar(json) < 0) {
      return TNK_EPROTO;
    }
    do {
      if (depth == 0)
        return TNK_OK;
      more = close[depth - 1] == '}'
                 ? tnk__jread_next_key(json, &count[depth - 1], &key)
                 : tnk__jread_next_item(json, &count[depth - 1]);
      if (more == 0)
        depth--;
    } while (more == 0);
    if (more < 0)
      return TNK_EPROTO;
  }
}

int tnk__jread_is(const tnk__jread_text_t *text, const char *word) {
  uint8_t room[256]; /* fits any known word with every letter escaped */
  size_t n_word = strlen(word), n;

  if (!text->escaped)
    return text->n == n_word && memcmp(text->p, word, n_word) == 0;
  return text->n <= sizeof(room) && tnk__jread_unescape(text, room, &n) == 0 &&
         n == n_word && memcmp(room, word, n) == 0;
}
