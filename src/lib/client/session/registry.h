#ifndef TNK_LIB_CLIENT_SESSION_REGISTRY_H
#define TNK_LIB_CLIENT_SESSION_REGISTRY_H

#include "lib/base/list.h"
#include "lib/client/session/heartbeat.h"

struct tnk__session;

/*
 * The clients of a service, and its operations that belong to no client. Each
 * enters its list when it is made and leaves it right before it is freed. So a
 * list also has those that are closing. The lists own nothing.
 */
typedef struct tnk__registry {
  tnk__list_t trainings;  /* training clients */
  tnk__list_t samplings;  /* sampling clients */
  tnk__list_t errands;    /* service operations: creations, queries */
  tnk__list_t foreigners; /* sessions of other services, see below */
} tnk__registry_t;

void tnk__registry_open(struct tnk__session *session);

/* Call on_queue_state, if the program has set it. Must be last: the callback
 * may close the service. */
void tnk__session_tell(struct tnk__session *session, const char *client,
                       tnk_queue_state_t state, const char *reason);
/* Report to the user that operations of a client wait at the service. */
void tnk__session_notice(struct tnk__session *session, const char *client,
                         tnk_queue_state_t state, const char *reason);
/* A heartbeat that a doubt has requested was answered, or is not needed any
 * more. If it was the last one, the calls that wait for it end. Only
 * schedules. */
void tnk__session_answered(struct tnk__session *session);

/*
 * A session that another service has created, possibly in another process, and
 * whose samplers are used here. Each service that uses it sends heartbeats for
 * it. Only the service that created it reports its end.
 *
 * There is one object for all clients of a session. It exists from the first
 * client that enters until the last one leaves.
 */
typedef struct {
  tnk__list_t link; /* in registry->foreigners */
  struct tnk__session *session;
  char *id;
  size_t n_clients;
  int has_ended; /* the server has reported its end */
  tnk__heartbeat_t heartbeat;
} tnk__foreign_t;

/* Add a client. *out is NULL if the session is the service's own. TNK_OK or
 * TNK_ENOMEM. */
int tnk__foreign_enter(tnk__foreign_t **out, struct tnk__session *session,
                       const char *id);
/* Remove a client. Allocates nothing. Does nothing with NULL. */
void tnk__foreign_leave(tnk__foreign_t *foreign);

#endif
