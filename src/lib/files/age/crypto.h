/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_AGE_CRYPTO_H
#define TNK_LIB_FILES_AGE_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "lib/files/age/key.h"

#define TNK__AGE_FILE_KEY 16
#define TNK__AGE_NONCE 12
#define TNK__AGE_TAG 16
#define TNK__AGE_WRAPPED (TNK__AGE_FILE_KEY + TNK__AGE_TAG)

/* Fills `out` with cryptographically secure random bytes, in mbedTLS's calling
 * convention. Returns 0 on success. */
typedef int (*tnk__age_random_t)(void *user, unsigned char *out, size_t n);

/* Compute X25519. `random` blinds the computation. Returns TNK_OK, TNK_ENOMEM,
 * or TNK_EPROTO for a point of small order, where every scalar gives the same
 * result. */
int tnk__age_multiply(uint8_t out[TNK__AGE_KEY],
                      const uint8_t scalar[TNK__AGE_KEY],
                      const uint8_t point[TNK__AGE_KEY],
                      tnk__age_random_t random, void *user);
/* Compute the public key of a secret. */
int tnk__age_publish(uint8_t out[TNK__AGE_KEY],
                     const uint8_t secret[TNK__AGE_KEY],
                     tnk__age_random_t random, void *user);
/* HKDF-SHA-256 with 32 bytes of output. TNK_OK, TNK_ENOMEM, TNK_EINTERNAL. */
int tnk__age_derive(uint8_t out[TNK__AGE_KEY], const void *secret, size_t n,
                    const void *salt, size_t n_salt, const char *info);
/* Compute the MAC of a header with a file key. Returns as above. */
int tnk__age_mac(uint8_t out[TNK__AGE_KEY],
                 const uint8_t file_key[TNK__AGE_FILE_KEY], const void *head,
                 size_t n);
/* Derive the key that wraps a file key for a recipient. Returns as above. */
int tnk__age_wrap_key(uint8_t out[TNK__AGE_KEY],
                      const uint8_t shared[TNK__AGE_KEY],
                      const uint8_t share[TNK__AGE_KEY],
                      const uint8_t recipient[TNK__AGE_KEY]);
/* Encrypt n bytes to `out`, followed by the tag. Returns as above. */
int tnk__age_encrypt(uint8_t *out, const uint8_t key[TNK__AGE_KEY],
                     const uint8_t nonce[TNK__AGE_NONCE], const void *data,
                     size_t n);
/* Decrypt n bytes that are followed by the tag. Returns TNK_OK, TNK_ECORRUPT
 * with `out` wiped, TNK_ENOMEM or TNK_EINTERNAL. */
int tnk__age_decrypt(uint8_t *out, const uint8_t key[TNK__AGE_KEY],
                     const uint8_t nonce[TNK__AGE_NONCE], const uint8_t *data,
                     size_t n);

#endif
