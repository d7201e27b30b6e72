#ifndef TNK_API_CREDENTIALS_H
#define TNK_API_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Protocol: transport, stored credentials. */

/* Read the default key out of a credentials file's text. TNK_OK with a key or
 * with *key NULL when the file names none; TNK_ECREDENTIAL when it is
 * invalid. */
int tnk__credentials_parse(const tnk_allocator_t *alloc, const char *text,
                           size_t length, char **key);
/* Read it out of ~/.tinker/credentials.json. A missing file holds no key. */
int tnk__credentials_read(const tnk_allocator_t *alloc, char **key);

/* Check a key's form. TNK_OK, with *expires_s set for a JWT and 0 for a plain
 * key; TNK_ECREDENTIAL, and *why says what is wrong, without the key; or
 * TNK_ENOMEM. */
int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why);

#endif
