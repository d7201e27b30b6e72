#ifndef TNK_LIB_WIRE_FORMAT_LOCATION_H
#define TNK_LIB_WIRE_FORMAT_LOCATION_H

#include "lib/wire/format/url.h"

/*
 * Where one thing is to be had: an http(s) URL with everything behind its
 * host, as a download or a redirection names it. It may be signed, which makes
 * it a credential: it is wiped, and only `authority` is told to anybody.
 */
typedef struct {
  char *text;         /* all of it, without a fragment; one block of memory */
  const char *target; /* in text: path and query, "/" at least */
  char *host;         /* lower case; IPv6 without brackets */
  char *authority;    /* for people: host, odd port */
  uint16_t port;
  int is_tls;
} tnk__location_t;

/* Take an absolute URL apart. TNK_OK, TNK_ENOMEM, or TNK_EINVAL: none, one
 * with a user or password, or with a character that must be encoded; then
 * there is nothing to be freed. */
int tnk__location_parse(tnk__location_t *out, const tnk_allocator_t *alloc,
                        const char *text);
/* Find out what a reference (a Location header) on the page `base` means;
 * returns what tnk__location_parse() does. */
int tnk__location_join(tnk__location_t *out, const tnk_allocator_t *alloc,
                       const tnk__location_t *base, const char *reference);
/* Whether scheme, host and port are the same. */
int tnk__location_same_origin(const tnk__location_t *a,
                              const tnk__location_t *b);
/* Free and wipe it; a zeroed one may be given too. */
void tnk__location_deinit(tnk__location_t *location,
                          const tnk_allocator_t *alloc);

#endif
