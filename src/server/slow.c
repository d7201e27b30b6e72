/* SPDX-License-Identifier: MIT */
#include "server/slow.h"

#include "lib/base/alloc.h"
#include "server/state.h"

enum { TICK_MS = 5 };

struct tnk__srv_slow {
  uv_timer_t timer;
  tnk__srv_t *http;
  uint64_t rate;
  uint64_t began_ms;
  void (*tick)(void *owner, uint64_t n_due);
  void *owner;
};

static void on_closed(uv_handle_t *handle) {
  tnk__srv_slow_t *slow =
      tnk__container_of((uv_timer_t *)handle, tnk__srv_slow_t, timer);
  tnk__srv_t *http = slow->http;

  tnk__free(http->config.alloc, slow);
  tnk__srv_release(http);
}

void tnk__srv_slow_stop(tnk__srv_slow_t *slow) {
  uv_close((uv_handle_t *)&slow->timer, on_closed);
}

/* Add 1, because the first byte is due at once. */
static void on_tick(uv_timer_t *timer) {
  tnk__srv_slow_t *slow = tnk__container_of(timer, tnk__srv_slow_t, timer);

  slow->tick(slow->owner,
             1 + (uv_now(timer->loop) - slow->began_ms) * slow->rate / 1000);
}

tnk__srv_slow_t *tnk__srv_slow_start(tnk__srv_t *http, uint64_t rate,
                                     void (*tick)(void *owner, uint64_t n_due),
                                     void *owner) {
  tnk__srv_slow_t *slow = tnk__calloc(http->config.alloc, 1, sizeof(*slow));

  if (slow == NULL)
    return NULL;
  uv_timer_init(http->listener.loop, &slow->timer);
  http->n_open++;
  slow->http = http;
  slow->rate = rate;
  slow->began_ms = uv_now(http->listener.loop);
  slow->tick = tick;
  slow->owner = owner;
  uv_timer_start(&slow->timer, on_tick, 0, TICK_MS);
  return slow;
}
