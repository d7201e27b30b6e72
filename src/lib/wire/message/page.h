#ifndef TNK_LIB_WIRE_MESSAGE_PAGE_H
#define TNK_LIB_WIRE_MESSAGE_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* More than the longest sentence of tnk__page_explain() about a base URL of
 * ordinary length. */
#define TNK__MAX_PAGE_TEXT ((size_t)512)

/*
 * An answer that may not be the service's: something between us and it, or a
 * web server that stands where the service was expected, writes pages for
 * people and sends them elsewhere. Headers are NULL where there are none. The
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
  size_t sent_len; /* of the request's body */
  /* Nothing of this is a secret. */
  const char *base_url;
  const char *path; /* of all calls, behind the base URL: "/api/v1/" */
  /* A proxy that was given a credential and the request itself: its words might
   * be that credential, so nothing of them is told. NULL: there is none. */
  const char *confidant;
} tnk__page_t;

/* Whether it is a page for people: HTML or other markup, which the service does
 * not write. */
int tnk__page_is(const tnk__page_t *page);
/*
 * Write what it says, as the end of a sentence: "not the service but
 * nginx/1.22.1 says \"401 Authorization Required\"", "redirects to
 * https://host; set TINKER_BASE_URL to that". Names and titles are bounded, on
 * one line, and without characters that could act on a terminal; a user and a
 * query in a URL are left out. 0: there is nothing to be said that the status
 * does not say, and `text` is empty.
 */
int tnk__page_explain(const tnk__page_t *page, char *text, size_t size);

#endif
