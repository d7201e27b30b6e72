/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_REGISTRY_H
#define TNK_LIB_CLIENT_SESSION_REGISTRY_H

#include "lib/base/list.h"
#include "lib/client/session/heartbeat.h"

struct tnk_sampling;
struct tnk_training;

/* Receives the losses of the server. Recovery implements it. */
typedef struct tnk__losses {
  /* The session is lost (`training` is NULL), or the model of a training
   * client. Only schedules. */
  void (*lost)(struct tnk__losses *self, struct tnk_training *training);
  /* A sampler is lost. Only schedules. */
  void (*lost_sampler)(struct tnk__losses *self, struct tnk_sampling *sampling);
  /* The server was probably restarted, though the session exists. It may call
   * the program. */
  void (*restarted)(struct tnk__losses *self);
} tnk__losses_t;

/*
 * The clients of a service, and its operations that belong to no client. Each
 * enters its list when it is made and leaves it right before it is freed. So a
 * list also has those that are closing. The lists own nothing.
 */
typedef struct tnk__registry {
  tnk__endpoint_t *endpoint;
  tnk__heartbeat_t *own;   /* of the service's own session, if there is one */
  tnk__list_t trainings;   /* training clients */
  tnk__list_t samplings;   /* sampling clients */
  tnk__list_t service_ops; /* service operations: creations, queries */
  tnk__list_t foreigners;  /* sessions of other services, see below */
  tnk__losses_t *losses;   /* NULL: no one; set by its owner */
} tnk__registry_t;

void tnk__registry_open(tnk__registry_t *registry, tnk__endpoint_t *endpoint);

/* Call on_queue_state, if the program has set it. Must be last: the callback
 * may close the service. */
void tnk__registry_tell(tnk__registry_t *registry, const char *client,
                        tnk_queue_state_t state, const char *reason);
/* Report to the user that operations of a client wait at the service. */
void tnk__registry_notice(tnk__registry_t *registry, const char *client,
                          tnk_queue_state_t state, const char *reason);
/* A heartbeat that a doubt has requested was answered, or is not needed any
 * more. If it was the last one, the calls that wait for it end. Only
 * schedules. */
void tnk__registry_answered(tnk__registry_t *registry);

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
  tnk__registry_t *registry;
  char *id;
  size_t n_clients;
  size_t n_joining;  /* those among them whose promise will report a loss */
  const char *ended; /* its id once the server has ended it; else NULL */
  tnk__heartbeat_t heartbeat;
} tnk__foreign_t;

/* Add a client. `own` is the id of the service's own session, or NULL. *out is
 * NULL if that is the session. TNK_OK or TNK_ENOMEM. */
int tnk__foreign_enter(tnk__foreign_t **out, tnk__registry_t *registry,
                       const char *own, const char *id);
/* Remove a client. Allocates nothing. Does nothing with NULL. */
void tnk__foreign_leave(tnk__foreign_t *foreign);

#endif
