/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_BILLING_H
#define TNK_LIB_POLICY_BILLING_H

#include <stdint.h>

#define TNK__BILLING_DELAY_MS 5000 /* length of one pause */

/* The pauses of one service while its account has no credit (status 402). */
typedef struct {
  uint64_t first_ms;  /* first 402 of the incident */
  uint64_t logged_ms; /* last warning */
  uint64_t max_ms;    /* the server's billing_exception_max_pause_duration */
  uint8_t has_first;
  uint8_t has_logged;
} tnk__billing_t;

typedef enum {
  TNK__BILLING_PAUSE = 0, /* wait TNK__BILLING_DELAY_MS, try again */
  TNK__BILLING_PAUSE_AND_WARN,
  TNK__BILLING_STOP /* paused for too long: report TNK_EBILLING */
} tnk__billing_step_t;

void tnk__billing_init(tnk__billing_t *billing, uint64_t max_ms);
/* Decide the next step after a 402. */
tnk__billing_step_t tnk__billing_refused(tnk__billing_t *billing,
                                         uint64_t now_ms);

#endif
