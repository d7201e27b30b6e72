/* SPDX-License-Identifier: MIT */
#include "gateway/keys/secret.h"

#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <string.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* mbedTLS 3 renamed the function that returns an error. */
#if MBEDTLS_VERSION_MAJOR < 3
#define sha256 mbedtls_sha256_ret
#else
#define sha256 mbedtls_sha256
#endif

static void write_digits(const uint8_t *bytes, size_t n, char *out) {
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < n; i++) {
    out[2 * i] = digits[bytes[i] >> 4];
    out[2 * i + 1] = digits[bytes[i] & 15];
  }
  out[2 * n] = '\0';
}

static int draw(const char *prefix, size_t n, char *out) {
  uint8_t bytes[TNK__GW_HASH];
  size_t n_prefix = strlen(prefix);

  if (uv_random(NULL, NULL, bytes, n, 0, NULL) != 0)
    return TNK_ESYSTEM;
  memcpy(out, prefix, n_prefix);
  write_digits(bytes, n, out + n_prefix);
  tnk__wipe(bytes, sizeof(bytes));
  return TNK_OK;
}

int tnk__gw_secret_key(char out[TNK__GW_KEY_TEXT]) {
  return draw("tnk-", 32, out);
}

int tnk__gw_secret_id(char out[TNK__GW_ID_TEXT]) {
  return draw("key-", 8, out);
}

int tnk__gw_secret_hash(const char *key, size_t n, uint8_t out[TNK__GW_HASH]) {
  return sha256((const uint8_t *)key, n, out, 0) == 0 ? TNK_OK : TNK_ESYSTEM;
}

int tnk__gw_secret_is(const uint8_t a[TNK__GW_HASH],
                      const uint8_t b[TNK__GW_HASH]) {
  unsigned differs = 0;

  for (size_t i = 0; i < TNK__GW_HASH; i++)
    differs |= a[i] ^ b[i];
  return differs == 0;
}

void tnk__gw_secret_write(const uint8_t hash[TNK__GW_HASH],
                          char out[TNK__GW_DIGITS + 1]) {
  write_digits(hash, TNK__GW_HASH, out);
}

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tnk__gw_secret_read(const char *text, uint8_t out[TNK__GW_HASH]) {
  if (strlen(text) != TNK__GW_DIGITS)
    return -1;
  for (size_t i = 0; i < TNK__GW_HASH; i++) {
    int high = digit(text[2 * i]);
    int low = digit(text[2 * i + 1]);

    if (high < 0 || low < 0)
      return -1;
    out[i] = (uint8_t)(high * 16 + low);
  }
  return 0;
}
