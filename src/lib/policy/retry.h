/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_RETRY_H
#define TNK_LIB_POLICY_RETRY_H

#include <stdint.h>

#include "lib/policy/classify.h"

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

/* Default patience of a service. */
#define TNK__RETRY_PATIENCE_MS 300000

/*
 * The retries of one call, under one policy. The official client nests two
 * loops instead.
 */
typedef struct {
  uint64_t started_ms;
  uint64_t failed_ms; /* when the first attempt failed */
  uint32_t max_retries;
  uint32_t n_retries; /* counted retries so far */
} tnk__retry_t;

/* max_retries limits the short schedule. 0 disables all retries. */
void tnk__retry_init(tnk__retry_t *retry, uint32_t max_retries,
                     uint64_t now_ms);

/*
 * Decide on one more attempt after a verdict of TNK__ACTION_RETRY. Returns 1 to
 * make it after *delay_ms, 0 to give up.
 *
 * No attempt begins later than patience_ms after the first failure. The long
 * schedule has no other limit. The short schedule makes at most max_retries
 * retries.
 *
 * server_ms is the result of tnk__retry_after(), 0 for none. It sets the delay
 * but does not decide whether to retry.
 */
int tnk__retry_next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                    uint64_t patience_ms, uint64_t server_ms, uint64_t now_ms,
                    double u, uint64_t *delay_ms);
/* The timeout of the next attempt. A retry waits for a response at most about
 * as long as patience lasts. */
uint64_t tnk__retry_timeout_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                               uint64_t timeout_ms, uint64_t now_ms);
/* The remaining time in which attempts may begin. */
uint64_t tnk__retry_left_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                            uint64_t now_ms);

#endif
