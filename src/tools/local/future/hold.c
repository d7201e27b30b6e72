#include "tools/local/future/hold.h"

#include "lib/base/alloc.h"

/* A minimum time. Without it, polls that wait for each other's connections
 * would cycle as fast as the machine can. */
enum { MIN_HELD_MS = 100 };

void local_hold_start(local_server_t *server, local_hold_t *hold,
                      void (*over)(local_timer_t *timer)) {
  hold->since_ms = uv_now(server->loop);
  tnk__list_append(&server->held, &hold->link);
  server->n_waiting++;
  local_timer_init(&hold->timer);
  local_timer_start(&server->timers, &hold->timer, server->options.hold_ms,
                    over);
}

void local_hold_stop(local_server_t *server, local_hold_t *hold) {
  tnk__list_remove(&hold->link);
  local_timer_stop(&hold->timer);
  server->n_waiting--;
}

void local_hold_oldest_ends(void *user) {
  local_server_t *server = user;
  tnk__list_t *node = tnk__list_first(&server->held);
  uint64_t now = uv_now(server->loop);
  local_hold_t *hold;
  uint64_t end;

  if (node == NULL)
    return;
  hold = tnk__container_of(node, local_hold_t, link);
  end = hold->since_ms + MIN_HELD_MS;
  if (end < hold->timer.due_ms)
    local_timer_start(&server->timers, &hold->timer, end > now ? end - now : 0,
                      hold->timer.fn);
}
