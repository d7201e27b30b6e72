#ifndef TNK_LIB_CLIENT_RECOVER_RUN_QUERY_H
#define TNK_LIB_CLIENT_RECOVER_RUN_QUERY_H

#include "lib/client/session/session.h"

/*
 * How the monitor asks about the run of a training client. The store of the
 * service's records implements it, because it is above the clients.
 */
typedef struct {
  /* Ask for one run. The promise is the caller's. */
  tnk_promise_t *(*ask)(tnk__session_t *session, const char *run_id);
  /* Whether a settled promise of `ask` says that the run is corrupted. */
  int (*is_corrupted)(const tnk_promise_t *promise);
} tnk__run_query_t;

#endif
