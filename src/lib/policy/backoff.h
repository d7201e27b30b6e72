#ifndef TNK_LIB_POLICY_BACKOFF_H
#define TNK_LIB_POLICY_BACKOFF_H

#include <stdint.h>

/*
 * Delays before the n-th retry (n counts from 0), in milliseconds. `u` is
 * uniform in [0, 1). No n overflows.
 */

/* min(0.5 * 2^n, 10) s, shortened by up to 25%. */
uint64_t tnk__backoff_request_ms(uint32_t n, double u);
/* min(2^n, 30) s, shortened by up to 25%. Used by the outer loop, and by polls
 * after a 429 or a lost connection. */
uint64_t tnk__backoff_slow_ms(uint32_t n, double u);
/* min(0.5 * 2^n, 10) s, plus or minus up to 25%, at most 10 s. Used when a
 * sample is submitted again. */
uint64_t tnk__backoff_sample_ms(uint32_t n, double u);

#endif
