/* SPDX-License-Identifier: MIT */
#ifndef TNK_RUNTIME_H
#define TNK_RUNTIME_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A runtime is a libuv loop on its own thread, for programs that have no loop.
 * Its functions may be called from any thread. Use tnk_runtime_post() to run
 * code on the loop thread, and call the rest of the library from there.
 */

/**
 * Runs on the runtime's thread.
 * @param loop  The runtime's loop, on which services can be opened.
 * @param user  The pointer that was passed to tnk_runtime_post().
 * The function may call any function of this library. Exception: it must not
 * call tnk_wait().
 * Since: 0.1
 */
typedef void (*tnk_post_cb)(uv_loop_t *loop, void *user);

/**
 * Start a thread that runs a loop.
 *
 * The thread inherits the signal mask of the calling thread.
 *
 * @param[out] out  The runtime, which the caller must stop. NULL after an
 *                  error.
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_ENOMEM; TNK_ESYSTEM if the system
 *         has no thread or descriptor left.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_start(tnk_runtime_t **out);

/**
 * Run @p cb on the runtime's thread. Functions run in the order of posting.
 *
 * @param runtime  Must not have been freed. If several threads post, the
 *                 program must make sure that none posts after
 *                 tnk_runtime_stop() has returned.
 * @param cb       Called once.
 * @param user     Passed to @p cb.
 * @return TNK_OK; TNK_ECLOSED while tnk_runtime_stop() runs; TNK_ENOMEM;
 *         TNK_EINVAL for NULL; TNK_EFORKED in a child process. After an error
 *         @p cb is not called.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_post(tnk_runtime_t *runtime, tnk_post_cb cb,
                             void *user);

/**
 * Get the loop of a runtime, to pass it to tnk_service_open() or tnk_hub_open()
 * through tnk_queue_call() (bindings.h).
 *
 * @return Valid until tnk_runtime_stop(). Use it on the runtime's thread only.
 *         NULL for NULL.
 * Thread: any. Since: 0.1
 */
TNK_API uv_loop_t *tnk_runtime_loop(tnk_runtime_t *runtime);

/**
 * Release a reference to a promise from any thread, for example from a garbage
 * collector. tnk_promise_unref() then runs on the runtime's thread.
 *
 * @param promise  A promise of a service or hub on the runtime's loop. NULL
 *                 does nothing.
 * @return TNK_OK, or an error as tnk_runtime_post(). After an error the caller
 *         keeps the reference. After tnk_runtime_stop() has returned, any one
 *         thread may call tnk_promise_unref() instead.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_unref(tnk_runtime_t *runtime, tnk_promise_t *promise);

/**
 * Run the functions that are already posted, close every open service and hub
 * on the loop, end the thread, and free the runtime. Returns when all of this
 * is done. A handle of the caller on the loop, such as a timer, delays the
 * return if it is active and referenced. Other handles are closed.
 *
 * @param runtime  Invalid after TNK_OK. NULL does nothing.
 * @return TNK_OK; TNK_EREENTRANT if called on the runtime's own thread, in
 *         which case nothing happens; TNK_EFORKED in a child process, which
 *         does not have the thread.
 * Thread: any except the runtime's. Since: 0.1
 */
TNK_API int tnk_runtime_stop(tnk_runtime_t *runtime);

#ifdef __cplusplus
}
#endif

#endif
