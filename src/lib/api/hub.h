#ifndef TNK_LIB_API_HUB_H
#define TNK_LIB_API_HUB_H

#include "lib/api/root.h"
#include "lib/files/hub/hub.h"

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
