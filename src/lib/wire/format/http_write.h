#ifndef TNK_LIB_WIRE_FORMAT_HTTP_WRITE_H
#define TNK_LIB_WIRE_FORMAT_HTTP_WRITE_H

#include "lib/base/buf.h"

/* What stands in the head of one request; all of it is borrowed. */
typedef struct {
  const char *method;
  const char *target; /* path and query, encoded */
  const char *host;   /* a name or an address; IPv6 without brackets */
  uint16_t port;
  uint16_t default_port; /* of the scheme; left out of Host */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_pair_t *more_headers; /* written after the first list */
  size_t n_more_headers;
  /* Headers with the ends of their lines, written as they are: those that only
   * we can have made. NULL: none. */
  const char *lines;
  size_t lines_len;
  size_t body_len;
  int is_plain; /* the answer must not be compressed */
  /* The request goes to a proxy, which has to know all of the http:// URL, and
   * gets these headers before the others. */
  int is_absolute;
  const tnk_pair_t *proxy_headers;
  size_t n_proxy_headers;
} tnk__http_head_t;

/*
 * Append the head of an HTTP/1.1 request, up to and with the empty line.
 * TNK_OK, TNK_ENOMEM, TNK_ETOOBIG, or TNK_EINVAL: something that cannot be
 * written without changing the meaning of what follows it (a control
 * character, a blank in the target), or a header that is ours to write. After
 * TNK_EINVAL nothing has been appended.
 *
 * `out` grows at most once, so that no credential stays behind in memory that
 * was given back.
 */
int tnk__http_write_head(tnk__buf_t *out, const tnk__http_head_t *head);
/* Append the head of a CONNECT, which asks a proxy for a tunnel to host and
 * port: of `head` only those two and proxy_headers count. */
int tnk__http_write_connect(tnk__buf_t *out, const tnk__http_head_t *head);

/* Whether `text` may stand in a header as its name, or as its value. */
int tnk__http_is_token(const char *text);
int tnk__http_is_field_value(const char *text);
/* Whether only the HTTP code may write that header. */
int tnk__http_is_reserved(const char *name);
/* The order of two header names, without regard to the case of ASCII. */
int tnk__http_compare_names(const char *a, const char *b);

#endif
