/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_RECOVER_BREAKER_H
#define TNK_LIB_CLIENT_RECOVER_BREAKER_H

#include <stdint.h>

/*
 * A circuit breaker. After max_failures consecutive failures, no attempt is
 * made during pause_ms. Then one attempt decides: a success resets the breaker,
 * a failure restarts the pause.
 */
typedef struct {
  uint64_t max_failures; /* 0: disabled */
  uint64_t pause_ms;
  uint64_t n_failures; /* consecutive */
  uint64_t until_ms;   /* end of the last pause */
} tnk__breaker_t;

void tnk__breaker_init(tnk__breaker_t *breaker, uint64_t max_failures,
                       uint64_t pause_ms);
/* Time until the next attempt is allowed; 0: now. */
uint64_t tnk__breaker_wait_ms(const tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_failed(tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_worked(tnk__breaker_t *breaker);

#endif
