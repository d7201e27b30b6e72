#ifndef TNK_LIB_OBSERVE_TRACE_HEAD_H
#define TNK_LIB_OBSERVE_TRACE_HEAD_H

#include <stdint.h>

enum { TNK__TRACE_MAX_HEAD = 2048 };

/* Write the head of a trace to `at`, which has TNK__TRACE_MAX_HEAD bytes.
 * Returns its end. */
uint8_t *tnk__trace_put_head(uint8_t *at, int pid);

#endif
