#ifndef TNK_LIB_CLIENT_SESSION_FOREIGN_H
#define TNK_LIB_CLIENT_SESSION_FOREIGN_H

#include "lib/client/session/session.h"

/*
 * A session that another service has created, possibly in another process, and
 * whose samplers are used here. Each service that uses it sends heartbeats for
 * it. Only the service that created it reports its end.
 *
 * There is one object for all clients of a session. It exists from the first
 * client that enters until the last one leaves.
 */
typedef struct {
  tnk__list_t link; /* in session->foreigners */
  tnk__session_t *session;
  char *id;
  size_t n_clients;
  int has_ended; /* the server has reported its end */
  tnk__heartbeat_t heartbeat;
} tnk__foreign_t;

/* Add a client. *out is NULL if the session is the service's own. TNK_OK or
 * TNK_ENOMEM. */
int tnk__foreign_enter(tnk__foreign_t **out, tnk__session_t *session,
                       const char *id);
/* Remove a client. Allocates nothing. Does nothing with NULL. */
void tnk__foreign_leave(tnk__foreign_t *foreign);

#endif
