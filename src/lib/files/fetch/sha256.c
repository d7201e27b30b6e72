/* SPDX-License-Identifier: MIT */
#include "lib/files/fetch/sha256.h"

#include <mbedtls/version.h>
#include <string.h>

/* mbedTLS 3 renamed the functions that return errors. */
#if MBEDTLS_VERSION_MAJOR < 3
#define sha256_starts mbedtls_sha256_starts_ret
#define sha256_update mbedtls_sha256_update_ret
#define sha256_finish mbedtls_sha256_finish_ret
#else
#define sha256_starts mbedtls_sha256_starts
#define sha256_update mbedtls_sha256_update
#define sha256_finish mbedtls_sha256_finish
#endif

void tnk__sha256_init(tnk__sha256_t *sha) {
  mbedtls_sha256_init(&sha->context);
  sha->failed = sha256_starts(&sha->context, 0) != 0;
}

void tnk__sha256_add(tnk__sha256_t *sha, const void *data, size_t n) {
  if (n > 0 && !sha->failed)
    sha->failed = sha256_update(&sha->context, data, n) != 0;
}

void tnk__sha256_end(tnk__sha256_t *sha, char out[TNK__SHA256_DIGITS + 1]) {
  static const char digits[] = "0123456789abcdef";
  unsigned char sum[TNK__SHA256_BYTES];

  out[0] = '\0';
  if (!sha->failed && sha256_finish(&sha->context, sum) == 0) {
    for (size_t i = 0; i < sizeof(sum); i++) {
      out[2 * i] = digits[sum[i] >> 4];
      out[2 * i + 1] = digits[sum[i] & 15];
    }
    out[TNK__SHA256_DIGITS] = '\0';
  }
  mbedtls_sha256_free(&sha->context);
}

int tnk__sha256_is_sum(const char *text) {
  return strlen(text) == TNK__SHA256_DIGITS &&
         strspn(text, "0123456789abcdef") == TNK__SHA256_DIGITS;
}
