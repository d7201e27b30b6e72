#ifndef TNK_LIB_POLICY_RETRY_H
#define TNK_LIB_POLICY_RETRY_H

#include <stdint.h>

#include "lib/policy/classify.h"

/* The patience of a service that was given none. */
#define TNK__RETRY_PATIENCE_MS 300000

/*
 * The repeats of one call: one policy, where the official client nests two
 * loops.
 */
typedef struct {
  uint64_t started_ms;
  uint64_t failed_ms; /* when the first attempt failed */
  uint32_t max_retries;
  uint32_t n_retries; /* made so far, those that count */
} tnk__retry_t;

/* max_retries limits the short schedule; 0 allows no repeats at all. */
void tnk__retry_init(tnk__retry_t *retry, uint32_t max_retries,
                     uint64_t now_ms);
/* What an attempt gets at least that begins when patience is nearly over. */
#define TNK__RETRY_LAST_MS 2000

/*
 * Decide on one more attempt after a verdict of TNK__ACTION_RETRY. 1: make it
 * after *delay_ms. 0: that was the last one.
 *
 * No attempt begins later than patience_ms after the first failure. The long
 * schedule makes as many attempts as that allows, the short one max_retries at
 * most.
 *
 * server_ms is tnk__retry_after()'s, 0 for none: it decides when, never
 * whether.
 */
int tnk__retry_next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                    uint64_t patience_ms, uint64_t server_ms, uint64_t now_ms,
                    double u, uint64_t *delay_ms);
/* The timeout of the next attempt. A repeat does not wait for a response much
 * longer than patience lasts. */
uint64_t tnk__retry_timeout_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                               uint64_t timeout_ms, uint64_t now_ms);
/* The time from now on in which more attempts may begin. */
uint64_t tnk__retry_left_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                            uint64_t now_ms);

#endif
