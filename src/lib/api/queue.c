/* SPDX-License-Identifier: MIT */
/*
 * A promise of a queue is in one of two lists: watched until it settles, ready
 * until a thread takes it. The first list is used on the runtime's thread only.
 * The lock protects the second one and the other members below it. No function
 * of the API is called while it is held.
 *
 * When a promise becomes ready, its other callbacks may still have to run. They
 * change its references and its list of callbacks, which no accessor reads.
 *
 * States: open; closed, which refuses promises; freed, which the runtime's
 * thread has yet to see. At the end of the runtime the queue has no runtime any
 * more and is closed. References: the caller's, the runtime's, and one for each
 * function that runs. The last one frees the memory.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>
#include <uv.h>

#include "lib/api/calls.h"
#include "lib/api/runtime.h"
#include "lib/base/alloc.h"
#include "lib/base/list.h"
#include "lib/base/misuse.h"
#include "tnk/bindings.h"
#include "tnk/error.h"
#include "tnk/promise.h"

typedef struct {
  tnk__list_t link; /* in one of the two lists */
  tnk_queue_t *queue;
  tnk_promise_t *promise;
  uint64_t tag;
  int status;
} watch_t;

struct tnk_queue {
  uint32_t magic;
  tnk_allocator_t alloc;
  pid_t pid;
  size_t max;
  int fds[2]; /* a pipe, which has one byte while the queue is readable */
  tnk__guest_t guest;
  tnk__post_t enter;
  tnk__post_t leave;
  tnk__list_t watched;

  uv_mutex_t lock;
  uv_cond_t called; /* a job has been done */
  tnk_runtime_t *runtime;
  tnk__list_t ready;
  size_t n_held; /* in both lists */
  size_t refs;
  int is_closed;
  int is_freed;
  int is_readable;
};

/* Calls of another thread, which waits for them. */
typedef struct {
  tnk__post_t post;
  tnk_queue_t *queue;
  tnk_call_t *calls;
  size_t n;
  int result;
  int is_done;
} job_t;

/* ---- Under the lock ---- */

static int has_ended(const tnk_queue_t *queue) {
  return queue->is_freed || (queue->is_closed && queue->n_held == 0);
}

/* Neither a read nor a write blocks or fails: there is at most one byte. */
static void update_readable(tnk_queue_t *queue) {
  const int wanted = !tnk__list_empty(&queue->ready) || has_ended(queue);
  char byte = 0;
  ssize_t n = 1;

  if (wanted == queue->is_readable)
    return;
  do
    n = wanted ? write(queue->fds[1], &byte, 1) : read(queue->fds[0], &byte, 1);
  while (n < 0 && errno == EINTR);
  queue->is_readable = wanted;
}

/* ---- Memory ---- */

static void free_watches(tnk_queue_t *queue, tnk__list_t *list) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(list)) != NULL) {
    watch_t *watch = tnk__container_of(node, watch_t, link);
    tnk_promise_unref(watch->promise);
    tnk__free(&queue->alloc, watch);
  }
}

/* What is still ready was left by a runtime that has ended; a promise may be
 * released on any thread then. */
static void destroy(tnk_queue_t *queue) {
  const tnk_allocator_t alloc = queue->alloc;

  free_watches(queue, &queue->ready);
  uv_cond_destroy(&queue->called);
  uv_mutex_destroy(&queue->lock);
  close(queue->fds[0]);
  close(queue->fds[1]);
  tnk__handle_end(queue, sizeof(*queue));
  tnk__free(&alloc, queue);
}

static void lock_ref(tnk_queue_t *queue) {
  uv_mutex_lock(&queue->lock);
  queue->refs++;
}

static void unlock_unref(tnk_queue_t *queue) {
  const int is_last = --queue->refs == 0;

  uv_mutex_unlock(&queue->lock);
  if (is_last)
    destroy(queue);
}

/* ---- On the runtime's thread ---- */

static void on_enter(uv_loop_t *loop, void *user) {
  tnk_queue_t *queue = user;

  (void)loop;
  tnk__runtime_enter(queue->runtime, &queue->guest);
}

/* Record the outcome. The accessors store something at their first call, so
 * that call is made here and not on the thread that takes the promise. */
static void settle(watch_t *watch) {
  tnk_queue_t *queue = watch->queue;

  watch->status = tnk_promise_status(watch->promise);
  tnk_promise_error(watch->promise);
  tnk__list_remove(&watch->link);
  uv_mutex_lock(&queue->lock);
  tnk__list_append(&queue->ready, &watch->link);
  update_readable(queue);
  uv_mutex_unlock(&queue->lock);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)status;
  settle(user);
}

/* The queue was freed: its items are not taken any more. */
static void drop_all(tnk_queue_t *queue) {
  tnk__list_t ready;

  TNK__LIST_FOREACH (node, &queue->watched) {
    watch_t *watch = tnk__container_of(node, watch_t, link);
    tnk_promise_forget(watch->promise, on_settled, watch);
  }
  free_watches(queue, &queue->watched);
  uv_mutex_lock(&queue->lock);
  tnk__list_move(&ready, &queue->ready);
  uv_mutex_unlock(&queue->lock);
  free_watches(queue, &ready);
}

static void on_leave(uv_loop_t *loop, void *user) {
  tnk_queue_t *queue = user;

  (void)loop;
  tnk__runtime_leave(&queue->guest);
  drop_all(queue);
  uv_mutex_lock(&queue->lock);
  queue->runtime = NULL;
  unlock_unref(queue);
}

static void on_ended(tnk__guest_t *guest) {
  tnk_queue_t *queue = tnk__container_of(guest, tnk_queue_t, guest);
  int is_freed;

  uv_mutex_lock(&queue->lock);
  queue->runtime = NULL;
  queue->is_closed = 1;
  update_readable(queue);
  is_freed = queue->is_freed;
  uv_mutex_unlock(&queue->lock);
  if (is_freed)
    drop_all(queue);
  uv_mutex_lock(&queue->lock);
  unlock_unref(queue);
}

static void unreserve(tnk_queue_t *queue, watch_t *watch) {
  tnk__free(&queue->alloc, watch);
  uv_mutex_lock(&queue->lock);
  queue->n_held--;
  update_readable(queue);
  uv_mutex_unlock(&queue->lock);
}

/* Reserve the place and the memory before the operation starts. */
static int reserve(watch_t **out, tnk_queue_t *queue) {
  int err = TNK_OK;

  *out = NULL;
  uv_mutex_lock(&queue->lock);
  if (queue->is_closed)
    err = TNK_ECLOSED;
  else if (queue->n_held >= queue->max)
    err = TNK_EFULL;
  else
    queue->n_held++;
  uv_mutex_unlock(&queue->lock);
  if (err != TNK_OK)
    return err;
  *out = tnk__calloc(&queue->alloc, 1, sizeof(**out));
  if (*out != NULL)
    return TNK_OK;
  unreserve(queue, NULL);
  return TNK_ENOMEM;
}

/* Takes the caller's reference of the promise if it returns TNK_OK. A promise
 * that has settled needs no callback, and may not be able to have one. */
static int begin(tnk_queue_t *queue, watch_t *watch, tnk_promise_t *promise,
                 uint64_t tag) {
  int err = TNK_OK;

  watch->queue = queue;
  watch->promise = promise;
  watch->tag = tag;
  tnk__list_append(&queue->watched, &watch->link);
  if (tnk_promise_state(promise) != TNK_PENDING)
    settle(watch);
  else
    err = tnk_then(tnk_promise_ref(promise), on_settled, watch);
  if (err != TNK_OK)
    tnk__list_remove(&watch->link);
  return err;
}

static int watched_call(tnk_queue_t *queue, tnk_call_t *call) {
  tnk_promise_t *promise;
  watch_t *watch;
  int err;

  if (!tnk__callee_gives_promise(call))
    return TNK_EINVAL;
  err = reserve(&watch, queue);
  if (err != TNK_OK)
    return err;
  tnk__call_by_name(call);
  promise = call->result.pointer;
  err = promise != NULL ? begin(queue, watch, promise, call->tag) : TNK_EINVAL;
  if (err == TNK_OK)
    return TNK_OK;
  unreserve(queue, watch);
  tnk_promise_unref(promise);
  call->result.pointer = NULL;
  return err;
}

static int run_calls(tnk_queue_t *queue, tnk_call_t *calls, size_t n) {
  int err = TNK_OK;
  size_t i;

  for (i = 0; i < n && err == TNK_OK; i++) {
    err = calls[i].is_watched ? watched_call(queue, &calls[i])
                              : tnk__call_by_name(&calls[i]);
    calls[i].status = err;
  }
  return err;
}

static void on_job(uv_loop_t *loop, void *user) {
  job_t *job = user;
  const int result = run_calls(job->queue, job->calls, job->n);

  (void)loop;
  uv_mutex_lock(&job->queue->lock);
  job->result = result;
  job->is_done = 1;
  uv_cond_broadcast(&job->queue->called);
  uv_mutex_unlock(&job->queue->lock);
}

/* ---- Any thread ---- */

static int init(tnk_queue_t *queue) {
  if (uv_pipe(queue->fds, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE) != 0)
    return TNK_ESYSTEM;
  if (uv_mutex_init(&queue->lock) != 0)
    goto fail_pipe;
  if (uv_cond_init(&queue->called) != 0)
    goto fail_lock;
  tnk__post_init(&queue->enter, on_enter, queue);
  tnk__post_init(&queue->leave, on_leave, queue);
  tnk__list_init(&queue->guest.link);
  queue->guest.ended = on_ended;
  tnk__list_init(&queue->watched);
  tnk__list_init(&queue->ready);
  return TNK_OK;

fail_lock:
  uv_mutex_destroy(&queue->lock);
fail_pipe:
  close(queue->fds[0]);
  close(queue->fds[1]);
  return TNK_ESYSTEM;
}

int tnk_queue_new(tnk_queue_t **out, tnk_runtime_t *runtime, size_t max) {
  const tnk_allocator_t *alloc;
  tnk_queue_t *queue;
  int err;

  if (out == NULL)
    return TNK_EINVAL;
  *out = NULL;
  alloc = tnk__runtime_alloc(runtime);
  if (alloc == NULL || max == 0)
    return TNK_EINVAL;
  if (tnk__runtime_is_forked(runtime))
    return TNK_EFORKED;
  queue = tnk__calloc(alloc, 1, sizeof(*queue));
  if (queue == NULL)
    return TNK_ENOMEM;
  queue->magic = TNK__MAGIC_QUEUE;
  queue->alloc = *alloc;
  queue->pid = getpid();
  queue->max = max;
  queue->runtime = runtime;
  queue->refs = 2;
  err = init(queue);
  if (err != TNK_OK) {
    tnk__free(&queue->alloc, queue);
    return err;
  }
  err = tnk__runtime_put(runtime, &queue->enter);
  if (err != TNK_OK)
    destroy(queue);
  else
    *out = queue;
  return err;
}

/* Make the calls, on this thread if it is the runtime's. */
static int dispatch(tnk_queue_t *queue, tnk_call_t *calls, size_t n) {
  job_t job = {.queue = queue, .calls = calls, .n = n};
  int is_own;
  int err = TNK_OK;

  tnk__post_init(&job.post, on_job, &job);
  lock_ref(queue);
  is_own = queue->runtime != NULL && tnk__runtime_is_own(queue->runtime);
  if (queue->runtime == NULL)
    err = TNK_ECLOSED;
  else if (!is_own)
    err = tnk__runtime_put(queue->runtime, &job.post);
  /* The runtime's thread runs each post that it has accepted. */
  while (!is_own && err == TNK_OK && !job.is_done)
    uv_cond_wait(&queue->called, &queue->lock);
  if (is_own) {
    uv_mutex_unlock(&queue->lock);
    job.result = run_calls(queue, calls, n);
    uv_mutex_lock(&queue->lock);
  }
  unlock_unref(queue);
  if (err != TNK_OK)
    calls[0].status = err;
  return err != TNK_OK ? err : job.result;
}

int tnk_queue_call(tnk_queue_t *queue, tnk_call_t *calls, size_t n) {
  size_t i;

  if (!TNK__HANDLE(queue, QUEUE) || (calls == NULL && n > 0))
    return TNK_EINVAL;
  if (queue->pid != getpid())
    return TNK_EFORKED;
  for (i = 0; i < n; i++)
    calls[i].status = TNK_EPENDING;
  return n > 0 ? dispatch(queue, calls, n) : TNK_OK;
}

int tnk_queue_watch(tnk_queue_t *queue, tnk_promise_t *promise, uint64_t tag) {
  watch_t *watch;
  int err = TNK_OK;

  if (!TNK__HANDLE(queue, QUEUE) || promise == NULL)
    return TNK_EINVAL;
  if (queue->pid != getpid())
    return TNK_EFORKED;
  uv_mutex_lock(&queue->lock);
  if (queue->runtime == NULL)
    err = TNK_ECLOSED;
  else if (!tnk__runtime_is_own(queue->runtime))
    err = TNK_ETHREAD;
  uv_mutex_unlock(&queue->lock);
  if (err == TNK_OK)
    err = reserve(&watch, queue);
  if (err != TNK_OK)
    return err;
  err = begin(queue, watch, promise, tag);
  if (err != TNK_OK)
    unreserve(queue, watch);
  return err;
}

/* Returns the number of completions or an error, as tnk_queue_take(). */
static int take_now(tnk_queue_t *queue, tnk_completion_t *out, size_t max) {
  tnk__list_t *node;
  int n = 0;

  if (queue->is_freed)
    return TNK_ECLOSED;
  while ((size_t)n < max && n < INT_MAX &&
         (node = tnk__list_pop(&queue->ready)) != NULL) {
    watch_t *watch = tnk__container_of(node, watch_t, link);
    out[n++] = (tnk_completion_t){
        .tag = watch->tag, .promise = watch->promise, .status = watch->status};
    tnk__free(&queue->alloc, watch);
  }
  queue->n_held -= (size_t)n;
  update_readable(queue);
  if (n > 0)
    return n;
  return has_ended(queue) ? TNK_ECLOSED : TNK_EPENDING;
}

int tnk_queue_take(tnk_queue_t *queue, tnk_completion_t *out, size_t max,
                   int timeout_ms) {
  struct pollfd fd = {.events = POLLIN};
  int n_ready = 1;
  int result;

  if (!TNK__HANDLE(queue, QUEUE) || out == NULL || max == 0)
    return TNK_EINVAL;
  if (queue->pid != getpid())
    return TNK_EFORKED;
  fd.fd = queue->fds[0];
  lock_ref(queue);
  result = take_now(queue, out, max);
  while (result == TNK_EPENDING && timeout_ms != 0 && n_ready > 0) {
    uv_mutex_unlock(&queue->lock);
    n_ready = poll(&fd, 1, timeout_ms);
    uv_mutex_lock(&queue->lock);
    result = take_now(queue, out, max);
    /* Another thread may have been faster. The time that is left is unknown. */
    if (timeout_ms > 0)
      break;
  }
  unlock_unref(queue);
  return result;
}

int tnk_queue_fd(const tnk_queue_t *queue) {
  return TNK__HANDLE(queue, QUEUE) ? queue->fds[0] : -1;
}

void tnk_queue_close(tnk_queue_t *queue) {
  if (!TNK__HANDLE(queue, QUEUE) || queue->pid != getpid())
    return;
  uv_mutex_lock(&queue->lock);
  queue->is_closed = 1;
  update_readable(queue);
  uv_mutex_unlock(&queue->lock);
}

void tnk_queue_free(tnk_queue_t *queue) {
  if (!TNK__HANDLE(queue, QUEUE) || queue->pid != getpid())
    return;
  uv_mutex_lock(&queue->lock);
  queue->is_closed = 1;
  queue->is_freed = 1;
  update_readable(queue);
  /* A runtime that stops refuses it and calls on_ended() instead. */
  if (queue->runtime != NULL)
    tnk__runtime_put(queue->runtime, &queue->leave);
  unlock_unref(queue);
}
