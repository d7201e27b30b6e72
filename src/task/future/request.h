#ifndef TNK_TASK_FUTURE_REQUEST_H
#define TNK_TASK_FUTURE_REQUEST_H

#include "base/arena.h"
#include "flow/stall.h"
#include "task/future/job.h"
#include "task/session/session.h"

/*
 * An operation that belongs to no client: making one, or a question to the
 * service. It waits for the session, then makes calls one after the other.
 *
 * Waiting; calling; then it settles its promise and is freed at once.
 */
typedef struct tnk__request {
  tnk__list_t link; /* in session->requests */
  tnk__session_t *session;
  tnk_promise_t *promise;
  const char *name; /* of the operation, static */
  tnk__stall_t stall;
  tnk__need_t need;
  tnk__call_t call; /* a plain question */
  tnk__job_t job;   /* a request with a future */
  tnk__buf_t body;  /* of whichever is under way */
  tnk__arena_t arena;
  void (*begin)(struct tnk__request *self);
} tnk__request_t;

/*
 * Make a request of `size` bytes, which begins with a tnk__request_t, or NULL
 * without memory; *promise tells the caller either way. When *promise is given
 * it is taken over instead.
 */
tnk__request_t *tnk__request_new(tnk__session_t *session, const char *name,
                                 size_t size, tnk_promise_t **promise);
/* Call `begin` when the session has come that far. */
void tnk__request_enter(tnk__request_t *request, tnk__session_level_t level,
                        void (*begin)(tnk__request_t *self));

/* Start the plain call, or the job, with what has been written to `body`. The
 * caller has bound it and set what differs. */
void tnk__request_call(tnk__request_t *request,
                       void (*done)(tnk__call_t *call,
                                    const tnk__reply_t *reply));
void tnk__request_job(tnk__request_t *request,
                      void (*done)(tnk__job_t *job, const tnk__reply_t *reply));

/* Settle and free. `error` stays the caller's. */
void tnk__request_resolve(tnk__request_t *request, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *, void *));
void tnk__request_fail(tnk__request_t *request, tnk__error_t *error);
void tnk__request_fail_code(tnk__request_t *request, const char *name,
                            int code);
/* Free after the promise has been handed to somebody else. */
void tnk__request_dispose(tnk__request_t *request);

#endif
