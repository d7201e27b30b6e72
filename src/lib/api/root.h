/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_ROOT_H
#define TNK_LIB_API_ROOT_H

#include <uv.h>

#include "lib/base/list.h"
#include "lib/base/misuse.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/io/loop/promise.h"
#include "tnk/runtime.h"
#include "tnk/service.h"

struct tnk__root;

typedef struct {
  tnk__magic_t magic;
  size_t size; /* size of the larger struct */
  /* Closes the object, as the caller would. */
  void (*close)(struct tnk__root *self);
  /* Frees the members of the larger struct. After a failed opening some of them
   * may still be zeroed. */
  void (*free_rest)(struct tnk__root *self);
} tnk__root_kind_t;

/*
 * An object that the caller opens on a loop and must close; the first member of
 * a service and of a hub. It has its own context and connections. While it is
 * open, it is in a list of its thread, so that a runtime can close all objects
 * on its loop.
 *
 * States: new, with memory only. Started: it has a context and connections.
 * Open: returned to the caller. Closing: from the caller's request until libuv
 * has closed all handles. Then the memory is freed and the close callback is
 * called.
 */
typedef struct tnk__root {
  uint32_t magic;   /* identifies its kind */
  tnk__list_t link; /* in the thread's list */
  const tnk__root_kind_t *kind;
  tnk_allocator_t alloc;
  tnk__context_t context;
  tnk__http_t http;
  int is_started;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
} tnk__root_t;

/* To open an object, call the following three functions in this order. The
 * first two may set *why, which the first one initializes to NULL. After a
 * failure only the last one may follow. */

/* Allocate kind->size zeroed bytes; `alloc` may be NULL. */
int tnk__root_new(tnk__root_t **out, const tnk__root_kind_t *kind,
                  const uv_loop_t *uv, const tnk_allocator_t *alloc,
                  const char **why);
int tnk__root_start(tnk__root_t *root, uv_loop_t *uv,
                    const tnk_logger_t *logger, const tnk__http_options_t *http,
                    const char **why);
/* Finish the opening. With TNK_OK the caller owns the object. Otherwise the
 * opening is undone and the memory is freed, which may include `why`. `text` is
 * as for tnk__root_say(). `root` may be NULL after a failure. */
void tnk__root_finish(tnk__root_t *root, int err, const char *why, char *text,
                      size_t size);

/* Write `why`, or the description of the code if it is NULL, to the caller's
 * buffer, which may be NULL. Returns the code. */
int tnk__root_say(char *text, size_t size, int err, const char *why);
/* Convert a code of libuv to a code of tnk and set `why` to its description.
 * Codes of tnk are returned unchanged. */
int tnk__root_code(int err, const char **why);

/* Returns whether the object may be closed, and marks it as closing. */
int tnk__root_begin_close(tnk__root_t *root, tnk_close_cb cb, void *user);
/* Continue closing after all dependent objects are closed. */
void tnk__root_end_close(tnk__root_t *root);
/* Close all objects of this thread on the loop. Returns their number. */
size_t tnk__root_close_all(const uv_loop_t *uv);

/* Create a rejected promise for an operation that cannot start. If `why` is
 * NULL or "", the message is the description of the code. */
tnk_promise_t *tnk__root_reject(tnk__context_t *context, int code,
                                const char *name, const char *why);
/* As above, if the context may be gone: `kin` is another promise of it. */
tnk_promise_t *tnk__root_reject_beside(tnk_promise_t *kin, int code,
                                       const char *name, const char *why);

/* Implements tnk_runtime_start() with an allocator. The allocator is copied,
 * and is called on every thread that posts. */
int tnk__runtime_start(tnk_runtime_t **out, const tnk_allocator_t *alloc);

#endif
