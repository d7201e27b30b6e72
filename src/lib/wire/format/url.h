#ifndef TNK_LIB_WIRE_FORMAT_URL_H
#define TNK_LIB_WIRE_FORMAT_URL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/*
 * The base URL of a service: scheme, host, port and a path, and nothing else.
 * All texts are in the arena that was given to tnk__url_parse().
 */
typedef struct {
  const char *host; /* lower case; an IPv6 address without its brackets */
  uint16_t port;    /* never 0 */
  int is_tls;
  const char *path;      /* "" or "/a/b": encoded, without a slash at its end */
  const char *authority; /* for the Host header: host, brackets, odd port */
  const char *text;      /* all of it; equal texts are equal URLs */
} tnk__url_t;

/*
 * Take a URL apart and normalise it: scheme and host in lower case, no default
 * port, no slashes at the end, escapes in upper case.
 *
 * TNK_OK; TNK_ENOMEM; or TNK_EINVAL with *why (may be NULL), a static phrase
 * such as "the base URL holds a user name or password".
 */
int tnk__url_parse(tnk__url_t *out, tnk__arena_t *arena, const char *text,
                   const char **why);
/* Whether the server is on this machine, by its name or address. */
int tnk__url_is_loopback(const tnk__url_t *url);
/*
 * Append one segment of a path, such as an id that a server gave. What may
 * not stand there, slashes included, is percent-encoded; colons stay. An
 * empty one, "." and ".." would change the path and fail `out` with
 * TNK_EINVAL.
 */
void tnk__url_put_segment(tnk__buf_t *out, const char *segment);
/* The same with the first n bytes of a text. */
void tnk__url_put_segment_n(tnk__buf_t *out, const char *segment, size_t n);
/* Append several segments at once: slashes stay, as the API expects of
 * checkpoint ids ("weights/step-10"). */
void tnk__url_put_segments(tnk__buf_t *out, const char *segments);
/* Append the value of a parameter in a query; any text will do. */
void tnk__url_put_query(tnk__buf_t *out, const char *value);

#endif
