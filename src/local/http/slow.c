#include "local/http/slow.h"

#include "base/alloc.h"
#include "local/http/state.h"

enum { TICK_MS = 5 };

struct local_slow {
  uv_timer_t timer;
  local_http_t *http;
  uint64_t rate;
  uint64_t began_ms;
  void (*tick)(void *owner, uint64_t n_due);
  void *owner;
};

static void on_closed(uv_handle_t *handle) {
  local_slow_t *slow =
      tnk__container_of((uv_timer_t *)handle, local_slow_t, timer);
  local_http_t *http = slow->http;

  tnk__free(http->config.alloc, slow);
  local_http_release(http);
}

void local_slow_stop(local_slow_t *slow) {
  uv_close((uv_handle_t *)&slow->timer, on_closed);
}

/* The first byte is due at once. */
static void on_tick(uv_timer_t *timer) {
  local_slow_t *slow = tnk__container_of(timer, local_slow_t, timer);

  slow->tick(slow->owner,
             1 + (uv_now(timer->loop) - slow->began_ms) * slow->rate / 1000);
}

local_slow_t *local_slow_start(local_http_t *http, uint64_t rate,
                               void (*tick)(void *owner, uint64_t n_due),
                               void *owner) {
  local_slow_t *slow = tnk__calloc(http->config.alloc, 1, sizeof(*slow));

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
