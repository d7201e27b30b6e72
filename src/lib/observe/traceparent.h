#ifndef TNK_LIB_OBSERVE_TRACEPARENT_H
#define TNK_LIB_OBSERVE_TRACEPARENT_H

#include <stdint.h>

enum { TNK__TRACEPARENT = 55 }; /* characters */

/* W3C's trace context, the header traceparent: whose part something is. */
typedef struct {
  char trace_id[32 + 1]; /* "": there is none */
  char flags[2 + 1];
} tnk__traceparent_t;

/* Read "00-<trace>-<span>-<flags>", in small letters; of a later version what
 * stands behind that is passed over. 0: it is none. */
int tnk__traceparent_read(tnk__traceparent_t *out, const char *text);
/* Write that of a span of the same trace, with its end. */
void tnk__traceparent_write(const tnk__traceparent_t *trace, uint64_t span,
                            char out[TNK__TRACEPARENT + 1]);

#endif
