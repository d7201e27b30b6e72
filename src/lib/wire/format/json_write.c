/* SPDX-License-Identifier: MIT */
/*
 * The writer's state is the stack of open levels (two bits each) and whether a
 * key waits for its value. A value is allowed once at the top level, always in
 * an array, and after a key in an object. Any other call is a bug of the
 * caller. It fails the buffer, so malformed JSON is never written.
 */
#include "lib/wire/format/json_write.h"

#include <math.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/number_text.h"
#include "tnk/error.h"

_Static_assert(TNK__MAX_JSON_DEPTH <= 64, "a level has one bit of 64");

enum { ARRAY_STEP = 64 };

static void fail(tnk__json_writer_t *w, int err) {
  if (w->buf->err == TNK_OK)
    w->buf->err = err;
}

static uint64_t level_bit(const tnk__json_writer_t *w) {
  return (uint64_t)1 << (w->depth - 1);
}

static int in_object(const tnk__json_writer_t *w) {
  return w->depth > 0 && (w->objects & level_bit(w)) != 0;
}

static void separate(tnk__json_writer_t *w) {
  if ((w->nonempty & level_bit(w)) != 0)
    tnk__buf_byte(w->buf, ',');
  w->nonempty |= level_bit(w);
}

/* Write the separator before a value. Returns 0 if no value may follow. */
static int before_value(tnk__json_writer_t *w) {
  if (w->depth == 0 ? w->done : in_object(w) && !w->has_key) {
    fail(w, TNK_EINTERNAL);
    return 0;
  }
  if (w->depth > 0 && !in_object(w))
    separate(w);
  w->has_key = 0;
  w->done = 1;
  return w->buf->err == TNK_OK;
}

void tnk__json_writer_init(tnk__json_writer_t *w, tnk__buf_t *buf) {
  *w = (tnk__json_writer_t){.buf = buf};
}

int tnk__json_finish(tnk__json_writer_t *w) {
  if (w->depth > 0 || !w->done)
    fail(w, TNK_EINTERNAL);
  return w->buf->err;
}

static void begin(tnk__json_writer_t *w, int is_object) {
  if (!before_value(w))
    return;
  /* Our own reader would reject deeper nesting, and there are no bits for more
   * levels. */
  if (w->depth == TNK__MAX_JSON_DEPTH) {
    fail(w, TNK_EINVAL);
    return;
  }
  w->depth++;
  /* The bits may be set from an earlier level at this depth. */
  w->objects &= ~level_bit(w);
  w->nonempty &= ~level_bit(w);
  if (is_object)
    w->objects |= level_bit(w);
  tnk__buf_byte(w->buf, is_object ? '{' : '[');
}

void tnk__json_begin_object(tnk__json_writer_t *w) {
  begin(w, 1);
}

void tnk__json_begin_array(tnk__json_writer_t *w) {
  begin(w, 0);
}

void tnk__json_end(tnk__json_writer_t *w) {
  if (w->depth == 0 || w->has_key) {
    fail(w, TNK_EINTERNAL);
    return;
  }
  tnk__buf_byte(w->buf, in_object(w) ? '}' : ']');
  w->depth--;
}

static void escape(tnk__buf_t *buf, unsigned char c) {
  static const char hex[] = "0123456789abcdef";
  static const char from[] = "\"\\\b\f\n\r\t";
  static const char to[] = "\"\\bfnrt";
  const char *found = c != '\0' ? strchr(from, c) : NULL;
  char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

  if (found != NULL)
    text[1] = to[found - from];
  tnk__buf_append(buf, text, found != NULL ? 2 : sizeof(text));
}

static int is_plain(unsigned char c) {
  return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Nonzero if one of eight bytes is not plain. Each term sets the high bit of
 * such a byte. A borrow can set a wrong bit only after such a byte. */
static inline uint64_t not_plain(const char *text) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t x;

  memcpy(&x, text, sizeof(x));
  return ((x - ones * 0x20) | ((x ^ ones * '"') - ones) |
          ((x ^ ones * '\\') - ones) | x) &
         ones * 0x80;
}

/* The number of bytes at the start of `text` that need no escape and no check
 * of their encoding. Blocks of eight bytes are tested; the last block may
 * overlap the one before it. */
static size_t n_plain(const char *text, size_t n) {
  size_t at = 0;

  while (n - at >= 8 && not_plain(text + at) == 0)
    at += 8;
  if (n >= 8 && n - at < 8 && not_plain(text + n - 8) == 0)
    return n;
  while (at < n && is_plain((unsigned char)text[at]))
    at++;
  return at;
}

static void quote(tnk__json_writer_t *w, const char *text, size_t n) {
  size_t start = 0; /* bytes before it have been written */
  size_t at = n_plain(text, n);

  tnk__buf_byte(w->buf, '"');
  while (at < n) {
    size_t step = tnk__utf8_char(text + at, n - at);
    if (step == 0) {
      fail(w, TNK_EINVAL);
      return;
    }
    /* Plain bytes never reach this point, so the byte must be escaped. Longer
     * characters stay unchanged. */
    if (step == 1) {
      tnk__buf_append(w->buf, text + start, at - start);
      escape(w->buf, (unsigned char)text[at]);
      start = at + 1;
    }
    at += step;
    at += n_plain(text + at, n - at);
  }
  tnk__buf_append(w->buf, text + start, at - start);
  tnk__buf_byte(w->buf, '"');
}

/* Write a whole key if it needs no escapes. */
static void put_plain_key(tnk__json_writer_t *w, const char *key, size_t n) {
  uint8_t *at = tnk__buf_reserve(w->buf, n + 3);

  if (at == NULL)
    return;
  at[0] = '"';
  memcpy(at + 1, key, n);
  memcpy(at + 1 + n, "\":", 2);
  w->buf->len += n + 3;
}

void tnk__json_key_n(tnk__json_writer_t *w, const char *key, size_t n) {
  if (!in_object(w) || w->has_key) {
    fail(w, TNK_EINTERNAL);
    return;
  }
  separate(w);
  if (n_plain(key, n) == n) {
    put_plain_key(w, key, n);
  } else {
    quote(w, key, n);
    tnk__buf_byte(w->buf, ':');
  }
  w->has_key = 1;
}

void tnk__json_key(tnk__json_writer_t *w, const char *key) {
  tnk__json_key_n(w, key, strlen(key));
}

void tnk__json_text_n(tnk__json_writer_t *w, const char *text, size_t n) {
  if (before_value(w))
    quote(w, text, n);
}

void tnk__json_text(tnk__json_writer_t *w, const char *text) {
  if (text == NULL)
    tnk__json_null(w);
  else
    tnk__json_text_n(w, text, strlen(text));
}

void tnk__json_raw(tnk__json_writer_t *w, const void *json, size_t n) {
  if (before_value(w))
    tnk__buf_append(w->buf, json, n);
}

static void put_bool(tnk__json_writer_t *w, int value) {
  if (before_value(w))
    tnk__buf_text(w->buf, value ? "true" : "false");
}

void tnk__json_null(tnk__json_writer_t *w) {
  if (before_value(w))
    tnk__buf_text(w->buf, "null");
}

void tnk__json_int(tnk__json_writer_t *w, int64_t value) {
  char text[TNK__NUMBER_TEXT];

  tnk__json_raw(w, text, tnk__int_text(text, value));
}

void tnk__json_uint(tnk__json_writer_t *w, uint64_t value) {
  char text[TNK__NUMBER_TEXT];

  tnk__json_raw(w, text, tnk__uint_text(text, value));
}

/* JSON cannot represent infinities and NaN. */
static size_t float_or_null(char *out, float value) {
  if (isfinite(value))
    return tnk__float_text(out, value);
  memcpy(out, "null", 4);
  return 4;
}

void tnk__json_float(tnk__json_writer_t *w, float value) {
  char text[TNK__NUMBER_TEXT];

  tnk__json_raw(w, text, float_or_null(text, value));
}

static void put_double(tnk__json_writer_t *w, double value) {
  char text[TNK__NUMBER_TEXT];

  if (isfinite(value))
    tnk__json_raw(w, text, tnk__double_text(text, value));
  else
    tnk__json_null(w);
}

/* The kinds of arrays differ only in the text of an element, which ends with a
 * comma. */
typedef size_t elements_fn(char *out, const void *values, size_t at, size_t n);

static size_t int32s_at(char *out, const void *values, size_t at, size_t n) {
  return tnk__int32s_text(out, (const int32_t *)values + at, n);
}

static size_t int64s_at(char *out, const void *values, size_t at, size_t n) {
  size_t used = 0;

  for (size_t i = at; i < at + n; i++) {
    used += tnk__int_text(out + used, ((const int64_t *)values)[i]);
    out[used++] = ',';
  }
  return used;
}

/* Use a small block, so that the buffer is extended once for many elements, and
 * only by the bytes written. */
static void write_array(tnk__json_writer_t *w, const void *values, size_t n,
                        elements_fn *elements) {
  char text[ARRAY_STEP * (TNK__NUMBER_TEXT + 1)];

  if (!before_value(w))
    return;
  tnk__buf_byte(w->buf, '[');
  for (size_t i = 0; i < n; i += ARRAY_STEP) {
    const size_t some = n - i < ARRAY_STEP ? n - i : ARRAY_STEP;
    const size_t used = elements(text, values, i, some);

    /* The last element has no comma. */
    if (tnk__buf_append(w->buf, text, used - (i + some == n)) != TNK_OK)
      return;
  }
  tnk__buf_byte(w->buf, ']');
}

void tnk__json_int32s(tnk__json_writer_t *w, const int32_t *values, size_t n) {
  write_array(w, values, n, int32s_at);
}

void tnk__json_int64s(tnk__json_writer_t *w, const int64_t *values, size_t n) {
  write_array(w, values, n, int64s_at);
}

void tnk__json_put_text(tnk__json_writer_t *w, const char *key,
                        const char *text) {
  tnk__json_key(w, key);
  tnk__json_text(w, text);
}

void tnk__json_put_object(tnk__json_writer_t *w, const char *key) {
  tnk__json_key(w, key);
  tnk__json_begin_object(w);
}

void tnk__json_put_array(tnk__json_writer_t *w, const char *key) {
  tnk__json_key(w, key);
  tnk__json_begin_array(w);
}

void tnk__json_put_raw(tnk__json_writer_t *w, const char *key,
                       const char *json) {
  tnk__json_key(w, key);
  if (json != NULL)
    tnk__json_raw(w, json, strlen(json));
  else
    tnk__json_null(w);
}

void tnk__json_put_int(tnk__json_writer_t *w, const char *key, int64_t value) {
  tnk__json_key(w, key);
  tnk__json_int(w, value);
}

void tnk__json_put_double(tnk__json_writer_t *w, const char *key,
                          double value) {
  tnk__json_key(w, key);
  put_double(w, value);
}

void tnk__json_put_bool(tnk__json_writer_t *w, const char *key, int value) {
  tnk__json_key(w, key);
  put_bool(w, value);
}

/* ---- Removing a member ---- */

/* The position after the string that begins at `at`. */
static size_t skip_string(const uint8_t *body, size_t n, size_t at) {
  for (at++; at < n && body[at] != '"'; at++)
    if (body[at] == '\\')
      at++;
  return at < n ? at + 1 : n;
}

/* The position after the value that begins at `at`. */
static size_t skip_value(const uint8_t *body, size_t n, size_t at) {
  size_t depth = 0;

  while (at < n) {
    const uint8_t c = body[at];

    if (c == '"') {
      at = skip_string(body, n, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']'))
      return at;
    if (c == '{' || c == '[')
      depth++;
    else if (c == '}' || c == ']')
      depth--;
    at++;
  }
  return n;
}

static int is_text(const uint8_t *body, size_t from, size_t to,
                   const char *text) {
  return to - from == strlen(text) && memcmp(body + from, text, to - from) == 0;
}

int tnk__json_cut(tnk__buf_t *out, const uint8_t *body, size_t n,
                  const char *member, const char *value) {
  size_t at = 1;

  while (at + 1 < n && body[at] == '"') {
    const size_t key_end = skip_string(body, n, at);
    size_t from = at;
    size_t to = skip_value(body, n, key_end + 1);

    if (to >= n)
      return 0;
    if (is_text(body, at + 1, key_end - 1, member)) {
      if (value != NULL && !is_text(body, key_end + 1, to, value))
        return 0;
      if (body[to] == ',')
        to++;
      else if (from > 1)
        from--;
      tnk__buf_append(out, body, from);
      tnk__buf_append(out, body + to, n - to);
      return 1;
    }
    at = to + 1;
  }
  return 0;
}
