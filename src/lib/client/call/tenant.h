#ifndef TNK_LIB_CLIENT_CALL_TENANT_H
#define TNK_LIB_CLIENT_CALL_TENANT_H

#include "lib/client/call/config.h"
#include "lib/policy/limiter.h"

/*
 * Join the back-off that all services of this thread with the same URL and
 * credential share, or keep a private one if the options say so. A thread's
 * list of limiters is the only state here that does not belong to a service.
 * The two random numbers key the hashes; only the first call of a thread uses
 * them.
 */
void tnk__tenant_join(tnk__limiter_t *limiter, const tnk__config_t *config,
                      uint64_t now_ms, uint64_t random0, uint64_t random1);

#endif
