/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_SESSION_H
#define TNK_LIB_CLIENT_SESSION_SESSION_H

#include "lib/base/alloc.h"
#include "lib/client/call/config.h"
#include "lib/client/call/renewal.h"
#include "lib/client/session/cancel.h"
#include "lib/client/session/limits.h"
#include "lib/client/session/registry.h"
#include "lib/client/session/start.h"
#include "lib/io/loop/context.h"
#include "lib/io/loop/promise.h"
#include "lib/usage/totals.h"

/*
 * Data that a caller has lent and gets back unread, because the call was
 * refused. The lender is notified in a later turn of the loop, even without
 * memory. A reserve is kept for as many refusals as one turn may bring.
 */
enum { TNK__LOANS_SPARE = 32 };

typedef struct {
  tnk__deferred_t call;
  struct tnk__loans *loans;
  void (*release)(void *user); /* NULL: not in use */
  void *user;
  int is_spare; /* part of the reserve */
} tnk__loan_t;

typedef struct tnk__loans {
  tnk__context_t *context;
  tnk__loan_t spare[TNK__LOANS_SPARE];
} tnk__loans_t;

/* Notify the lender in the next turn of the loop. Exception: without memory,
 * and with the whole reserve in use, it is called at once. */
void tnk__loans_end(tnk__loans_t *loans, void (*release)(void *user),
                    void *user);

/*
 * The state that all clients of a service share: the target of calls and its
 * credential, the session at the server, the limits for sending, and the lists
 * of clients. start.h, limits.h and registry.h describe the last three.
 */
typedef struct tnk__session {
  tnk__context_t *context;
  const tnk__config_t *config;
  tnk__endpoint_t endpoint;
  tnk__renewal_t renewal;
  tnk__start_t start;
  tnk__limits_t limits;
  tnk__registry_t registry;
  tnk__loans_t loans;
  tnk__canceler_t canceler;
} tnk__session_t;

/* The session behind the target of a call. */
static inline tnk__session_t *tnk__session_of(tnk__endpoint_t *endpoint) {
  return tnk__container_of(endpoint, tnk__session_t, endpoint);
}

void tnk__session_open(tnk__session_t *session, tnk__context_t *context,
                       const tnk__config_t *config, tnk__http_t *http);
/* Refuse new operations, and fail those that wait for a level. */
void tnk__session_shut(tnk__session_t *session);
/* Stop timers and calls, leave the limiter, free. */
void tnk__session_close(tnk__session_t *session);

/* Usage of the service, and of the run that it continues. The requests of a
 * service are counted when they are sent. */
tnk__totals_t tnk__session_used(const tnk__session_t *session);
tnk__totals_t tnk__session_run_used(const tnk__session_t *session);

/* Returns whether one more operation may be pending: TNK_OK, TNK_EFULL or
 * TNK_ECLOSED. */
int tnk__session_admits(const tnk__session_t *session);

#endif
