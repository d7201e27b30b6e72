/* SPDX-License-Identifier: MIT */
#include "lib/base/base64.h"

#include <string.h>

#include "tnk/error.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char digit(uint32_t bits) {
  return alphabet[bits & 63];
}

void tnk__base64_write(tnk__buf_t *out, const void *data, size_t n) {
  const uint8_t *in = data;
  uint8_t *at;
  size_t i;

  /* (n + 2) / 3 * 4 must not overflow. */
  if (out->err == TNK_OK && n > SIZE_MAX / 4 * 3 - 3)
    out->err = TNK_ETOOBIG;
  at = tnk__buf_reserve(out, out->err == TNK_OK ? (n + 2) / 3 * 4 : 0);
  if (at == NULL || out->err != TNK_OK)
    return;
  for (i = 0; i < n; i += 3) {
    size_t left = n - i;
    uint32_t bits = (uint32_t)in[i] << 16;
    if (left > 1)
      bits |= (uint32_t)in[i + 1] << 8;
    if (left > 2)
      bits |= in[i + 2];
    *at++ = (uint8_t)digit(bits >> 18);
    *at++ = (uint8_t)digit(bits >> 12);
    *at++ = (uint8_t)(left > 1 ? digit(bits >> 6) : '=');
    *at++ = (uint8_t)(left > 2 ? digit(bits) : '=');
  }
  out->len += (n + 2) / 3 * 4;
}

/* Returns 0..63, or -1. */
static int value(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  if (c == '+' || c == '-')
    return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

/* The number of digits before the padding; SIZE_MAX if the padding is wrong. */
static size_t count_digits(const char *text, size_t n) {
  size_t digits = n;

  while (digits > 0 && text[digits - 1] == '=')
    digits--;
  if (n - digits > 2 || (n != digits && n % 4 != 0) || digits % 4 == 1)
    return SIZE_MAX;
  return digits;
}

/* The value of each character; other characters are NOTHING or a BLANK. */
enum { BLANK = 0x40, NOTHING = 0x80 };

static void make_table(uint8_t table[256]) {
  memset(table, NOTHING, 256);
  table[' '] = table['\t'] = table['\r'] = table['\n'] = BLANK;
  for (unsigned i = 0; i < 64; i++)
    table[(unsigned char)alphabet[i]] = (uint8_t)i;
}

size_t tnk__base64_read_lines(uint8_t *out, const char *text, size_t n) {
  uint8_t table[256];
  uint32_t bits = 0;
  size_t n_digits = 0;
  size_t n_pads = 0;
  size_t len = 0;

  make_table(table);
  for (size_t i = 0; i < n; i++) {
    unsigned v = table[(unsigned char)text[i]];
    /* Decoding in place is possible, because a byte is written only after its
     * digits were read. */
    if (v < 64 && n_pads == 0) {
      bits = bits << 6 | v;
      n_digits++;
      if (n_digits % 4 != 1)
        out[len++] = (uint8_t)(bits >> 2 * ((4 - n_digits % 4) & 3));
    } else if (text[i] == '=') {
      n_pads++;
    } else if (v != BLANK) {
      return SIZE_MAX;
    }
  }
  if (n_pads > 2 || (n_digits + n_pads) % 4 != 0 ||
      (n_digits % 4 == 2 && (bits & 15) != 0) ||
      (n_digits % 4 == 3 && (bits & 3) != 0))
    return SIZE_MAX;
  return len;
}

/* The number of bytes that n digits encode. */
static size_t size_of(size_t digits) {
  return digits / 4 * 3 + digits % 4 * 3 / 4;
}

size_t tnk__base64_decode(uint8_t *out, const char *text, size_t n) {
  size_t digits = count_digits(text, n);
  uint32_t bits = 0;
  size_t i;

  if (digits == SIZE_MAX)
    return SIZE_MAX;
  for (i = 0; i < digits; i++) {
    int v = value(text[i]);
    if (v < 0)
      return SIZE_MAX;
    bits = bits << 6 | (uint32_t)v;
    /* The second, third and fourth digit of a group each complete a byte. */
    if (i % 4 != 0)
      *out++ = (uint8_t)(bits >> (6 - 2 * (i % 4)));
  }
  /* Unused bits must be 0, so that no two texts encode the same bytes. The
   * length is not updated yet, so `out` is unchanged after a failure. */
  if ((digits % 4 == 2 && (bits & 15) != 0) ||
      (digits % 4 == 3 && (bits & 3) != 0))
    return SIZE_MAX;
  return size_of(digits);
}

int tnk__base64_read(tnk__buf_t *out, const char *text, size_t n) {
  size_t digits = count_digits(text, n);
  uint8_t *at;

  if (digits == SIZE_MAX)
    return TNK_EPROTO;
  at = tnk__buf_reserve(out, size_of(digits));
  if (at == NULL)
    return out->err;
  n = tnk__base64_decode(at, text, n);
  if (n == SIZE_MAX)
    return TNK_EPROTO;
  out->len += n;
  return TNK_OK;
}
