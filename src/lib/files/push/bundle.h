#ifndef TNK_LIB_FILES_PUSH_BUNDLE_H
#define TNK_LIB_FILES_PUSH_BUNDLE_H

#include "lib/files/push/folder.h"
#include "lib/io/loop/work.h"

/*
 * The options and files of a push. The memory is separate, because the thread
 * pool may still read after the push was canceled.
 *
 * States: idle, or busy with one job of the pool. It may be freed in both.
 */
typedef struct tnk__bundle {
  tnk__folder_t folder;
  tnk_push_options_t options;
  const char *owner; /* owner of the repository; NULL: the token's owner */
  const char *name;
  const char *revision;
  /* Set by the owner; called on the loop thread when a job is done. */
  void (*done)(struct tnk__bundle *bundle);
  void *user;
  /* Private. */
  tnk__arena_t arena;
  tnk__work_t work;
  void (*job)(tnk__folder_t *folder);
  int is_busy;
  int is_free;
} tnk__bundle_t;

/* Create one with copies of all arguments. NULL without memory. */
tnk__bundle_t *tnk__bundle_new(const tnk_allocator_t *alloc,
                               const char *directory,
                               const tnk_push_options_t *options);
/* Run a job on the pool, one at a time. Returns TNK_OK, or an error and `done`
 * is not called. */
int tnk__bundle_run(tnk__bundle_t *bundle, tnk__context_t *context,
                    void (*job)(tnk__folder_t *folder));
/* Free it: no callback is called afterwards. `bundle` may be NULL. Allocates
 * nothing. */
void tnk__bundle_free(tnk__bundle_t *bundle);

#endif
