/* SPDX-License-Identifier: MIT */
#ifndef TNK_PROMISE_H
#define TNK_PROMISE_H

#include "tnk/error.h"
#include "tnk/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Every operation returns a promise. It returns NULL only if its handle was
 * NULL. A promise is pending and then settles once: it resolves or rejects.
 * Invalid arguments and lack of memory also reject the promise, so there is
 * one place to look for an error. Every function here treats NULL as a promise
 * that was rejected with TNK_EINVAL.
 *
 * The caller gets one reference. tnk_then() takes it, so a call with a callback
 * needs no bookkeeping:
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
 * Releasing a promise does not cancel the operation. A promise may outlive its
 * service. It has settled by then, so you can read it, wait for it and release
 * it. tnk_then() then fails with TNK_ECLOSED, and a group of such promises
 * rejects (see tnk_all()).
 */

/** State of a promise. */
typedef enum {
  TNK_PENDING = 0,
  TNK_RESOLVED = 1,
  TNK_REJECTED = 2
} tnk_promise_state_t;

/**
 * Called once after a promise has settled.
 *
 * @param promise  Settled; read its result or error with the accessors. Valid
 *                 until the function returns. Take a reference to keep it.
 * @param status   TNK_OK, or the error code.
 * @param user     The pointer that was passed to tnk_then().
 *
 * The callback may call any function of this library, including functions that
 * close objects. Exception: it must not call tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_promise_cb)(tnk_promise_t *promise, int status, void *user);

/**
 * Call @p cb after @p promise has settled. Takes the caller's reference.
 *
 * Several callbacks run in the order of registration. No callback runs inside
 * this call, even if the promise has already settled. To keep the promise, for
 * example to cancel it later, take a reference first.
 *
 * @param promise  One reference is taken, even if the call fails.
 * @param cb       The callback. NULL only releases the reference and marks the
 *                 promise as observed, so a rejection is not logged.
 * @param user     Passed to @p cb.
 *
 * Completion: after TNK_OK, @p cb is called exactly once, unless
 * tnk_promise_forget() removes it first. After an error it is never called.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL   @p promise is NULL
 *   TNK_ECLOSED  the service of @p promise has been closed and freed
 *   TNK_ENOMEM   out of memory. The first callback of a promise needs no
 *                memory, and 64 further ones are reserved.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_then(tnk_promise_t *promise, tnk_promise_cb cb, void *user);

/**
 * Remove a callback that tnk_then() registered. @p cb is not called with
 * @p user afterwards. Use it when @p user may be freed before the promise
 * settles.
 *
 * The operation continues. Each removed callback releases the reference that
 * tnk_then() took for it.
 *
 * @param promise  Valid at least until @p cb has been called, even if the
 *                 caller holds no other reference. Do not use it afterwards
 *                 without a reference.
 * @param cb       The function that was passed to tnk_then().
 * @param user     The pointer that was passed to tnk_then(). If the same pair
 *                 was registered several times, all are removed.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL    @p promise or @p cb is NULL
 *   TNK_ENOTFOUND no such callback is waiting: it was never registered, was
 *                 already called, or is being called
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_promise_forget(tnk_promise_t *promise, tnk_promise_cb cb,
                               void *user);

/**
 * Run the loop until @p promise has settled. For scripts.
 *
 * Other callbacks of the loop run meanwhile. The caller keeps its reference:
 * read the result, then call tnk_promise_unref().
 *
 * @return TNK_OK, or the code of the rejection, or
 *   TNK_EINVAL      @p promise is NULL
 *   TNK_EREENTRANT  called inside a callback of this library
 *   TNK_ETHREAD     called on another thread than the loop's
 *   TNK_EFORKED     called in a child of the process that owns the loop
 *   TNK_EPENDING    the loop was stopped, or has nothing left to run, and the
 *                   promise is still pending
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API int tnk_wait(tnk_promise_t *promise);

/**
 * Create a promise that resolves when all of @p promises have resolved. It
 * rejects as soon as one of them rejects, with that error. The results stay in
 * the individual promises.
 *
 * @param promises  One reference of each is taken. To read a result later, take
 *                  a reference first or use tnk_promise_child().
 * @param n         At least 1. The function returns NULL if @p n is 0 or all
 *                  children are NULL.
 *
 * Rejects with: the error of a child; TNK_EINVAL (a child is NULL);
 *   TNK_ECANCELED; TNK_ECLOSED (the service is being closed, or the services of
 *   all children are gone); TNK_ENOMEM. Returns NULL if the services are gone
 *   and there is no memory to report it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_all(tnk_promise_t *const *promises, size_t n);

/**
 * Create a promise that resolves when all of @p promises have settled, whether
 * they resolved or rejected.
 *
 * @param promises  One reference of each is taken.
 * @param n         At least 1. The function returns NULL if @p n is 0 or all
 *                  children are NULL.
 *
 * Rejects with: TNK_ECANCELED, TNK_ECLOSED as tnk_all() does, TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_all_settled(tnk_promise_t *const *promises,
                                       size_t n);

/**
 * Create a promise that resolves when @p n_wanted of @p promises have resolved,
 * and then cancels the others. For example, a group of samples may not need
 * every member. The promise rejects when so many children have rejected that
 * @p n_wanted can no longer be reached. It rejects with the last of those
 * errors and cancels the remaining children.
 *
 * To see which children resolved, call tnk_promise_status() on each
 * tnk_promise_child(). More than @p n_wanted may have resolved, because a
 * cancellation can come too late. A NULL child counts as rejected.
 *
 * @param promises  One reference of each is taken.
 * @param n         At least 1. The function returns NULL if @p n is 0 or all
 *                  children are NULL.
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
 * Create a promise that settles as @p promise does, or rejects with
 * TNK_ETIMEDOUT after @p timeout_ms and cancels the operation. The error text
 * says what the operation was waiting for.
 *
 * @param promise     One reference is taken. Read results from the new promise
 *                    in the same way.
 * @param timeout_ms  Milliseconds from now. 0 rejects in the next iteration of
 *                    the loop if the promise is still pending.
 *
 * @return The new promise; one reference, owned by the caller. NULL as for
 *         tnk_all().
 * Rejects with: TNK_ETIMEDOUT, the error of @p promise, TNK_ECANCELED,
 *   TNK_ECLOSED as tnk_all() does, TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_with_timeout(tnk_promise_t *promise,
                                        uint64_t timeout_ms);

/**
 * Ask to cancel the operation of @p promise.
 *
 * If the operation is still running, the promise rejects with TNK_ECANCELED in
 * the next iteration of the loop and a late response is discarded. Otherwise
 * the promise settles as it would have without this call.
 *
 * A queued operation is never sent and leaves no hole in the sequence of its
 * training client. An operation that the service has accepted still runs there.
 * Exception: the library also cancels a sample on the service if the service
 * supports it. Canceling a group promise, such as the result of tnk_all(),
 * cancels its children.
 *
 * @param promise  The caller keeps its reference. NULL does nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_promise_cancel(tnk_promise_t *promise);

/**
 * Take another reference.
 * @return @p promise. Thread: loop thread. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_promise_ref(tnk_promise_t *promise);

/**
 * Release a reference. Releasing the last one frees the promise and its result.
 *
 * The operation continues. A rejection that was never read is logged once.
 *
 * @param promise  NULL does nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_promise_unref(tnk_promise_t *promise);

/** Get the state of @p promise. Thread: loop thread, or taker. Since: 0.1 */
TNK_API tnk_promise_state_t tnk_promise_state(const tnk_promise_t *promise);

/**
 * Get the outcome of @p promise.
 *
 * @return TNK_OK if it resolved, the error code if it rejected, TNK_EPENDING if
 *         it has not settled, TNK_EINVAL for NULL.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API int tnk_promise_status(const tnk_promise_t *promise);

/**
 * Get the error of @p promise.
 *
 * @return NULL unless it rejected. Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_error_t *tnk_promise_error(const tnk_promise_t *promise);

/**
 * Describe the outcome of @p promise in one sentence for people.
 *
 * @return Never NULL; "success" if it resolved. Lifetime: as long as the
 *         promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const char *tnk_promise_text(const tnk_promise_t *promise);

/**
 * Describe in one sentence what @p promise is waiting for. The sentence names
 * the number of operations ahead of it, the limit or connection that it needs,
 * the attempt whose response is due and since when, the time of the next
 * attempt or poll, and the server's last queue state.
 *
 *     save_state: waits for its turn behind 2 operations, since 3.0 s; the
 *     first of them, forward_backward, waits for the server's answer, attempt
 *     1, since 3.0 s
 *
 * The sentence is for people and logs; its wording may change. For a group it
 * describes the first pending child. For a settled promise it describes the
 * outcome. The call allocates nothing and does not mark a rejection as read.
 *
 * @param text       Receives the sentence. May be NULL if @p text_size is 0.
 * @param text_size  Bytes at @p text; 512 are plenty. A longer sentence is
 *                   truncated.
 *
 * @return Length of the whole sentence in bytes, without its NUL. If it is
 *         @p text_size or more, the sentence was truncated.
 * Thread: loop thread, or taker. Callable from callbacks: yes. Since: 0.1
 */
TNK_API size_t tnk_promise_explain(const tnk_promise_t *promise, char *text,
                                   size_t text_size);

/**
 * Get a child of the promise that tnk_all(), tnk_all_settled() or tnk_quorum()
 * returned.
 *
 * @param index  From 0, in the order of the array.
 *
 * @return Borrowed from @p promise; NULL if there is no such child.
 * Thread: loop thread. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_promise_child(const tnk_promise_t *promise,
                                         size_t index);

/**
 * Wait for a training client and release its promise. An open client does not
 * need its promise.
 *
 * @param promise   The reference is released, whatever the outcome. NULL gives
 *                  NULL.
 * @param why       Receives one sentence that says why there is no client. May
 *                  be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is truncated.
 *
 * @return The client, as tnk_promise_training() returns it. NULL if tnk_wait()
 *         failed or the promise has another type.
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API tnk_training_t *tnk_take_training(tnk_promise_t *promise, char *why,
                                          size_t why_size);

/**
 * Wait for a sampling client and release its promise, as tnk_take_training()
 * does for a training client.
 *
 * @return The client, as tnk_promise_sampling() returns it. NULL if tnk_wait()
 *         failed or the promise has another type.
 * Thread: loop thread. Callable from callbacks: no. Since: 0.1
 */
TNK_API tnk_sampling_t *tnk_take_sampling(tnk_promise_t *promise, char *why,
                                          size_t why_size);

/* Results by type. Each function returns NULL unless the promise resolved with
 * that type. The promise owns its result. */

/** Get the training client that a create call made; NULL after the client was
 * closed. The client stays open without the promise. While the promise lives, a
 * late call on the closed client rejects with TNK_ECLOSED.
 * Thread: loop thread. Since: 0.1 */
TNK_API tnk_training_t *tnk_promise_training(const tnk_promise_t *promise);
/** Get the sampling client that a create call or a save made, as
 * tnk_promise_training(). Thread: loop thread. Since: 0.1 */
TNK_API tnk_sampling_t *tnk_promise_sampling(const tnk_promise_t *promise);
/** Get the result of forward, forward_backward or forward_backward_custom, or
 * NULL. Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const tnk_pass_t *tnk_promise_pass(const tnk_promise_t *promise);
/** Get the result of sample, or NULL. Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const tnk_samples_t *tnk_promise_samples(const tnk_promise_t *promise);
/** Get the result of compute_logprobs, or NULL: one value for each prompt
 * token, NaN where the service gave none. @p n receives their number.
 * Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const float *tnk_promise_logprobs(const tnk_promise_t *promise,
                                          size_t *n);
/** Get the result of optim_step, or NULL. Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const tnk_metrics_t *tnk_promise_metrics(const tnk_promise_t *promise);
/** Get the "tinker://" path of a save, load or copy, the file of a download or
 * of a model, or the URL of a trace. NULL if the server returned no path.
 * Lifetime: as long as the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const char *tnk_promise_path(const tnk_promise_t *promise);
/** Get the result of tnk_service_create_loss(), or NULL. Lifetime: as long as
 * the promise.
 * Thread: loop thread. Since: 0.1 */
TNK_API const tnk_loss_t *tnk_promise_loss(const tnk_promise_t *promise);
/** Get the result of tnk_service_capabilities(), or NULL. Lifetime: as long as
 * the promise.
 * Thread: loop thread, or taker. Since: 0.1 */
TNK_API const tnk_capabilities_t *
tnk_promise_capabilities(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif
