#ifndef TNK_LIB_API_HUB_H
#define TNK_LIB_API_HUB_H

#include "lib/api/root.h"
#include "lib/files/hub/hub.h"

/*
 * A hub: what its jobs share, in one piece of memory.
 *
 * Open. Closing: everything is rejected, connections and the context wind
 * down. Gone, right before the caller is told.
 */
struct tnk_hub {
  tnk__root_t root;
  tnk__hub_config_t config;
  tnk__hub_t core;
};

#endif
