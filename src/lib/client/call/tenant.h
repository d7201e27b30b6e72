#ifndef TNK_LIB_CLIENT_CALL_TENANT_H
#define TNK_LIB_CLIENT_CALL_TENANT_H

#include "lib/client/call/config.h"
#include "lib/policy/limiter.h"

/*
 * Join the back-off that all services of this thread with the same URL and
 * credential share, or keep a private one if the options say so. The list of
 * a thread's limiters is the one thing here that is not owned by a service.
 * The two random numbers key the hashes of the first call of a thread.
 */
void tnk__tenant_join(tnk__limiter_t *limiter, const tnk__config_t *config,
                      uint64_t now_ms, uint64_t random0, uint64_t random1);

#endif
