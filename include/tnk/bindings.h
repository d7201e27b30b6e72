#ifndef TNK_BINDINGS_H
#define TNK_BINDINGS_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a binding to another language needs and a C program does not. The rest
 * is made for both: handles are opaque, arrays are read by index, no function
 * has a variable number of arguments, and the structs that tnk_tensor_i64() and
 * its like return by value can as well be filled member by member.
 *
 * Threads, by group of functions. Each function says "Thread:" for itself; this
 * is the rule that a binding can build on:
 *
 * - Loop thread: functions that take a service, a client, a hub, a gateway, a
 *   ledger, a trace, or a promise. That includes the accessors of a promise,
 *   such as tnk_promise_status(), tnk_promise_text() and tnk_promise_pass(),
 *   and tnk_promise_ref() and tnk_promise_unref(). Callbacks are called there.
 * - Any thread: functions that read a result (result.h), such as
 *   tnk_samples_tokens(), as long as the promise of the result is held. Take
 *   the result from its promise on the loop thread first.
 * - Any thread, but one at a time for each object: batches, chats, tokenizers,
 *   templates and numbers (batch.h, chat.h, tokenizers.h, rl.h, data.h), unless
 *   their functions say otherwise.
 * - Any thread at any time: names, texts of codes and versions (error.h,
 *   bindings.h), and tnk_init().
 * - From another thread to the loop thread: runtime.h. A garbage collector that
 *   frees a promise on a thread of its own hands it to tnk_runtime_unref().
 *
 * Another event loop (poll(), epoll, GLib, asyncio) can turn the libuv loop:
 *
 * 1. Open the service with the option keep_loop_alive = TNK_YES. Without it an
 *    idle service does not keep the loop alive. libuv then runs no timers, so
 *    the session misses its heartbeats, and uv_backend_timeout() is 0.
 * 2. Call uv_run(loop, UV_RUN_NOWAIT) after calls of this library, whenever
 *    uv_backend_fd(loop) is readable, and whenever the time of step 3 has
 *    passed.
 * 3. Call uv_backend_timeout(loop) after each uv_run(). It is the maximum time
 *    to wait, in milliseconds; -1 means no limit, and 0 means to turn the loop
 *    again. Exception: if uv_loop_alive(loop) is 0, as after the close of the
 *    last service, the timeout is 0 as well and means nothing. The loop needs
 *    no turn then until the program uses it again.
 *
 * examples/foreign_loop.c does this with poll(). A program that calls uv_run()
 * at fixed intervals, as a game does, needs steps 1 and 2 only.
 */

/**
 * Do what the INIT macro of a struct does, for those who cannot see macros.
 *
 * @param type      Its name, such as "tnk_sampling_params_t".
 * @param[out] out  @p size bytes of it, which may be another size than that of
 *                  this library: what is not known here becomes zero.
 * @param size      As the binding knows the struct; written to its first
 *                  member.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, a name that is of no sized struct, and a
 *         size that it never had. Then nothing is written.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_init(const char *type, void *out, size_t size);

/**
 * The version of libuv that this library runs with, as "MAJOR.MINOR.PATCH": a
 * binding that opens libuv itself compares it with uv_version_string() of what
 * it opened, to learn whether both have the same one.
 *
 * @return Static text. Thread: any. Since: 0.1
 */
TNK_API const char *tnk_libuv_version(void);

/**
 * The version of nghttp2 that this library speaks HTTP/2 with.
 *
 * @return Static text, or NULL: it was built without, and speaks HTTP/1.1 only.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_http2_version(void);

#ifdef __cplusplus
}
#endif

#endif
