#ifndef TNK_LIB_CLIENT_RECOVER_BREAKER_H
#define TNK_LIB_CLIENT_RECOVER_BREAKER_H

#include <stdint.h>

/*
 * After so many failures in a row nothing is tried for a while. Then one
 * attempt decides: when it goes well, all is as in the beginning, else the same
 * while begins anew.
 */
typedef struct {
  uint64_t max_failures; /* 0: it never breaks */
  uint64_t pause_ms;
  uint64_t n_failures; /* in a row */
  uint64_t until_ms;   /* of the last pause */
} tnk__breaker_t;

void tnk__breaker_init(tnk__breaker_t *breaker, uint64_t max_failures,
                       uint64_t pause_ms);
/* How long nothing may be tried; 0: now. */
uint64_t tnk__breaker_wait_ms(const tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_failed(tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_worked(tnk__breaker_t *breaker);

#endif
