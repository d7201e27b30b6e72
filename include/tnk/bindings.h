/* SPDX-License-Identifier: MIT */
#ifndef TNK_BINDINGS_H
#define TNK_BINDINGS_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions that only bindings to other languages need. The rest of the API
 * suits bindings too: handles are opaque, arrays are read by index, and no
 * function has a variable number of arguments. A few functions, such as
 * tnk_tensor_i64(), return a struct by value; a binding can fill its members
 * instead.
 *
 * Threads, by group of functions. The comment of each function has a line
 * "Thread:". A binding can rely on these rules:
 *
 * - Loop thread: functions that take a service, a client, a hub, a gateway, a
 *   ledger, a trace, or a promise. That includes the accessors of a promise,
 *   such as tnk_promise_status(), tnk_promise_text() and tnk_promise_pass(),
 *   and tnk_promise_ref() and tnk_promise_unref(). Callbacks are called there.
 * - Any thread: functions that read a result (result.h), such as
 *   tnk_samples_tokens(), as long as the promise of the result is held. Take
 *   the result from its promise on the loop thread first.
 * - Any thread, but one at a time for each object: batches, chats, tokenizers,
 *   templates and numbers (batch.h, chat.h, tokenizers.h, rl.h, data.h). A
 *   function with another rule says so.
 * - Any thread at any time: names and messages of codes, versions (error.h,
 *   bindings.h), and tnk_init().
 * - From another thread to the loop thread: runtime.h. A garbage collector that
 *   runs on another thread releases a promise with tnk_runtime_unref().
 *
 * Another event loop (poll(), epoll, GLib, asyncio) can drive the libuv loop:
 *
 * 1. Open the service with the option keep_loop_alive = TNK_YES. Without it an
 *    idle service does not keep the loop alive. libuv then runs no timers, so
 *    the session misses its heartbeats, and uv_backend_timeout() is 0.
 * 2. Call uv_run(loop, UV_RUN_NOWAIT) after calls of this library, whenever
 *    uv_backend_fd(loop) is readable, and whenever the time of step 3 has
 *    passed.
 * 3. Call uv_backend_timeout(loop) after each uv_run(). It returns the maximum
 *    time to wait, in milliseconds. -1 means no limit, and 0 means to call
 *    uv_run() again at once. Exception: if uv_loop_alive(loop) is 0, ignore the
 *    timeout, which is 0 as well. This happens after the last service has
 *    closed. Do not call uv_run() then until the program uses the loop again.
 *
 * examples/foreign_loop.c does this with poll(). A program that calls uv_run()
 * at fixed intervals, as a game does, needs steps 1 and 2 only.
 */

/**
 * Initialize a struct with its defaults, as its INIT macro does. Use it from
 * languages without C macros.
 *
 * @param type      Name of the struct, such as "tnk_sampling_params_t".
 * @param[out] out  The struct, @p size bytes. Members that this library does
 *                  not know become zero.
 * @param size      Size of the struct as the binding knows it. It may differ
 *                  from the library's size. Stored in the first member.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, a struct without an INIT macro, or a
 *         @p size below that of the struct's first release. Nothing is written
 *         after an error.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_init(const char *type, void *out, size_t size);

/**
 * The version of libuv that this library runs with, as "MAJOR.MINOR.PATCH". A
 * binding that loads libuv itself compares it with uv_version_string() of its
 * own copy, to check that both use the same libuv.
 *
 * @return Static string. Thread: any. Since: 0.1
 */
TNK_API const char *tnk_libuv_version(void);

/**
 * The version of nghttp2, which this library uses for HTTP/2.
 *
 * @return Static string. NULL if the library was built without nghttp2; it uses
 *         HTTP/1.1 only then.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_http2_version(void);

#ifdef __cplusplus
}
#endif

#endif
