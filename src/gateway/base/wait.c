/* SPDX-License-Identifier: MIT */
#include "gateway/base/wait.h"

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* The waiters are moved to a list of their own first, because a callback may
 * wait again. */
void tnk__gw_wake(tnk__list_t *list, uint64_t upto, uint64_t began_ms,
                  int all_err) {
  tnk__list_t waiters;
  tnk__list_t *node;

  tnk__list_move(&waiters, list);
  while ((node = tnk__list_pop(&waiters)) != NULL) {
    tnk__gw_waiter_t *waiter = tnk__container_of(node, tnk__gw_waiter_t, link);

    if (waiter->upto <= upto)
      waiter->done(waiter, TNK_OK);
    else if (all_err != TNK_OK)
      waiter->done(waiter, all_err);
    else if (waiter->since_ms < began_ms)
      waiter->done(waiter, TNK_ECONN);
    else
      tnk__list_append(list, node);
  }
}
