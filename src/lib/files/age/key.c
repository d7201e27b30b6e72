/* SPDX-License-Identifier: MIT */
#include "lib/files/age/key.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/check.h"

/* Bech32 (BIP 173): a prefix, "1", and characters of five bits. The last six
 * characters are a checksum over all that precede. */
enum { N_DATA = 52, N_SUM = 6, N_CHARS = N_DATA + N_SUM };

static const char alphabet[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static uint32_t add(uint32_t sum, unsigned value) {
  static const uint32_t terms[] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa,
                                   0x3d4233dd, 0x2a1462b3};
  const uint32_t top = sum >> 25;

  sum = ((sum & 0x1ffffff) << 5) ^ value;
  for (int i = 0; i < 5; i++)
    if ((top >> i & 1) != 0)
      sum ^= terms[i];
  return sum;
}

static uint32_t add_prefix(const char *prefix, size_t n) {
  uint32_t sum = 1;

  for (size_t i = 0; i < n; i++)
    sum = add(sum, (unsigned char)lower(prefix[i]) >> 5);
  sum = add(sum, 0);
  for (size_t i = 0; i < n; i++)
    sum = add(sum, (unsigned char)lower(prefix[i]) & 31);
  return sum;
}

/* Convert groups of five bits to bytes; the unused bits must be zero. */
static int join(uint8_t out[TNK__AGE_KEY], const uint8_t *values) {
  unsigned bits = 0;
  unsigned n_bits = 0;
  size_t n = 0;

  for (size_t i = 0; i < N_DATA; i++) {
    bits = (bits << 5 | values[i]) & 0xfff;
    n_bits += 5;
    if (n_bits >= 8) {
      n_bits -= 8;
      out[n++] = (uint8_t)(bits >> n_bits);
    }
  }
  return n == TNK__AGE_KEY && (bits & ((1u << n_bits) - 1)) == 0;
}

/* The case of the prefix must match the case of the key. */
static const char *read_key(uint8_t out[TNK__AGE_KEY], const char *text,
                            const char *prefix) {
  const size_t n_prefix = strlen(prefix);
  const int is_upper = prefix[0] < 'a';
  uint32_t sum = add_prefix(prefix, n_prefix);
  uint8_t values[N_CHARS];
  const char *why = NULL;

  memset(out, 0, TNK__AGE_KEY);
  if (strncmp(text, prefix, n_prefix) != 0 || text[n_prefix] != '1')
    return is_upper ? "does not begin with AGE-SECRET-KEY-1"
                    : "does not begin with age1";
  text += n_prefix + 1;
  if (strlen(text) != N_CHARS)
    return "is not as long as a key of X25519";
  for (size_t i = 0; i < N_CHARS && why == NULL; i++) {
    const char c = is_upper ? lower(text[i]) : text[i];
    const char *at = memchr(alphabet, c, 32);
    if (at == NULL || (is_upper && c == text[i] && c >= 'a'))
      why = "has an invalid character";
    else
      sum = add(sum, values[i] = (uint8_t)(at - alphabet));
  }
  if (why == NULL && (sum != 1 || !join(out, values)))
    why = "is mistyped: its checksum is wrong";
  tnk__wipe(values, sizeof(values));
  return why;
}

const char *tnk__age_recipient_read(uint8_t out[TNK__AGE_KEY],
                                    const char *text) {
  if (tnk__is_secret_key(text))
    return "is a secret key, which must not be shared";
  return read_key(out, text, "age");
}

const char *tnk__age_identity_read(uint8_t out[TNK__AGE_KEY],
                                   const char *text) {
  return read_key(out, text, "AGE-SECRET-KEY-");
}
