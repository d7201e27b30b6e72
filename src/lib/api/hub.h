/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_HUB_H
#define TNK_LIB_API_HUB_H

#include "lib/api/root.h"
#include "lib/files/hub/hub.h"

/* Fill `config` from the caller's options, which are in `options` with their
 * size set, and from the environment. On failure *why may be set to the reason,
 * and nothing is kept. TNK_OK, TNK_EINVAL, TNK_ENOMEM. */
int tnk__hub_config_load(tnk__hub_config_t *config,
                         const tnk_allocator_t *alloc,
                         const tnk_hub_options_t *options, const char **why);
void tnk__hub_config_deinit(tnk__hub_config_t *config);

/*
 * A hub: the shared state of its jobs, in one allocation.
 *
 * States: open. Closing: pending promises are rejected, and the connections and
 * the context close. Gone, just before the close callback is called.
 */
struct tnk_hub {
  tnk__root_t root;
  tnk__hub_config_t config;
  tnk__hub_t core;
};

#endif
