#include "lib/base/alloc.h"
#include "tools/local/future/future.h"

/*
 * The end of a server that finishes its work. SERVING first lets clients poll
 * for the results of what they have submitted: a connection that closed after
 * its request would lose the result to the next poll. New work gets 503. Then
 * LEAVING answers what is in hand, and every connection closes.
 */

/* A client that is still there polls again within this time. */
enum { FETCH_MS = 5000 };

static int is_awaited(const local_future_t *future, uint64_t now) {
  return !future->is_fetched && now - future->settled_ms < FETCH_MS;
}

/* Whether a result is still to come, or is there and not yet fetched. */
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
