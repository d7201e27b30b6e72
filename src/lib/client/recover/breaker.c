/* SPDX-License-Identifier: MIT */
#include "lib/client/recover/breaker.h"

void tnk__breaker_init(tnk__breaker_t *breaker, uint64_t max_failures,
                       uint64_t pause_ms) {
  *breaker =
      (tnk__breaker_t){.max_failures = max_failures, .pause_ms = pause_ms};
}

uint64_t tnk__breaker_wait_ms(const tnk__breaker_t *breaker, uint64_t now_ms) {
  return breaker->until_ms > now_ms ? breaker->until_ms - now_ms : 0;
}

void tnk__breaker_failed(tnk__breaker_t *breaker, uint64_t now_ms) {
  breaker->n_failures++;
  if (breaker->max_failures == 0 || breaker->n_failures < breaker->max_failures)
    return;
  breaker->until_ms = breaker->pause_ms < UINT64_MAX - now_ms
                          ? now_ms + breaker->pause_ms
                          : UINT64_MAX;
}

void tnk__breaker_worked(tnk__breaker_t *breaker) {
  breaker->n_failures = 0;
  breaker->until_ms = 0;
}
