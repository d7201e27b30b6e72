/* SPDX-License-Identifier: MIT */
#include "lib/policy/billing.h"

#include <string.h>

/* A 402 later than this after the last warning begins a new incident. */
#define FORGET_MS 300000
#define WARN_EVERY_MS 60000

void tnk__billing_init(tnk__billing_t *billing, uint64_t max_ms) {
  memset(billing, 0, sizeof(*billing));
  billing->max_ms = max_ms;
}

/*
 * States: no incident (neither time is set); incident, from the first 402 until
 * FORGET_MS after the last warning.
 */
tnk__billing_step_t tnk__billing_refused(tnk__billing_t *billing,
                                         uint64_t now_ms) {
  int warn;

  if (billing->has_logged && now_ms - billing->logged_ms > FORGET_MS) {
    billing->has_first = 0;
    billing->has_logged = 0;
  }
  if (billing->has_first && now_ms - billing->first_ms > billing->max_ms)
    return TNK__BILLING_STOP;
  warn = !billing->has_logged || now_ms - billing->logged_ms > WARN_EVERY_MS;
  if (warn) {
    billing->logged_ms = now_ms;
    billing->has_logged = 1;
  }
  if (!billing->has_first) {
    billing->first_ms = now_ms;
    billing->has_first = 1;
  }
  return warn ? TNK__BILLING_PAUSE_AND_WARN : TNK__BILLING_PAUSE;
}
