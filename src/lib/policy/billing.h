#ifndef TNK_LIB_POLICY_BILLING_H
#define TNK_LIB_POLICY_BILLING_H

#include <stdint.h>

#define TNK__BILLING_DELAY_MS 5000 /* of one pause */

/* The pause of one service while its account has no credit (status 402). */
typedef struct {
  uint64_t first_ms;  /* the incident's first 402 */
  uint64_t logged_ms; /* the last warning */
  uint64_t max_ms;    /* the server's billing_exception_max_pause_duration */
  uint8_t has_first;
  uint8_t has_logged;
} tnk__billing_t;

typedef enum {
  TNK__BILLING_PAUSE = 0, /* wait TNK__BILLING_DELAY_MS, try again */
  TNK__BILLING_PAUSE_AND_WARN,
  TNK__BILLING_STOP /* it took too long: report TNK_EBILLING */
} tnk__billing_step_t;

void tnk__billing_init(tnk__billing_t *billing, uint64_t max_ms);
/* Decide what follows a 402. */
tnk__billing_step_t tnk__billing_refused(tnk__billing_t *billing,
                                         uint64_t now_ms);

#endif
