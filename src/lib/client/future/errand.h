#ifndef TNK_LIB_CLIENT_FUTURE_ERRAND_H
#define TNK_LIB_CLIENT_FUTURE_ERRAND_H

#include "lib/base/arena.h"
#include "lib/client/future/job.h"
#include "lib/client/session/session.h"
#include "lib/policy/stall.h"

/*
 * An operation that belongs to no client: making one, or a question to the
 * service. It waits for the session, then makes calls one after the other.
 *
 * Waiting; calling; then it settles its promise and is freed at once.
 */
typedef struct tnk__errand {
  tnk__list_t link; /* in session->errands */
  tnk__session_t *session;
  tnk_promise_t *promise;
  const char *name; /* of the operation, static */
  tnk__stall_t stall;
  tnk__need_t need;
  tnk__call_t call; /* a plain question */
  tnk__job_t job;   /* a call with a future */
  tnk__buf_t body;  /* of whichever is under way */
  tnk__arena_t arena;
  void (*begin)(struct tnk__errand *self);
  /* Of a question that is asked without the flags; see tnk__errand_ask(). */
  void (*ask)(struct tnk__errand *self);
  /* Lets go of what its owner has added; NULL: there is nothing. */
  void (*clean)(struct tnk__errand *self);
  tnk__error_t *refused; /* why it asks for the flags after all, or NULL */
  uint8_t is_unsure;     /* it was asked without knowing them */
  uint8_t exchanges;     /* what was sent then, as in auth.h */
  uint8_t uses_command;
  uint8_t has_secret; /* in `arena` and `body`, which are wiped in the end */
} tnk__errand_t;

/*
 * Make an errand of `size` bytes, which begins with a tnk__errand_t, or NULL
 * without memory; *promise tells the caller either way. When *promise is given
 * it is taken over instead.
 */
tnk__errand_t *tnk__errand_new(tnk__session_t *session, const char *name,
                               size_t size, tnk_promise_t **promise);
/* There will be a secret in `arena` and `body`. */
void tnk__errand_keep_secret(tnk__errand_t *errand);
/* Call `begin` when the session has come that far. */
void tnk__errand_enter(tnk__errand_t *errand, tnk__session_level_t level,
                       void (*begin)(tnk__errand_t *self));

/* Ask a question at once, with the key as the service has it: most servers take
 * it as it is, so nobody asks them before what they want for it. `ask` is
 * called for that, and once more if tnk__errand_asks_again(). */
void tnk__errand_ask(tnk__errand_t *errand,
                     void (*ask)(struct tnk__errand *self));
/* See whether such a question was refused by a server that may want a token;
 * comes first in its `done`. 1: it is asked for that, and the answer is of no
 * interest any more. */
int tnk__errand_asks_again(tnk__errand_t *errand, const tnk__reply_t *reply);

/* Start the plain call, or the job, with what has been written to `body`. The
 * caller has bound it and set what differs. */
void tnk__errand_call(tnk__errand_t *errand,
                      void (*done)(tnk__call_t *call,
                                   const tnk__reply_t *reply));
void tnk__errand_job(tnk__errand_t *errand,
                     void (*done)(tnk__job_t *job, const tnk__reply_t *reply));

/* Settle and free. `error` stays the caller's. */
void tnk__errand_resolve(tnk__errand_t *errand, tnk__result_kind_t kind,
                         void *value,
                         void (*free_value)(const tnk_allocator_t *, void *));
void tnk__errand_fail(tnk__errand_t *errand, tnk__error_t *error);
/* The same; if the service has refused it, the sentence names what the errand
 * is about. NULL: nothing is added. */
void tnk__errand_fail_about(tnk__errand_t *errand, tnk__error_t *error,
                            const char *thing);
void tnk__errand_fail_code(tnk__errand_t *errand, const char *name, int code);
/* Free after the promise has been handed to somebody else. */
void tnk__errand_dispose(tnk__errand_t *errand);

#endif
