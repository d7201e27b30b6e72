/* SPDX-License-Identifier: MIT */
/*
 * States of a runtime: running, stopping, gone. While it is running, its thread
 * is in uv_run(); the handle `wake` keeps the loop alive. Each wake-up takes
 * the whole queue and calls the functions in order. tnk_runtime_stop() starts
 * stopping: new posts are refused. The next wake-up takes the rest of the
 * queue, closes `wake` and the objects on the loop, and the thread ends. The
 * thread that stops the runtime joins it and frees the memory.
 *
 * `lock` protects `queue` and `stopping`. No callback is called while it is
 * held. The other file with a lock is queue.c; its lock may be held while this
 * one is taken, never the other way round.
 */
#include "lib/api/runtime.h"

#include <unistd.h>
#include <uv.h>

#include "lib/api/root.h"
#include "lib/base/alloc.h"
#include "lib/base/misuse.h"
#include "lib/io/loop/context.h"
#include "tnk/error.h"
#include "tnk/promise.h"

struct tnk_runtime {
  uint32_t magic;
  tnk_allocator_t alloc;
  uv_loop_t loop;
  uv_async_t wake;
  uv_thread_t thread;
  uv_mutex_t lock;
  tnk__list_t queue; /* a list of tnk__post_t */
  int stopping;
  tnk__list_t guests; /* used on the runtime's thread only */
  pid_t pid; /* a forked child has no thread, and the lock may be held */
};

static void run_posts(tnk_runtime_t *runtime, tnk__list_t *posts) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(posts)) != NULL) {
    tnk__post_t *post = tnk__container_of(node, tnk__post_t, link);
    const tnk_post_cb cb = post->cb;
    void *user = post->user;

    if (post->is_copy)
      tnk__free(&runtime->alloc, post);
    /* libuv's loop is not reentrant, so tnk_wait() must fail in the
     * callback. */
    tnk__callout_begin();
    cb(&runtime->loop, user);
    tnk__callout_end();
  }
}

static void on_wake(uv_async_t *wake) {
  tnk_runtime_t *runtime = wake->data;
  tnk__list_t posts;
  int stopping;

  uv_mutex_lock(&runtime->lock);
  tnk__list_move(&posts, &runtime->queue);
  stopping = runtime->stopping;
  uv_mutex_unlock(&runtime->lock);
  run_posts(runtime, &posts);
  if (!stopping)
    return;
  uv_close((uv_handle_t *)wake, NULL);
  uv_stop(&runtime->loop);
}

static void close_handle(uv_handle_t *handle, void *user) {
  (void)user;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void end_guests(tnk_runtime_t *runtime) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&runtime->guests)) != NULL) {
    tnk__guest_t *guest = tnk__container_of(node, tnk__guest_t, link);
    guest->ended(guest);
  }
}

static void thread_main(void *arg) {
  tnk_runtime_t *runtime = arg;
  uv_loop_t *loop = &runtime->loop;

  /* A posted function may call uv_stop() too, but only tnk_runtime_stop() ends
   * the loop. */
  while (!uv_is_closing((uv_handle_t *)&runtime->wake))
    uv_run(loop, UV_RUN_DEFAULT);
  /* Repeated after every turn of the loop, because callbacks may still open
   * objects. */
  while (tnk__root_close_all(loop) > 0 || uv_loop_alive(loop))
    uv_run(loop, UV_RUN_ONCE);
  end_guests(runtime);
  if (uv_loop_close(loop) == 0)
    return;
  /* Close the caller's handles that do not keep the loop alive. */
  uv_walk(loop, close_handle, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  uv_loop_close(loop);
}

static void close_loop(tnk_runtime_t *runtime) {
  uv_close((uv_handle_t *)&runtime->wake, NULL);
  uv_run(&runtime->loop, UV_RUN_DEFAULT);
  uv_loop_close(&runtime->loop);
}

/* Initialize everything except the thread; a failure leaves nothing open. */
static int open_loop(tnk_runtime_t *runtime) {
  int err = uv_loop_init(&runtime->loop);

  if (err != 0)
    return err;
  err = uv_async_init(&runtime->loop, &runtime->wake, on_wake);
  if (err != 0) {
    uv_loop_close(&runtime->loop);
    return err;
  }
  runtime->wake.data = runtime;
  tnk__list_init(&runtime->queue);
  tnk__list_init(&runtime->guests);
  err = uv_mutex_init(&runtime->lock);
  if (err != 0)
    close_loop(runtime);
  return err;
}

int tnk__runtime_start(tnk_runtime_t **out, const tnk_allocator_t *alloc) {
  tnk_runtime_t *runtime = tnk__calloc(alloc, 1, sizeof(*runtime));
  const char *why = NULL;
  int err;

  *out = NULL;
  if (runtime == NULL)
    return TNK_ENOMEM;
  runtime->magic = TNK__MAGIC_RUNTIME;
  runtime->alloc = *alloc;
  runtime->pid = getpid();
  err = open_loop(runtime);
  if (err != 0)
    goto fail;
  err = uv_thread_create(&runtime->thread, thread_main, runtime);
  if (err != 0) {
    uv_mutex_destroy(&runtime->lock);
    close_loop(runtime);
    goto fail;
  }
  *out = runtime;
  return TNK_OK;

fail:
  tnk__free(alloc, runtime);
  return tnk__root_code(err, &why);
}

int tnk_runtime_start(tnk_runtime_t **out) {
  return out != NULL ? tnk__runtime_start(out, tnk__allocator_default())
                     : TNK_EINVAL;
}

uv_loop_t *tnk_runtime_loop(tnk_runtime_t *runtime) {
  return TNK__HANDLE(runtime, RUNTIME) ? &runtime->loop : NULL;
}

void tnk__post_init(tnk__post_t *post, tnk_post_cb cb, void *user) {
  *post = (tnk__post_t){.cb = cb, .user = user};
  tnk__list_init(&post->link);
}

int tnk__runtime_put(tnk_runtime_t *runtime, tnk__post_t *post) {
  int refused;

  if (tnk__runtime_is_forked(runtime))
    return TNK_EFORKED;
  uv_mutex_lock(&runtime->lock);
  refused = runtime->stopping;
  if (!refused) {
    tnk__list_append(&runtime->queue, &post->link);
    /* Under the lock `wake` is still open. */
    uv_async_send(&runtime->wake);
  }
  uv_mutex_unlock(&runtime->lock);
  /* After a refusal the runtime may be freed at any time. */
  return refused ? TNK_ECLOSED : TNK_OK;
}

int tnk__runtime_is_own(const tnk_runtime_t *runtime) {
  const uv_thread_t self = uv_thread_self();

  return uv_thread_equal(&self, &runtime->thread) != 0;
}

int tnk__runtime_is_forked(const tnk_runtime_t *runtime) {
  return runtime->pid != getpid();
}

void tnk__runtime_enter(tnk_runtime_t *runtime, tnk__guest_t *guest) {
  tnk__list_append(&runtime->guests, &guest->link);
}

void tnk__runtime_leave(tnk__guest_t *guest) {
  tnk__list_remove(&guest->link);
}

const tnk_allocator_t *tnk__runtime_alloc(const tnk_runtime_t *runtime) {
  return TNK__HANDLE(runtime, RUNTIME) ? &runtime->alloc : NULL;
}

int tnk_runtime_post(tnk_runtime_t *runtime, tnk_post_cb cb, void *user) {
  tnk_allocator_t alloc;
  tnk__post_t *post;
  int err;

  if (!TNK__HANDLE(runtime, RUNTIME) || cb == NULL)
    return TNK_EINVAL;
  if (tnk__runtime_is_forked(runtime))
    return TNK_EFORKED;
  alloc = runtime->alloc;
  post = tnk__malloc(&alloc, sizeof(*post));
  if (post == NULL)
    return TNK_ENOMEM;
  tnk__post_init(post, cb, user);
  post->is_copy = 1;
  err = tnk__runtime_put(runtime, post);
  if (err != TNK_OK)
    tnk__free(&alloc, post);
  return err;
}

static void drop(uv_loop_t *loop, void *user) {
  (void)loop;
  tnk_promise_unref(user);
}

int tnk_runtime_unref(tnk_runtime_t *runtime, tnk_promise_t *promise) {
  return promise != NULL ? tnk_runtime_post(runtime, drop, promise) : TNK_OK;
}

int tnk_runtime_stop(tnk_runtime_t *runtime) {
  tnk_allocator_t alloc;

  if (!TNK__HANDLE(runtime, RUNTIME))
    return TNK_OK;
  if (tnk__runtime_is_forked(runtime))
    return TNK_EFORKED;
  if (tnk__runtime_is_own(runtime))
    return TNK_EREENTRANT;
  uv_mutex_lock(&runtime->lock);
  runtime->stopping = 1;
  uv_async_send(&runtime->wake);
  uv_mutex_unlock(&runtime->lock);
  uv_thread_join(&runtime->thread);
  /* Wait for threads that are inside a post that is refused. A thread that has
   * not reached the lock yet is not visible here. The caller must rule that
   * out. */
  uv_mutex_lock(&runtime->lock);
  uv_mutex_unlock(&runtime->lock);
  uv_mutex_destroy(&runtime->lock);
  alloc = runtime->alloc;
  tnk__handle_end(runtime, sizeof(*runtime));
  tnk__free(&alloc, runtime);
  return TNK_OK;
}
