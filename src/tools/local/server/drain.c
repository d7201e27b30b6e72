#include "lib/base/alloc.h"
#include "tools/local/future/future.h"

/*
 * Ends a server after it has finished its work. SERVING lets clients poll for
 * the results of their requests. If a connection closed after its request, the
 * next poll could not get the result. New work gets 503. LEAVING answers the
 * pending requests, and every connection closes.
 */

/* An active client polls again within this time. */
enum { FETCH_MS = 5000 };

static int is_awaited(const local_future_t *future, uint64_t now) {
  return !future->is_fetched && now - future->settled_ms < FETCH_MS;
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

void local_server_drain(local_server_t *server) {
  server->drains = 1;
}

int local_server_is_drained(local_server_t *server) {
  if (server->http.n_conns > 0 && !has_work(server))
    tnk__srv_drain(&server->http);
  return server->http.n_conns == 0;
}
