/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_AGE_KEY_H
#define TNK_LIB_FILES_AGE_KEY_H

#include <stdint.h>

/* Size of a key, public or secret. */
#define TNK__AGE_KEY 32

/* Parse a recipient, "age1...": a public key that a file is encrypted for.
 * Returns the error as the end of a sentence ("the recipient ..."), or NULL. */
const char *tnk__age_recipient_read(uint8_t out[TNK__AGE_KEY],
                                    const char *text);
/* Parse an identity, "AGE-SECRET-KEY-1...": a secret key that decrypts files.
 * The caller must wipe it. Returns as above ("the identity ..."). */
const char *tnk__age_identity_read(uint8_t out[TNK__AGE_KEY], const char *text);

#endif
