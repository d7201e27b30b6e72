/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_RECOVER_RUN_QUERY_H
#define TNK_LIB_CLIENT_RECOVER_RUN_QUERY_H

#include "lib/client/session/session.h"

/*
 * The monitor's query for the run of a training client. The store of the
 * service's records implements it, because it is above the clients.
 */
typedef struct {
  /* Query one run. The caller owns the promise. */
  tnk_promise_t *(*ask)(tnk__session_t *session, const char *run_id);
  /* Whether a settled promise of `ask` reports a corrupted run. */
  int (*is_corrupted)(const tnk_promise_t *promise);
} tnk__run_query_t;

#endif
