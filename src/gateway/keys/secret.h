/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_KEYS_SECRET_H
#define TNK_GATEWAY_KEYS_SECRET_H

#include <stddef.h>
#include <stdint.h>

enum {
  TNK__GW_HASH = 32,                 /* bytes of a SHA-256 */
  TNK__GW_DIGITS = 2 * 32,           /* of a key and of a hash in text */
  TNK__GW_KEY_TEXT = 4 + 2 * 32 + 1, /* "tnk-", digits, NUL */
  TNK__GW_ID_TEXT = 4 + 2 * 8 + 1    /* "key-", digits, NUL */
};

/* Draw a key, or the id of a key, from the system's generator. Returns TNK_OK
 * or TNK_ESYSTEM. */
int tnk__gw_secret_key(char out[TNK__GW_KEY_TEXT]);
int tnk__gw_secret_id(char out[TNK__GW_ID_TEXT]);
/* Hash a key. A key has 256 random bits, so it needs neither salt nor a slow
 * hash. Returns TNK_OK or TNK_ESYSTEM. */
int tnk__gw_secret_hash(const char *key, size_t n, uint8_t out[TNK__GW_HASH]);
/* Compare in constant time. */
int tnk__gw_secret_is(const uint8_t a[TNK__GW_HASH],
                      const uint8_t b[TNK__GW_HASH]);
/* A hash as text and back. The reader returns 0, or -1 for other text. */
void tnk__gw_secret_write(const uint8_t hash[TNK__GW_HASH],
                          char out[TNK__GW_DIGITS + 1]);
int tnk__gw_secret_read(const char *text, uint8_t out[TNK__GW_HASH]);

#endif
