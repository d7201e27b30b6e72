#ifndef TNK_TOOLS_LOCAL_FUTURE_HOLD_H
#define TNK_TOOLS_LOCAL_FUTURE_HOLD_H

#include "tools/local/call/state.h"

/* A held poll. It is held for hold_ms, or less if connections are scarce and it
 * is the oldest one. */
typedef struct {
  tnk__list_t link; /* in local_server_t.held, oldest first */
  local_timer_t timer;
  uint64_t since_ms;
} local_hold_t;

/* `over` is called when its time has expired, unless it is stopped before. */
void local_hold_start(local_server_t *server, local_hold_t *hold,
                      void (*over)(local_timer_t *timer));
void local_hold_stop(local_server_t *server, local_hold_t *hold);
/* For tnk__srv_config_t.on_full. */
void local_hold_oldest_ends(void *user);

#endif
