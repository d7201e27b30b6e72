/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_URL_H
#define TNK_LIB_WIRE_FORMAT_URL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/*
 * The base URL of a service: scheme, host, port and path, and nothing else. All
 * strings are in the arena passed to tnk__url_parse().
 */
typedef struct {
  const char *host; /* lower case; an IPv6 address without its brackets */
  uint16_t port;    /* never 0 */
  int is_tls;
  const char *path; /* "" or "/a/b": encoded, without a final slash */
  /* For the Host header: host, brackets, nondefault port. */
  const char *authority;
  const char *text; /* the whole URL; equal strings mean equal URLs */
} tnk__url_t;

/*
 * Parse a URL and normalize it: scheme and host in lower case, no default port,
 * no final slashes, escapes in upper case.
 *
 * Returns TNK_OK, TNK_ENOMEM, or TNK_EINVAL with *why (may be NULL), a static
 * phrase such as "the base URL holds a user name or password".
 */
int tnk__url_parse(tnk__url_t *out, tnk__arena_t *arena, const char *text,
                   const char **why);
/* Returns whether the server is on this machine, judged by its name or address.
 */
int tnk__url_is_loopback(const tnk__url_t *url);
/*
 * Append one path segment, for example an id from a server. Characters that are
 * not allowed, including slashes, are percent-encoded; colons stay. An empty
 * segment, "." and ".." would change the path, so they fail `out` with
 * TNK_EINVAL.
 */
void tnk__url_put_segment(tnk__buf_t *out, const char *segment);
/* The same with the first n bytes of a string. */
void tnk__url_put_segment_n(tnk__buf_t *out, const char *segment, size_t n);
/* Append several segments. Slashes stay, as the API expects in checkpoint ids
 * ("weights/step-10"). */
void tnk__url_put_segments(tnk__buf_t *out, const char *segments);
/* Append the value of a query parameter. Any text is allowed. */
void tnk__url_put_query(tnk__buf_t *out, const char *value);

#endif
