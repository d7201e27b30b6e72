#ifndef TNK_RUNTIME_H
#define TNK_RUNTIME_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A libuv loop on a thread of its own, for programs that have none. Posting a
 * function to it is the only thread-safe door of this library: every other
 * function belongs to the thread of the loop.
 */

/**
 * Runs on the runtime's thread.
 * @param loop  The runtime's loop, to open services on.
 * @param user  As given to tnk_runtime_post().
 * Any function of this library may be called, but not tnk_wait().
 * Since: 0.1
 */
typedef void (*tnk_post_cb)(uv_loop_t *loop, void *user);

/**
 * Start a thread that runs a loop.
 *
 * The thread sees the signals that are not blocked in the calling thread.
 *
 * @param[out] out  To be stopped by the caller. NULL on failure.
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_ENOMEM; TNK_ESYSTEM: there is no
 *         thread or no descriptor left.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_start(tnk_runtime_t **out);

/**
 * Run @p cb on the runtime's thread, soon and in the order of posting.
 *
 * @param runtime  Not yet freed: a program that posts from several threads
 *                 keeps them from doing so after tnk_runtime_stop() returned.
 * @param cb       Called once.
 * @param user     Handed to @p cb.
 * @return TNK_OK; TNK_ECLOSED while tnk_runtime_stop() runs; TNK_ENOMEM;
 *         TNK_EINVAL for NULL; TNK_EFORKED in a child process. On failure
 *         @p cb is not called.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_post(tnk_runtime_t *runtime, tnk_post_cb cb,
                             void *user);

/**
 * Give up a reference to a promise from any thread, as a garbage collector has
 * to: tnk_promise_unref() runs on the runtime's thread, soon.
 *
 * @param promise  Of a service or hub on the runtime's loop. NULL does nothing.
 * @return TNK_OK, or as tnk_runtime_post(), and then the reference stays the
 *         caller's. After tnk_runtime_stop() returned, tnk_promise_unref() is
 *         good on any one thread.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_runtime_unref(tnk_runtime_t *runtime, tnk_promise_t *promise);

/**
 * Run what was posted, close every service and hub still open on the loop,
 * end the thread, and free the runtime. Returns when all that is done: a
 * handle of the caller's own on the loop, such as a timer, is waited for if
 * it keeps a loop alive, and closed if it does not.
 *
 * @param runtime  Invalid once this returned TNK_OK. NULL does nothing.
 * Must not be called from the runtime's own thread: TNK_EREENTRANT, and
 * nothing happens.
 * @return TNK_OK, TNK_EREENTRANT, or TNK_EFORKED in a child process, which
 *         has not got the thread.
 * Thread: any but the runtime's. Since: 0.1
 */
TNK_API int tnk_runtime_stop(tnk_runtime_t *runtime);

#ifdef __cplusplus
}
#endif

#endif
