#ifndef TNK_API_HUB_H
#define TNK_API_HUB_H

#include "api/opened.h"
#include "task/hub/hub.h"

/*
 * A hub: what its jobs share, in one piece of memory.
 *
 * Open. Closing: everything is rejected, connections and the context wind
 * down. Gone, right before the caller is told.
 */
struct tnk_hub {
  tnk__opened_t opened;
  tnk_allocator_t alloc;
  tnk__loop_t loop;
  tnk__hub_config_t config;
  tnk__http_t http;
  tnk__hub_t core;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
};

#endif
