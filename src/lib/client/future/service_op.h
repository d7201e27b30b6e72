/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_FUTURE_SERVICE_OP_H
#define TNK_LIB_CLIENT_FUTURE_SERVICE_OP_H

#include "lib/base/arena.h"
#include "lib/client/future/future.h"
#include "lib/client/session/session.h"
#include "lib/policy/queue_state.h"

/*
 * A service operation: it belongs to no client, for example the creation of a
 * client or a query. It waits for the session, then makes calls in sequence.
 * Then it settles its promise and is freed at once.
 */
typedef struct tnk__service_op {
  tnk__list_t link; /* in session->registry.service_ops */
  tnk__session_t *session;
  tnk_promise_t *promise;
  const char *name; /* name of the operation, static */
  tnk__stall_t stall;
  tnk__need_t need;
  tnk__call_t call; /* a plain query */
  tnk__job_t job;   /* a call with a future */
  tnk__buf_t body;  /* body of the active call or job */
  tnk__arena_t arena;
  void (*begin)(struct tnk__service_op *self);
  /* Sends a query without the flags; see tnk__service_op_ask(). */
  void (*ask)(struct tnk__service_op *self);
  /* Frees resources that the owner has added, or NULL. */
  void (*clean)(struct tnk__service_op *self);
  tnk__error_t *refused; /* the error with which the query was refused before
                            it asked for the flags, or NULL */
  uint8_t is_unsure;     /* the query was sent without the flags */
  uint8_t exchanges;     /* the credential that was sent then, as in auth.h */
  uint8_t uses_command;
  uint8_t has_secret; /* in `arena` and `body`, which are wiped at the end */
} tnk__service_op_t;

/*
 * Make a service operation: `size` bytes, beginning with a tnk__service_op_t.
 * NULL without memory; *promise is valid in both cases. If *promise is not
 * NULL, it is taken over.
 */
tnk__service_op_t *tnk__service_op_new(tnk__session_t *session,
                                       const char *name, size_t size,
                                       tnk_promise_t **promise);
/* Record that `arena` and `body` will hold a secret. */
void tnk__service_op_keep_secret(tnk__service_op_t *op);
/* Call `begin` when the session has reached that level. */
void tnk__service_op_enter(tnk__service_op_t *op, tnk__session_level_t level,
                           void (*begin)(tnk__service_op_t *self));

/* Send a query at once, with the service's key. Most servers accept the key, so
 * their flags are not requested first. `ask` is called to send it, and again
 * after tnk__service_op_asks_again(). */
void tnk__service_op_ask(tnk__service_op_t *op,
                         void (*ask)(struct tnk__service_op *self));
/* Returns whether such a query was refused by a server that may want a token.
 * Call this first in its `done`. Returns 1 if the server is asked for its
 * flags; the response must then be ignored. */
int tnk__service_op_asks_again(tnk__service_op_t *op,
                               const tnk__reply_t *reply);

/* Start the plain call, or the job, with the content of `body`. The caller has
 * bound it and set its fields. */
void tnk__service_op_call(tnk__service_op_t *op,
                          void (*done)(tnk__call_t *call,
                                       const tnk__reply_t *reply));
void tnk__service_op_job(tnk__service_op_t *op,
                         void (*done)(tnk__job_t *job,
                                      const tnk__reply_t *reply));

/* Settle and free. `error` is borrowed. */
void tnk__service_op_resolve(tnk__service_op_t *op, tnk__result_kind_t kind,
                             void *value,
                             void (*free_value)(const tnk_allocator_t *,
                                                void *));
void tnk__service_op_fail(tnk__service_op_t *op, tnk__error_t *error);
/* Fail and free. If the service has refused the operation, the message names
 * `thing`. NULL: nothing is added. */
void tnk__service_op_fail_about(tnk__service_op_t *op, tnk__error_t *error,
                                const char *thing);
/* The same for a job. A server that has accepted it and does not know its
 * result has lost its memory, unless its message names `thing`: TNK_ESESSION.
 */
void tnk__service_op_fail_job(tnk__service_op_t *op, const tnk__reply_t *reply,
                              const char *thing);
void tnk__service_op_fail_code(tnk__service_op_t *op, const char *name,
                               int code);
/* Free it after its promise was transferred. */
void tnk__service_op_dispose(tnk__service_op_t *op);

#endif
