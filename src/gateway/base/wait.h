/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_BASE_WAIT_H
#define TNK_GATEWAY_BASE_WAIT_H

#include <stdint.h>

#include "lib/base/list.h"

/* Waits for lines to be written or read; embedded in its owner. */
typedef struct tnk__gw_waiter {
  tnk__list_t link;
  uint64_t upto;     /* bytes of a file; or a count, see store/client.c */
  uint64_t since_ms; /* of a shared record: when it began to wait */
  void (*done)(struct tnk__gw_waiter *waiter, int err);
} tnk__gw_waiter_t;

/* Call the waiters whose `upto` is reached, in their order. If `all_err` is not
 * 0, the others end with it. Otherwise those that began before `began_ms` end
 * with TNK_ECONN. */
void tnk__gw_wake(tnk__list_t *list, uint64_t upto, uint64_t began_ms,
                  int all_err);

#endif
