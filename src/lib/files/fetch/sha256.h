/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_FETCH_SHA256_H
#define TNK_LIB_FILES_FETCH_SHA256_H

#include <mbedtls/sha256.h>

/* A SHA-256 checksum over several pieces; allocates nothing. */
typedef struct {
  mbedtls_sha256_context context;
  int failed; /* mbedTLS may fail if hardware computes the checksum */
} tnk__sha256_t;

#define TNK__SHA256_BYTES 32
#define TNK__SHA256_DIGITS 64

void tnk__sha256_init(tnk__sha256_t *sha);
void tnk__sha256_add(tnk__sha256_t *sha, const void *data, size_t n);
/* Write the checksum as lower-case digits and a NUL; "" if mbedTLS failed. */
void tnk__sha256_end(tnk__sha256_t *sha, char out[TNK__SHA256_DIGITS + 1]);
/* Returns whether the string is a checksum: 64 lower-case digits. */
int tnk__sha256_is_sum(const char *text);

#endif
