#include "lib/client/call/tenant.h"

/* One per thread, because a loop belongs to a thread. It owns no memory:
 * services link their limiters into it, and a back-off that outlives its
 * service is stored inside it. */
static _Thread_local tnk__limiter_registry_t registry;
static _Thread_local int registry_is_ready;

void tnk__tenant_join(tnk__limiter_t *limiter, const tnk__config_t *config,
                      uint64_t now_ms, uint64_t random0, uint64_t random1) {
  tnk__limiter_key_t key;

  tnk__limiter_init(limiter);
  if (config->options.limiter_scope == TNK_LIMITER_PRIVATE)
    return;
  if (!registry_is_ready) {
    tnk__limiter_registry_init(&registry, random0, random1);
    registry_is_ready = 1;
  }
  key = tnk__limiter_key(&registry, config->options.base_url,
                         config->api_key != NULL ? config->api_key
                                                 : config->credential_cmd);
  tnk__limiter_join(limiter, &registry, &key, now_ms);
}
