/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_PAGE_H
#define TNK_LIB_WIRE_MESSAGE_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* More than the longest text of tnk__page_explain() with a base URL of usual
 * length. */
#define TNK__MAX_PAGE_TEXT ((size_t)512)

/*
 * A response that may not come from the service. A proxy or an unrelated web
 * server may send pages for people, or redirects. Missing headers are NULL. The
 * body may be cut off.
 */
typedef struct {
  int status;
  const char *type; /* Content-Type */
  const char *server;
  const char *via;
  const char *location;
  const char *cause; /* X-Squid-Error */
  const uint8_t *body;
  size_t body_len;
  size_t sent_len; /* size of the request's body */
  /* The following members must not contain secrets. */
  const char *base_url;
  /* Path prefix of all calls after the base URL: "/api/v1/". */
  const char *path;
  /* Name of a proxy that received the request with its credential. The response
   * may repeat the credential, so none of its text is shown. NULL: no such
   * proxy. */
  const char *confidant;
} tnk__page_t;

/* Returns whether it is a page for people: HTML or other markup, which the
 * service never sends. */
int tnk__page_is(const tnk__page_t *page);
/*
 * Describe the page as the end of a sentence: "not the service but nginx/1.22.1
 * says \"401 Authorization Required\"", "redirects to https://host; set
 * TINKER_BASE_URL to that".
 *
 * Names and titles have a limited length, are on one line, and have no
 * characters that act on a terminal. A user and a query in a URL are omitted.
 * Returns 0 if the status says everything; `text` is then empty.
 */
int tnk__page_explain(const tnk__page_t *page, char *text, size_t size);

#endif
