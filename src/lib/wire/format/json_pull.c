/* SPDX-License-Identifier: MIT */
/*
 * The state is the position, the depth, and whether a comma must precede the
 * next value. The depth is checked when an object or array is entered. Skipping
 * a value counts brackets instead of recursing.
 */
#include "lib/wire/format/json_pull.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "tnk/error.h"

void tnk__json_pull_init(tnk__json_pull_t *pull, uint8_t *data, size_t n) {
  *pull = (tnk__json_pull_t){.at = data, .end = n > 0 ? data + n : data};
}

void tnk__json_pull_bad(tnk__json_pull_t *pull) {
  pull->is_bad = 1;
  pull->at = pull->end;
}

static void skip_blanks(tnk__json_pull_t *pull) {
  while (pull->at < pull->end && (*pull->at == ' ' || *pull->at == '\n' ||
                                  *pull->at == '\r' || *pull->at == '\t'))
    pull->at++;
}

/* Skip blanks and then this byte, if it is the next one. */
static int take_byte(tnk__json_pull_t *pull, char byte) {
  skip_blanks(pull);
  if (pull->at == pull->end || *pull->at != (uint8_t)byte)
    return 0;
  pull->at++;
  return 1;
}

tnk__pull_kind_t tnk__json_pull_kind(tnk__json_pull_t *pull) {
  skip_blanks(pull);
  if (pull->at == pull->end)
    return TNK__PULL_NONE;
  switch (*pull->at) {
  case '{':
    return TNK__PULL_OBJECT;
  case '[':
    return TNK__PULL_ARRAY;
  case '"':
    return TNK__PULL_TEXT;
  case 't':
    return TNK__PULL_TRUE;
  case 'f':
    return TNK__PULL_FALSE;
  case 'n':
    return TNK__PULL_NULL;
  default:
    return *pull->at == '-' || (*pull->at >= '0' && *pull->at <= '9')
               ? TNK__PULL_NUMBER
               : TNK__PULL_NONE;
  }
}

/* ---- Objects and arrays ---- */

int tnk__json_pull_begin(tnk__json_pull_t *pull, char open) {
  if (pull->depth == TNK__MAX_JSON_DEPTH || !take_byte(pull, open)) {
    tnk__json_pull_bad(pull);
    return 0;
  }
  pull->depth++;
  pull->fresh = 1;
  return 1;
}

/* Returns whether the innermost object or array, which ends with `close`, has
 * another element. */
static int has_more(tnk__json_pull_t *pull, char close) {
  if (take_byte(pull, close)) {
    pull->depth--;
    pull->fresh = 0;
    return 0;
  }
  if (!pull->fresh && !take_byte(pull, ',')) {
    tnk__json_pull_bad(pull);
    return 0;
  }
  pull->fresh = 0;
  return !pull->is_bad;
}

const char *tnk__json_pull_member(tnk__json_pull_t *pull, size_t *n) {
  const char *key;

  if (!has_more(pull, '}'))
    return NULL;
  key = tnk__json_pull_text(pull, n);
  if (key != NULL && take_byte(pull, ':'))
    return key;
  tnk__json_pull_bad(pull);
  return NULL;
}

int tnk__json_pull_element(tnk__json_pull_t *pull) {
  return has_more(pull, ']');
}

/* ---- Texts ---- */

/* Characters that may follow a backslash, except 'u'. */
static const char escapes[] = "\"\\/bfnrt";

#define BYTES(byte) ((uint64_t)(byte)*UINT64_C(0x0101010101010101))
#define HIGH BYTES(0x80)

/* Returns whether one of eight bytes is a quote, a backslash, a control
 * character or not ASCII. A false positive costs only time. */
static int is_odd(uint64_t word) {
  const uint64_t quote = word ^ BYTES('"');
  const uint64_t slash = word ^ BYTES('\\');

  return ((word | (word - BYTES(0x20)) | ((quote - BYTES(1)) & ~quote) |
           ((slash - BYTES(1)) & ~slash)) &
          HIGH) != 0;
}

/* The first byte from `at` on that is not a plain character of a string. */
static uint8_t *plain_end(uint8_t *at, const uint8_t *end) {
  uint64_t word;

  while (end - at >= 8) {
    memcpy(&word, at, 8);
    if (is_odd(word))
      break;
    at += 8;
  }
  while (at < end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0x80)
    at++;
  return at;
}

/* Read four hexadecimal digits, or return -1. */
static long hex4(const uint8_t *at, const uint8_t *end) {
  long value = 0;

  if (end - at < 4)
    return -1;
  for (int i = 0; i < 4; i++) {
    const uint8_t c = at[i];
    int digit;

    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
      digit = (c | 0x20) - 'a' + 10;
    else
      return -1;
    value = value << 4 | digit;
  }
  return value;
}

/* Read the digits after "\u" at *at. The decoded bytes are never longer.
 * Returns -1 if malformed. */
static long read_unit(uint8_t **at, const uint8_t *end) {
  long c = hex4(*at, end);
  long low;

  if (c < 0)
    return -1;
  *at += 4;
  if (c >= 0xd800 && c < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
      (*at)[1] == 'u') {
    low = hex4(*at + 2, end);
    if (low >= 0xdc00 && low < 0xe000) {
      *at += 6;
      return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
  }
  return c == 0 || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;
}

/* Decode the escape at *at, a backslash, to `out`, which is not after it.
 * Returns NULL if malformed. */
static uint8_t *unescape(uint8_t **at, const uint8_t *end, uint8_t *out) {
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  const char *known;
  long c;

  if (end - *at < 2)
    return NULL;
  if ((*at)[1] == 'u') {
    *at += 2;
    c = read_unit(at, end);
    return c < 0 ? NULL : out + tnk__utf8_put(out, (uint32_t)c);
  }
  known = memchr(escapes, (*at)[1], sizeof(escapes) - 1);
  if (known == NULL)
    return NULL;
  *at += 2;
  *out++ = (uint8_t)meanings[known - escapes];
  return out;
}

/* Move a non-ASCII character. */
static uint8_t *move_char(uint8_t **at, const uint8_t *end, uint8_t *out) {
  const size_t n = tnk__utf8_char((const char *)*at, (size_t)(end - *at));

  if (n == 0)
    return NULL;
  memmove(out, *at, n);
  *at += n;
  return out + n;
}

/* Decode in place from `at`, where a character is not plain. Returns the end of
 * the output and sets *at to the byte after the closing quote. Returns NULL if
 * malformed. */
static uint8_t *decode(uint8_t **at, const uint8_t *end) {
  uint8_t *out = *at;
  uint8_t *stop;

  while (out != NULL && *at < end && **at != '"') {
    if (**at == '\\') {
      out = unescape(at, end, out);
    } else if (**at >= 0x80) {
      out = move_char(at, end, out);
    } else if (**at < 0x20) {
      return NULL;
    } else {
      stop = plain_end(*at, end);
      memmove(out, *at, (size_t)(stop - *at));
      out += stop - *at;
      *at = stop;
    }
  }
  if (*at == end)
    return NULL;
  (*at)++;
  return out;
}

const char *tnk__json_pull_text(tnk__json_pull_t *pull, size_t *n) {
  uint8_t *from;
  uint8_t *out;

  if (!take_byte(pull, '"')) {
    tnk__json_pull_bad(pull);
    return NULL;
  }
  from = pull->at;
  pull->at = plain_end(from, pull->end);
  out = decode(&pull->at, pull->end);
  if (out == NULL) {
    tnk__json_pull_bad(pull);
    return NULL;
  }
  *out = '\0';
  if (n != NULL)
    *n = (size_t)(out - from);
  return (const char *)from;
}

/* ---- Numbers and skipping ---- */

static const uint8_t *digits_end(const uint8_t *at, const uint8_t *end) {
  while (at < end && *at >= '0' && *at <= '9')
    at++;
  return at;
}

/* The end of the number at `at`, or NULL. */
static const uint8_t *number_end(const uint8_t *at, const uint8_t *end) {
  const uint8_t *next;

  at += at < end && *at == '-';
  next = digits_end(at, end);
  if (next == at || (*at == '0' && next - at > 1))
    return NULL;
  at = next;
  if (at < end && *at == '.') {
    next = digits_end(++at, end);
    if (next == at)
      return NULL;
    at = next;
  }
  if (at < end && (*at | 0x20) == 'e') {
    at++;
    at += at < end && (*at == '+' || *at == '-');
    next = digits_end(at, end);
    if (next == at)
      return NULL;
    at = next;
  }
  return at;
}

const char *tnk__json_pull_number(tnk__json_pull_t *pull, size_t *n) {
  const uint8_t *end;
  const char *from;

  skip_blanks(pull);
  from = (const char *)pull->at;
  end = number_end(pull->at, pull->end);
  if (end == NULL) {
    tnk__json_pull_bad(pull);
    return NULL;
  }
  *n = (size_t)(end - pull->at);
  pull->at += *n;
  return from;
}

/* The length of the escape at `at`, a backslash. 0 if malformed. */
static size_t escape_length(const uint8_t *at, const uint8_t *end) {
  if (end - at < 2)
    return 0;
  if (at[1] == 'u')
    return hex4(at + 2, end) >= 0 ? 6 : 0;
  return memchr(escapes, at[1], sizeof(escapes) - 1) != NULL ? 2 : 0;
}

/* Skip a string without changing it. */
static void skip_text(tnk__json_pull_t *pull) {
  size_t n;

  for (pull->at++;; pull->at += n) {
    pull->at = plain_end(pull->at, pull->end);
    if (pull->at == pull->end || *pull->at < 0x20)
      break;
    if (*pull->at == '"') {
      pull->at++;
      return;
    }
    n = *pull->at == '\\' ? escape_length(pull->at, pull->end)
                          : tnk__utf8_char((const char *)pull->at,
                                           (size_t)(pull->end - pull->at));
    if (n == 0)
      break;
  }
  tnk__json_pull_bad(pull);
}

static void skip_word(tnk__json_pull_t *pull, const char *word) {
  const size_t n = strlen(word);

  if ((size_t)(pull->end - pull->at) < n || memcmp(pull->at, word, n) != 0)
    tnk__json_pull_bad(pull);
  else
    pull->at += n;
}

/* Skip a value that is neither an object nor an array. */
static void skip_plain(tnk__json_pull_t *pull) {
  size_t n;

  switch (tnk__json_pull_kind(pull)) {
  case TNK__PULL_TEXT:
    skip_text(pull);
    return;
  case TNK__PULL_NUMBER:
    tnk__json_pull_number(pull, &n);
    return;
  case TNK__PULL_TRUE:
    skip_word(pull, "true");
    return;
  case TNK__PULL_FALSE:
    skip_word(pull, "false");
    return;
  case TNK__PULL_NULL:
    skip_word(pull, "null");
    return;
  default:
    tnk__json_pull_bad(pull);
  }
}

/* Skip the key of a member without decoding it. */
static void skip_key(tnk__json_pull_t *pull) {
  if (tnk__json_pull_kind(pull) == TNK__PULL_TEXT)
    skip_text(pull);
  else
    tnk__json_pull_bad(pull);
  if (!take_byte(pull, ':'))
    tnk__json_pull_bad(pull);
}

/* Skip a whole object or array with its contents. */
static void skip_nested(tnk__json_pull_t *pull) {
  const unsigned base = pull->depth;
  uint64_t is_object = 0; /* a bit for each level above `base` */
  int more;

  _Static_assert(TNK__MAX_JSON_DEPTH <= 64, "a level has one bit of 64");
  do {
    const tnk__pull_kind_t kind = tnk__json_pull_kind(pull);

    if (kind == TNK__PULL_OBJECT || kind == TNK__PULL_ARRAY) {
      if (tnk__json_pull_begin(pull, kind == TNK__PULL_OBJECT ? '{' : '['))
        is_object = is_object << 1 | (kind == TNK__PULL_OBJECT);
    } else {
      skip_plain(pull);
    }
    for (more = 0; !more && !pull->is_bad && pull->depth > base;) {
      more = has_more(pull, is_object & 1 ? '}' : ']');
      if (more && (is_object & 1))
        skip_key(pull);
      else if (!more)
        is_object >>= 1;
    }
  } while (more && !pull->is_bad);
}

void tnk__json_pull_skip(tnk__json_pull_t *pull, const char **raw, size_t *n) {
  const tnk__pull_kind_t kind = tnk__json_pull_kind(pull);
  const uint8_t *from = pull->at;

  if (kind == TNK__PULL_OBJECT || kind == TNK__PULL_ARRAY)
    skip_nested(pull);
  else
    skip_plain(pull);
  if (raw != NULL) {
    *raw = (const char *)from;
    *n = pull->is_bad ? 0 : (size_t)(pull->at - from);
  }
}

int tnk__json_pull_finish(tnk__json_pull_t *pull) {
  skip_blanks(pull);
  return pull->is_bad || pull->at != pull->end || pull->depth > 0 ? TNK_EPROTO
                                                                  : TNK_OK;
}
