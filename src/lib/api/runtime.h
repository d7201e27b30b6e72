/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_RUNTIME_H
#define TNK_LIB_API_RUNTIME_H

#include "lib/base/list.h"
#include "tnk/runtime.h"

/* A function to run on the runtime's thread. The memory belongs to the poster,
 * so that posting cannot fail for lack of memory. It is free again when `cb` is
 * called. */
typedef struct {
  tnk__list_t link;
  tnk_post_cb cb;
  void *user;
  uint8_t is_copy; /* made by tnk_runtime_post(), which frees it */
} tnk__post_t;

/* An object that must know the end of the runtime. */
typedef struct tnk__guest {
  tnk__list_t link;
  /* Called once on the runtime's thread, after every service and hub has
   * closed. The guest is no longer in the list then. */
  void (*ended)(struct tnk__guest *guest);
} tnk__guest_t;

void tnk__post_init(tnk__post_t *post, tnk_post_cb cb, void *user);

/* tnk_runtime_post() without an allocation. Any thread. */
int tnk__runtime_put(tnk_runtime_t *runtime, tnk__post_t *post);
/* Returns whether this is the runtime's thread. */
int tnk__runtime_is_own(const tnk_runtime_t *runtime);
/* Returns whether this is a child of the process that started the runtime. */
int tnk__runtime_is_forked(const tnk_runtime_t *runtime);

/* Both on the runtime's thread only. */
void tnk__runtime_enter(tnk_runtime_t *runtime, tnk__guest_t *guest);
void tnk__runtime_leave(tnk__guest_t *guest);

/* The allocator of tnk__runtime_start(). NULL if this is not a runtime. */
const tnk_allocator_t *tnk__runtime_alloc(const tnk_runtime_t *runtime);

#endif
