#ifndef TNK_LIB_FILES_AGE_KEY_H
#define TNK_LIB_FILES_AGE_KEY_H

#include <stdint.h>

/* Bytes of a key, of either kind. */
#define TNK__AGE_KEY 32

/* Read a recipient, "age1...": who may open a file. Returns what is wrong with
 * it, as the end of a sentence ("the recipient ..."), or NULL. */
const char *tnk__age_recipient_read(uint8_t out[TNK__AGE_KEY],
                                    const char *text);
/* Read an identity, "AGE-SECRET-KEY-1...": what opens files. It is a secret,
 * and the caller wipes it. Returns as above ("the identity ..."). */
const char *tnk__age_identity_read(uint8_t out[TNK__AGE_KEY], const char *text);

#endif
