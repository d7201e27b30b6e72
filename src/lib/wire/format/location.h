/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_LOCATION_H
#define TNK_LIB_WIRE_FORMAT_LOCATION_H

#include "lib/wire/format/url.h"

/*
 * The location of a download or a redirect: an http(s) URL with everything
 * after its host. It may be signed, which makes it a credential. It is
 * therefore wiped, and only `authority` appears in messages.
 */
typedef struct {
  char *text;         /* the URL without a fragment, in one block of memory */
  const char *target; /* points into text: path and query, at least "/" */
  char *host;         /* lower case; IPv6 without brackets */
  char *authority;    /* for messages: host, and port if not the default */
  uint16_t port;
  int is_tls;
} tnk__location_t;

/* Parse an absolute URL. Returns TNK_OK or TNK_ENOMEM. Returns TNK_EINVAL for
 * other text, for a URL with a user or password, and for characters that must
 * be encoded. After an error nothing must be freed. */
int tnk__location_parse(tnk__location_t *out, const tnk_allocator_t *alloc,
                        const char *text);
/* Resolve a reference (a Location header) relative to the page `base`. Returns
 * the same codes as tnk__location_parse(). */
int tnk__location_join(tnk__location_t *out, const tnk_allocator_t *alloc,
                       const tnk__location_t *base, const char *reference);
/* Returns whether scheme, host and port are equal. */
int tnk__location_same_origin(const tnk__location_t *a,
                              const tnk__location_t *b);
/* Free and wipe it. A zeroed one is allowed. */
void tnk__location_deinit(tnk__location_t *location,
                          const tnk_allocator_t *alloc);

#endif
