#ifndef TNK_API_HUB_H
#define TNK_API_HUB_H

#include "hub/hub.h"

/*
 * A hub: what its jobs share, in one piece of memory.
 *
 * Open. Closing: everything is rejected, connections and the context wind
 * down. Gone, right before the caller is told.
 */
struct tnk_hub {
  tnk__list_t link; /* in the thread's list of open hubs */
  tnk_allocator_t alloc;
  tnk__loop_t loop;
  tnk__hub_config_t config;
  tnk__http_t http;
  tnk__hub_t core;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
};

/* Close the hubs of this thread that are open on the loop; how many there
 * were. */
size_t tnk__hubs_close_on(uv_loop_t *uv);

#endif
