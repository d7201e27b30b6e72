#include "lib/base/alloc.h"
#include "tools/local/base/clock.h"
#include "tools/local/future/future.h"

/*
 * Ends a server after it has finished its work. SERVING lets clients poll for
 * the results of their requests, on new connections too. New work gets 503.
 * LEAVING answers the pending requests, and every connection closes.
 */

static int is_awaited(const local_future_t *future, uint64_t now) {
  return !future->is_fetched && now - future->settled_ms < LOCAL_FETCH_MS;
}

/* Whether a result is pending, or available and not fetched yet. */
static int has_work(const local_server_t *server) {
  const uint64_t now = uv_now(server->loop);

  if (server->n_pending > 0)
    return 1;
  TNK__LIST_FOREACH (node, &server->results) {
    if (is_awaited(tnk__container_of(node, local_future_t, link), now))
      return 1;
  }
  return 0;
}

void local_server_drain(local_server_t *server, uint64_t absence_ms) {
  server->drains = 1;
  server->absence_ms = absence_ms;
  server->seen_ms = uv_now(server->loop);
}

int local_server_is_drained(local_server_t *server) {
  const uint64_t now = uv_now(server->loop);

  if (server->http.n_conns > 0)
    server->seen_ms = now;
  if (now - server->seen_ms < server->absence_ms && has_work(server))
    return 0;
  tnk__srv_drain(&server->http);
  return server->http.n_conns == 0;
}
