#ifndef TNK_LIB_API_CREDENTIALS_H
#define TNK_LIB_API_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/format/url.h"
#include "tnk/common.h"

/* Read the stored key for a base URL from ~/.tinker/credentials.json. Returns
 * TNK_OK with *key NULL if no key is stored or the file does not exist. Returns
 * TNK_ECREDENTIAL with the reason in `why` if the file is invalid or its key is
 * for another server. Otherwise returns TNK_ENOMEM. Protocol: transport, stored
 * credentials. */
int tnk__credentials_read(const tnk_allocator_t *alloc, const tnk__url_t *url,
                          char **key, char *why, size_t size);

/* Check the syntax of a key. Returns TNK_OK, TNK_ECREDENTIAL or TNK_ENOMEM.
 * *expires_s is set for a JWT, and is 0 for a plain key. *why is the reason for
 * TNK_ECREDENTIAL, without the key. */
int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why);

#endif
