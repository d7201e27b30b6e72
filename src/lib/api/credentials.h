#ifndef TNK_LIB_API_CREDENTIALS_H
#define TNK_LIB_API_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/format/url.h"
#include "tnk/common.h"

/* Read the stored key for a base URL out of ~/.tinker/credentials.json. TNK_OK
 * with *key NULL: none is stored, also where there is no file. TNK_ECREDENTIAL:
 * the file cannot be used, or its key is not for this server; `why` says so.
 * Else TNK_ENOMEM. Protocol: transport, stored credentials. */
int tnk__credentials_read(const tnk_allocator_t *alloc, const tnk__url_t *url,
                          char **key, char *why, size_t size);

/* Check a key's form. TNK_OK, with *expires_s set for a JWT and 0 for a plain
 * key; TNK_ECREDENTIAL, and *why says what is wrong, without the key; or
 * TNK_ENOMEM. */
int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why);

#endif
