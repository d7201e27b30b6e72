/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_HTTP_WRITE_H
#define TNK_LIB_WIRE_FORMAT_HTTP_WRITE_H

#include "lib/base/buf.h"

/* The head of a request. Everything is borrowed. */
typedef struct {
  const char *method;
  const char *target; /* path and query, encoded */
  const char *host;   /* name or address; IPv6 without brackets */
  uint16_t port;
  uint16_t default_port; /* port of the scheme; omitted in Host */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_pair_t *more_headers; /* second list, written after the first */
  size_t n_more_headers;
  /* Encoded headers with their line ends, written unchanged. Only trusted code
   * may produce them. NULL: none. */
  const char *lines;
  size_t lines_len;
  size_t body_len;
  int is_plain; /* the response must not be compressed */
  /* Nonzero if the request goes to an HTTP proxy. The proxy needs the whole
   * http:// URL. It gets `proxy_headers` before the others. */
  int is_absolute;
  const tnk_pair_t *proxy_headers;
  size_t n_proxy_headers;
} tnk__http_head_t;

/*
 * Append the head of an HTTP/1.1 request, including the empty line. Returns
 * TNK_OK, TNK_ENOMEM or TNK_ETOOBIG. Returns TNK_EINVAL for text that would
 * change the meaning of what follows (a control character, a blank in the
 * target), and for a reserved header. After TNK_EINVAL nothing was appended.
 *
 * `out` grows at most once, so no copy of a credential stays in freed memory.
 */
int tnk__http_write_head(tnk__buf_t *out, const tnk__http_head_t *head);
/* Append the head of a CONNECT request, which asks a proxy for a tunnel to host
 * and port. Only those two and proxy_headers of `head` are used. */
int tnk__http_write_connect(tnk__buf_t *out, const tnk__http_head_t *head);

/* Returns whether `text` is valid as the name or as the value of a header. */
int tnk__http_is_token(const char *text);
int tnk__http_is_field_value(const char *text);
/* Returns whether only the HTTP code may write this header. */
int tnk__http_is_reserved(const char *name);
/* The order of two header names. The case of ASCII letters is ignored. */
int tnk__http_compare_names(const char *a, const char *b);
/* Make "Bearer <token>", to be freed with tnk__free_secret(). NULL: no
 * memory. */
char *tnk__http_bearer(const tnk_allocator_t *alloc, const char *token);

#endif
