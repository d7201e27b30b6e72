/* Whether sessions exist: heartbeats sent on request. */
#include "lib/base/alloc.h"
#include "lib/client/session/foreign.h"

static tnk__foreign_t *foreign_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__foreign_t, link);
}

/* A refused sample may belong to a session of another service. */
int tnk__session_ask(tnk__endpoint_t *endpoint) {
  tnk__session_t *session =
      tnk__container_of(endpoint, tnk__session_t, endpoint);
  int n_asked = 0;

  if (session->level == TNK__SESSION_READY && endpoint->ended_session == NULL) {
    tnk__heartbeat_ask(&session->heartbeat);
    n_asked++;
  }
  TNK__LIST_FOREACH (node, &session->foreigners) {
    if (foreign_at(node)->has_ended)
      continue;
    tnk__heartbeat_ask(&foreign_at(node)->heartbeat);
    n_asked++;
  }
  return n_asked > 0;
}

void tnk__session_answered(tnk__session_t *session) {
  if (tnk__heartbeat_is_asked(&session->heartbeat))
    return;
  TNK__LIST_FOREACH (node, &session->foreigners)
    if (tnk__heartbeat_is_asked(&foreign_at(node)->heartbeat))
      return;
  tnk__doubts_settle(&session->endpoint);
}
