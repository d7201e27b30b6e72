#ifndef TNK_PROMISE_H
#define TNK_PROMISE_H

#include "tnk/error.h"
#include "tnk/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Every operation returns a promise, NULL only when its handle was NULL. It is
 * pending, then resolved or rejected, once. Bad arguments and lack of memory
 * reject it too, so there is one place to look for an error. All functions
 * here take NULL for a promise rejected with TNK_EINVAL.
 *
 * The caller gets one reference. tnk_then() takes it, which is why a call and
 * its callback need no bookkeeping:
 *
 *     tnk_then(tnk_training_optim_step(training, NULL), on_step, me);
 *
 * A script waits and reads from top to bottom:
 *
 *     tnk_promise_t *pass = tnk_training_forward_backward(t, data, n, NULL);
 *     tnk_promise_t *step = tnk_training_optim_step(t, NULL);
 *     if (tnk_wait(pass) < 0 || tnk_wait(step) < 0)
 *       ...
 *
 * Dropping a promise neither cancels nor hurries the operation. A promise may
 * outlive its service, and has settled then: it can be read, waited for and
 * dropped, but callbacks (TNK_ECLOSED) and groups (see tnk_all()) come too
 * late.
 */

/** The life of a promise. */
typedef enum {
  TNK_PENDING = 0,
  TNK_RESOLVED = 1,
  TNK_REJECTED = 2
} tnk_promise_state_t;

/**
 * Hears once that a promise has settled.
 *
 * @param promise  Settled; read its result or error with the accessors.
 *                 Valid until the function returns; ref it to keep it.
 * @param status   TNK_OK, or the code of the error.
 * @param user     What was given to tnk_then().
 *
 * Any function of this library may be called, closing included, but not
 * tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_promise_cb)(tnk_promise_t *promise, int status, void *user);

/**
 * Call @p cb once @p promise has settled, and give up the reference.
 *
 * Several callbacks run in the order of registration. None runs inside this
 * call, also when the promise has settled already. To keep the promise, for
 * instance to cancel it later, ref it first.
 *
 * @param promise  One reference is taken, also when this fails.
 * @param cb       NULL only drops the reference and marks the promise as
 *                 observed, so that a rejection is not logged.
 * @param user     Handed to @p cb.
 *
 * Completion: after TNK_OK @p cb is called exactly once, unless it is forgotten
 * before (tnk_promise_forget()); after anything else never.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL   @p promise is NULL, as calls on a NULL handle return
 *   TNK_ECLOSED  the service of @p promise has been closed, and is gone
 *   TNK_ENOMEM   for a second or further callback, when there is no memory and
 *                64 such callbacks are registered already. The first one is
 *                part of the promise.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_then(tnk_promise_t *promise, tnk_promise_cb cb, void *user);

/**
 * Take back what tnk_then() registered: @p cb is not called with @p user any
 * more. For those whose @p user goes before the promise settles.
 *
 * The operation goes on. Each registration that is taken back gives up the
 * reference that tnk_then() took for it.
 *
 * @param promise  Valid at least until @p cb has been called, also for somebody
 *                 who has no other reference. Not to be used afterwards without
 *                 one.
 * @param cb       As given to tnk_then().
 * @param user     As given to tnk_then(). With a @p cb that is registered
 *                 several times with it, all are taken back.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL    @p promise or @p cb is NULL
 *   TNK_ENOTFOUND no such callback waits: it was never registered, or has been
 *                 called, or is being called
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_promise_forget(tnk_promise_t *promise, tnk_promise_cb cb,
                               void *user);

/**
 * Run the loop until @p promise has settled. For scripts.
 *
 * Other callbacks of the loop run meanwhile. The reference stays the
 * caller's: read the result, then tnk_promise_unref().
 *
 * @return TNK_OK, or the code of the rejection, or
 *   TNK_EINVAL      @p promise is NULL
 *   TNK_EREENTRANT  called inside a callback of this library
 *   TNK_ETHREAD     called on another thread than the loop's
 *   TNK_EFORKED     called in a child of the process that owns the loop
 *   TNK_EPENDING    the loop has nothing left to run and yet the promise is
 *                   pending (the loop was stopped)
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API int tnk_wait(tnk_promise_t *promise);

/**
 * A promise that resolves when all of @p promises have, and rejects with the
 * first rejection in time. The results stay in the single promises.
 *
 * @param promises  One reference of each is taken. Ref those to be read
 *                  later, or read them with tnk_promise_child().
 * @param n         At least 1; 0 gives NULL, and so do children that are all
 *                  NULL.
 *
 * Rejects with: the error of a child; TNK_EINVAL (a child is NULL);
 *   TNK_ECANCELED; TNK_ECLOSED (the service is being closed, or that of all
 *   children has gone; NULL if there is no memory to say so); TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_all(tnk_promise_t *const *promises, size_t n);

/**
 * A promise that resolves when all of @p promises have settled, whatever
 * their outcome.
 *
 * @param promises  One reference of each is taken.
 * @param n         At least 1; 0 gives NULL, and so do children that are all
 *                  NULL.
 *
 * Rejects with: TNK_ECANCELED, TNK_ECLOSED as tnk_all() does, TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_all_settled(tnk_promise_t *const *promises,
                                       size_t n);

/**
 * A promise that resolves when some of @p promises have, the first in time, and
 * then cancels the others, as a group of samples does that need not be
 * complete. It rejects when so many have been rejected that the others would
 * not do, with the error of the last of them, and cancels the others too.
 *
 * Which have resolved is told by tnk_promise_status() of each
 * tnk_promise_child(); it may be more than were wanted, since cancelling can
 * come too late. A child that is NULL counts as rejected.
 *
 * @param promises  One reference of each is taken.
 * @param n         At least 1; 0 gives NULL, and so do children that are all
 *                  NULL.
 * @param n_wanted  From 1 to @p n.
 *
 * Rejects with: the error of a child; TNK_EINVAL (@p n_wanted is out of range,
 *   or children are NULL); TNK_ECANCELED, TNK_ECLOSED as tnk_all() does,
 *   TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_quorum(tnk_promise_t *const *promises, size_t n,
                                  size_t n_wanted);

/**
 * A promise that follows @p promise but rejects with TNK_ETIMEDOUT after
 * @p timeout_ms, and then cancels the operation. Its text tells what the
 * operation was waiting for.
 *
 * @param promise     One reference is taken. Results read the same through
 *                    the new promise.
 * @param timeout_ms  From now; 0 rejects at the next turn if still pending.
 *
 * Rejects with: TNK_ETIMEDOUT, the error of @p promise, TNK_ECANCELED,
 *   TNK_ECLOSED as tnk_all() does, TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_with_timeout(tnk_promise_t *promise,
                                        uint64_t timeout_ms);

/**
 * Ask to end the operation behind @p promise.
 *
 * In time, the promise rejects with TNK_ECANCELED at the next turn of the
 * loop, and a late answer is dropped. Too late, it settles as it would have.
 * An operation that was still queued is never sent and leaves no hole in the
 * sequence of its training client; one that the service has accepted still
 * runs there, unless it is a sample and the service wants to be told: then it
 * is canceled there too. Cancelling what tnk_all() returned cancels its
 * children.
 *
 * @param promise  The reference stays the caller's. NULL does nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_promise_cancel(tnk_promise_t *promise);

/**
 * Take one more reference.
 * @return @p promise. Thread: loop thread. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_promise_ref(tnk_promise_t *promise);

/**
 * Give up a reference; the last one frees the promise and its result.
 *
 * The operation goes on. A rejection that nobody looked at is logged once.
 *
 * @param promise  NULL does nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_promise_unref(tnk_promise_t *promise);

/** Where @p promise is in its life. Thread: loop thread. Since: 0.1 */
TNK_API tnk_promise_state_t tnk_promise_state(const tnk_promise_t *promise);

/**
 * How @p promise ended.
 *
 * @return TNK_OK when resolved, the error's code when rejected, TNK_EINVAL for
 *         NULL, else TNK_EPENDING.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_promise_status(const tnk_promise_t *promise);

/**
 * Why @p promise was rejected.
 *
 * @return NULL unless rejected. Lifetime: as long as the promise.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_error_t *tnk_promise_error(const tnk_promise_t *promise);

/**
 * One sentence on how @p promise ended, fit to be shown to a person.
 *
 * @return Never NULL; "success" when resolved. Lifetime: as long as the
 *         promise.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_promise_text(const tnk_promise_t *promise);

/**
 * One sentence on what @p promise waits for now: behind how many operations,
 * for which limit, for a connection, for the answer to which attempt and since
 * when, when the next attempt or poll follows, and what the server last said
 * of its queue.
 *
 *     save_state: waits for its turn behind 2 operations, since 3.0 s; the
 *     first of them, forward_backward, waits for the server's answer, attempt
 *     1, since 3.0 s
 *
 * For people and logs; the wording may change. Of a group it tells the first
 * child that is pending, of a settled promise how it ended. Reads only: asking
 * does not count as looking at a rejection, and nothing is allocated.
 *
 * @param text       Receives the sentence; may be NULL when @p text_size is 0.
 * @param text_size  Bytes at @p text; 512 are plenty. A longer sentence is
 *                   cut.
 *
 * @return Bytes of the whole sentence, its NUL not counted; @p text_size or
 *         more when it was cut.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API size_t tnk_promise_explain(const tnk_promise_t *promise, char *text,
                                   size_t text_size);

/**
 * A child of what tnk_all(), tnk_all_settled() or tnk_quorum() returned.
 *
 * @param index  From 0, in the order in which they were given.
 *
 * @return Borrowed from @p promise; NULL when there is no such child.
 * Thread: loop thread. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_promise_child(const tnk_promise_t *promise,
                                         size_t index);

/**
 * Wait for a training client and let go of its promise: a client that is there
 * needs none.
 *
 * @param promise   The reference is given up, whatever the outcome. NULL gives
 *                  NULL.
 * @param why       When there is no client, receives one sentence that says
 *                  why; may be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return The client, as tnk_promise_training(); NULL when tnk_wait() failed or
 *         the promise is of something else.
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API tnk_training_t *tnk_take_training(tnk_promise_t *promise, char *why,
                                          size_t why_size);

/**
 * Wait for a sampling client and let go of its promise, in the way of
 * tnk_take_training().
 *
 * @return The client, as tnk_promise_sampling(); NULL when tnk_wait() failed or
 *         the promise is of something else.
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API tnk_sampling_t *tnk_take_sampling(tnk_promise_t *promise, char *why,
                                          size_t why_size);

/* Results by type: NULL unless resolved with that type. Each belongs to the
 * promise and lives as long as it does. */

/** The training client that a create call made; NULL once that is closed. It
 * lives until then, also without the promise; closed, it stays as long as such
 * a promise does, so that a late call on it rejects with TNK_ECLOSED.
 * Thread: loop thread. Since: 0.1 */
TNK_API tnk_training_t *tnk_promise_training(const tnk_promise_t *promise);
/** The sampling client that a create call or a save made; its life is as that
 * of a training client. Thread: loop thread. Since: 0.1 */
TNK_API tnk_sampling_t *tnk_promise_sampling(const tnk_promise_t *promise);
/** The result of forward, forward_backward and forward_backward_custom.
 * Thread: loop thread. Since: 0.1 */
TNK_API const tnk_pass_t *tnk_promise_pass(const tnk_promise_t *promise);
/** The result of sample. Thread: loop thread. Since: 0.1 */
TNK_API const tnk_samples_t *tnk_promise_samples(const tnk_promise_t *promise);
/** The result of compute_logprobs: one value a prompt token, NaN where there is
 * none; @p n receives their number. Thread: loop thread. Since: 0.1 */
TNK_API const float *tnk_promise_logprobs(const tnk_promise_t *promise,
                                          size_t *n);
/** The result of optim_step. Thread: loop thread. Since: 0.1 */
TNK_API const tnk_metrics_t *tnk_promise_metrics(const tnk_promise_t *promise);
/** The "tinker://" path of a save, load or copy, or NULL when the server gave
 * none; the file of a download or of a model; the URL of a trace.
 * Thread: loop thread. Since: 0.1 */
TNK_API const char *tnk_promise_path(const tnk_promise_t *promise);
/** The result of tnk_service_create_loss(). Thread: loop thread. Since: 0.1 */
TNK_API const tnk_loss_t *tnk_promise_loss(const tnk_promise_t *promise);
/** The result of tnk_service_capabilities(). Thread: loop thread. Since: 0.1 */
TNK_API const tnk_capabilities_t *
tnk_promise_capabilities(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif
