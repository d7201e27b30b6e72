/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OBSERVE_TRACEPARENT_H
#define TNK_LIB_OBSERVE_TRACEPARENT_H

#include <stdint.h>

enum { TNK__TRACEPARENT = 55 }; /* length in characters */

/* The header traceparent of W3C Trace Context: the parent of a span. */
typedef struct {
  char trace_id[32 + 1]; /* "": none */
  char flags[2 + 1];
  char span_id[16 + 1]; /* of the parent */
} tnk__traceparent_t;

/* Parse "00-<trace>-<span>-<flags>" in lower case. In a later version,
 * additional fields are ignored. Returns 0 if it is invalid. */
int tnk__traceparent_read(tnk__traceparent_t *out, const char *text);
/* Write the header for a span of the same trace, with a NUL. */
void tnk__traceparent_write(const tnk__traceparent_t *trace, uint64_t span,
                            char out[TNK__TRACEPARENT + 1]);

#endif
