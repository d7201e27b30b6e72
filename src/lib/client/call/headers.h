#ifndef TNK_LIB_CLIENT_CALL_HEADERS_H
#define TNK_LIB_CLIENT_CALL_HEADERS_H

#include "lib/client/call/config.h"

/* The most that the library adds; the caller's come in a second list. */
enum { TNK__MAX_HEADERS = 24, TNK__MAX_HEADER_TEXT = 1024 };

/* The headers of one attempt at a call, made on the stack right before it:
 * what can be worked out again is not kept while the call is under way. */
typedef struct tnk__headers {
  const tnk__config_t *config;
  size_t n;
  tnk_pair_t pairs[TNK__MAX_HEADERS]; /* what has to be checked */
  size_t n_text;
  char text[TNK__MAX_HEADER_TEXT]; /* lines as they are sent */
} tnk__headers_t;

void tnk__headers_init(tnk__headers_t *headers, const tnk__config_t *config);
/* Add a header; both strings are borrowed. Nothing happens when the caller's
 * options set the same one. */
void tnk__headers_add(tnk__headers_t *headers, const char *name,
                      const char *value);
/* The same for a value of the library's own, which needs no check. */
void tnk__headers_add_text(tnk__headers_t *headers, const char *name,
                           const char *value);
/* Add a header whose value is a number, in decimal. */
void tnk__headers_add_uint(tnk__headers_t *headers, const char *name,
                           uint64_t value);
/* Add milliseconds as seconds with three decimals. */
void tnk__headers_add_seconds(tnk__headers_t *headers, const char *name,
                              uint64_t ms);
/* Add 128 random bits as a UUID behind "tnk-". */
void tnk__headers_add_uuid(tnk__headers_t *headers, const char *name,
                           const uint64_t bits[2]);
/* Add traceparent, for a span of the trace that the options name; nothing where
 * they name none. */
void tnk__headers_add_span(tnk__headers_t *headers, uint64_t span);

#endif
