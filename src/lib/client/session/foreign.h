#ifndef TNK_LIB_CLIENT_SESSION_FOREIGN_H
#define TNK_LIB_CLIENT_SESSION_FOREIGN_H

#include "lib/client/session/session.h"

/*
 * A session that another service has made, perhaps in another process, and of
 * which samplers are used here. Each service that uses it sends heartbeats for
 * it; only the one that made it reports its end.
 *
 * There is one for all clients of a session. It lives from the first that
 * enters until the last one leaves.
 */
typedef struct {
  tnk__list_t link; /* in session->foreigners */
  tnk__session_t *session;
  char *id;
  size_t n_clients;
  int has_ended; /* the server has said so */
  tnk__heartbeat_t heartbeat;
} tnk__foreign_t;

/* One more client. *out is NULL where the session is the service's own. TNK_OK
 * or TNK_ENOMEM. */
int tnk__foreign_enter(tnk__foreign_t **out, tnk__session_t *session,
                       const char *id);
/* Allocates nothing; harmless with NULL. */
void tnk__foreign_leave(tnk__foreign_t *foreign);

#endif
