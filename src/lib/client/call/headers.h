/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_HEADERS_H
#define TNK_LIB_CLIENT_CALL_HEADERS_H

#include "lib/client/call/config.h"

/* Limits of the library's own headers. The caller's are in a second list. */
enum { TNK__MAX_HEADERS = 24, TNK__MAX_HEADER_TEXT = 1024 };

/* The headers of one attempt, built on the stack right before it. Values that
 * can be computed again are not kept during the call. */
typedef struct tnk__headers {
  const tnk__config_t *config;
  size_t n;
  tnk_pair_t pairs[TNK__MAX_HEADERS]; /* values that must be checked */
  size_t n_text;
  char text[TNK__MAX_HEADER_TEXT]; /* header lines as sent */
} tnk__headers_t;

void tnk__headers_init(tnk__headers_t *headers, const tnk__config_t *config);
/* Add a header; both strings are borrowed. Does nothing if the caller's options
 * set the same header. */
void tnk__headers_add(tnk__headers_t *headers, const char *name,
                      const char *value);
/* Add a header with a value of the library, which needs no check. */
void tnk__headers_add_text(tnk__headers_t *headers, const char *name,
                           const char *value);
/* Add a header whose value is a number, in decimal. */
void tnk__headers_add_uint(tnk__headers_t *headers, const char *name,
                           uint64_t value);
/* Add milliseconds as seconds with three decimals. */
void tnk__headers_add_seconds(tnk__headers_t *headers, const char *name,
                              uint64_t ms);
/* Add 128 random bits as a UUID after "tnk-". */
void tnk__headers_add_uuid(tnk__headers_t *headers, const char *name,
                           const uint64_t bits[2]);
/* Add traceparent, for a span of the trace in the options. Does nothing without
 * such a trace. */
void tnk__headers_add_span(tnk__headers_t *headers, uint64_t span);

#endif
