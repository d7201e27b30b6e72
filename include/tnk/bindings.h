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
 * - "Loop thread, or taker": accessors that also work on another thread for a
 *   promise that tnk_queue_take() has returned.
 * - Any thread: functions that read a result (result.h), such as
 *   tnk_samples_tokens(), as long as the promise of the result is held.
 * - Any thread, but one at a time for each object: batches, chats, tokenizers,
 *   templates and numbers (batch.h, chat.h, tokenizers.h, rl.h, data.h). A
 *   function with another rule says so.
 * - Any thread at any time: names and messages of codes, versions (error.h,
 *   bindings.h), tnk_init(), queues, and runtimes (runtime.h).
 * - From another thread to the loop thread: tnk_queue_call() calls any function
 *   of the first group by its name. A garbage collector that runs on another
 *   thread releases a promise with tnk_runtime_unref().
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

/*
 * A queue lets any thread start operations and take their results, without C
 * code of the binding and without callbacks. The loop runs on the thread of a
 * runtime.
 *
 *     tnk_call_t call = {"tnk_training_optim_step"};
 *     call.n_args = 2;
 *     call.args[0].pointer = training;
 *     call.is_watched = 1;
 *     call.tag = 7;
 *     tnk_queue_call(queue, &call, 1);
 *     ...
 *     tnk_completion_t done[64];
 *     int n = tnk_queue_take(queue, done, 64, 1000);
 *
 * A taken promise belongs to the caller. Any one thread may read it with the
 * accessors whose thread is "loop thread, or taker". tnk_runtime_unref(), or a
 * call of tnk_promise_unref() through the queue, releases it.
 *
 * Nothing is lost: each watched promise is returned once, with an error if the
 * runtime ends first. The queue outlives its runtime, so results can be taken
 * after tnk_runtime_stop().
 */

/** Promises that have settled, for any thread to take. Since: 0.1 */
typedef struct tnk_queue tnk_queue_t;

/** A promise that has settled. Its size does not change. Since: 0.1 */
typedef struct {
  uint64_t tag;           /**< The number from the call or the watch. */
  tnk_promise_t *promise; /**< Settled. One reference, the caller's. */
  int64_t status;         /**< As tnk_promise_status(). */
} tnk_completion_t;

/** An argument or a result of a call: the member that suits its C type.
 * Integers of all types, enums included, are converted. Since: 0.1 */
typedef union {
  void *pointer;
  int64_t integer;
  double number;
  void (*function)(void);
} tnk_value_t;

/** The number of arguments for which tnk_call_t has room. */
#define TNK_CALL_ARGS 8

/** A call of one function. Its size does not change. Since: 0.1 */
typedef struct {
  const char *function; /**< Its name, such as "tnk_service_open". */
  uint64_t tag;         /**< For the completion, if the call is watched. */
  uint32_t n_args;      /**< As many as the function has. */
  int32_t is_watched;   /**< 1: the queue takes the promise that the function
                             returns, and delivers it once it has settled. */
  tnk_value_t args[TNK_CALL_ARGS];
  tnk_value_t result; /**< Out: what the function returned. A watched promise
                           is borrowed; it is valid until its completion has
                           been taken and released. */
  int64_t status;     /**< Out: as tnk_queue_call() lists. */
} tnk_call_t;

/**
 * Create a queue.
 *
 * @param[out] out  The queue. NULL after an error.
 * @param runtime   Its thread runs the operations.
 * @param max       The maximum of promises in the queue: pending ones, and
 *                  settled ones that have not been taken. At least 1.
 * @return TNK_OK; TNK_EINVAL for NULL, or a @p max of 0; TNK_ENOMEM;
 *         TNK_ESYSTEM if the system has no descriptor left; TNK_ECLOSED while
 *         the runtime stops; TNK_EFORKED in a child process.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_queue_new(tnk_queue_t **out, tnk_runtime_t *runtime,
                          size_t max);

/**
 * Call functions on the thread of the runtime, one after the other, and return
 * when the last one has returned. A call starts an operation and does not wait
 * for its end. All arguments are used as if the calling thread had made the
 * call; so they may be freed afterwards, unless the function says otherwise.
 *
 * Each function whose thread is the loop's can be called, except those that
 * wait: tnk_wait(), tnk_take_training(), tnk_take_sampling().
 *
 * @param calls  Members `status` and `result` are set. The first error ends the
 *               series. The calls after it are not made and get TNK_EPENDING,
 *               so they can be passed again.
 * @param n      0 does nothing.
 * @return TNK_OK if all calls were made. Otherwise the status of the first one
 *         that was not made, whose function had no effect:
 *   TNK_EINVAL    NULL, an unknown function, another number of arguments than
 *                 it has, or a watched function that returns no promise
 *   TNK_EFULL     the queue holds as many promises as it may; take some
 *   TNK_ECLOSED   the queue has been closed and the call is watched, or the
 *                 runtime has stopped
 *   TNK_ENOMEM, TNK_ESYSTEM, TNK_EFORKED
 * A function that was called reports its own errors in `result`, or by its
 * promise. A watched function that returned NULL had NULL for its handle; the
 * status is TNK_EINVAL then.
 * Thread: any. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_queue_call(tnk_queue_t *queue, tnk_call_t *calls, size_t n);

/**
 * Deliver a promise to the queue once it has settled.
 *
 * @param promise  Of a service or hub on the runtime's loop. One reference is
 *                 taken after TNK_OK. After an error the caller keeps it.
 * @param tag      Returned with the promise.
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFULL; TNK_ECLOSED after
 *         tnk_queue_close() or the end of the runtime; TNK_ENOMEM; TNK_ETHREAD
 *         on another thread than the runtime's; TNK_EFORKED.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_queue_watch(tnk_queue_t *queue, tnk_promise_t *promise,
                            uint64_t tag);

/**
 * Take promises that have settled, in the order in which they settled. Several
 * threads may take; each promise goes to one of them.
 *
 * @param[out] out    Room for @p max completions.
 * @param max         At least 1.
 * @param timeout_ms  How long to wait for the first one. 0 does not wait. -1
 *                    waits without a limit.
 * @return The number of completions, at least 1, or
 *   TNK_EPENDING  there is none yet. A signal ends the wait early, and so does
 *                 another thread that took the completions.
 *   TNK_ECLOSED   there will be none: the queue has been closed, or the runtime
 *                 has stopped, and everything has been taken
 *   TNK_EINVAL    NULL, or @p max is 0
 *   TNK_EFORKED   called in a child process
 * Thread: any. Callable from callbacks: yes, with a timeout of 0. Since: 0.1
 */
TNK_API int tnk_queue_take(tnk_queue_t *queue, tnk_completion_t *out,
                           size_t max, int timeout_ms);

/**
 * Get a descriptor that is readable while tnk_queue_take() would return
 * something other than TNK_EPENDING. Wait for it with poll(), epoll or an event
 * loop. Do not read from it.
 *
 * @return The descriptor, which belongs to the queue; -1 for NULL.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_queue_fd(const tnk_queue_t *queue);

/**
 * Refuse further promises. Those that the queue has are still delivered; then
 * tnk_queue_take() returns TNK_ECLOSED. A second call does nothing.
 *
 * @param queue  NULL does nothing.
 * Thread: any. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_queue_close(tnk_queue_t *queue);

/**
 * Release a queue, closed or not. Does not wait. A tnk_queue_take() that waits
 * on another thread returns TNK_ECLOSED. Promises that have not been taken are
 * released, and their operations continue without a reader.
 *
 * Order: while tnk_runtime_stop() runs and after it, the promises of a runtime
 * may be released by one thread at a time. So do not free a queue that still
 * has promises while another thread is in tnk_runtime_stop().
 *
 * @param queue  No function may be called with it afterwards, nor while this
 *               call runs; those that already run are finished. NULL does
 *               nothing. In a child process nothing happens.
 * Thread: any. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_queue_free(tnk_queue_t *queue);

#ifdef __cplusplus
}
#endif

#endif
