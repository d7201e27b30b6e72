#ifndef TNK_FLOW_RETRY_H
#define TNK_FLOW_RETRY_H

#include <stdint.h>

#include "flow/classify.h"

/* The longest time all attempts of one call with the long schedule take, pauses
 * for billing included, before the next one is not made. The other schedule is
 * limited by the number of retries alone. */
#define TNK__RETRY_TOTAL_MS 300000

/*
 * The repeats of one call: one policy, where the official client nests two
 * loops.
 */
typedef struct {
  uint64_t started_ms;
  uint32_t max_retries;
  uint32_t n_retries; /* made so far, those that count */
} tnk__retry_t;

void tnk__retry_init(tnk__retry_t *retry, uint32_t max_retries,
                     uint64_t now_ms);
/*
 * Decide on one more attempt after a verdict of TNK__ACTION_RETRY. 1: make it
 * after *delay_ms. 0: that was the last one.
 *
 * server_ms is tnk__retry_after()'s, 0 for none: it decides when, never
 * whether. With the long schedule the delay never reaches beyond
 * TNK__RETRY_TOTAL_MS.
 */
int tnk__retry_next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                    uint64_t server_ms, uint64_t now_ms, double u,
                    uint64_t *delay_ms);

#endif
