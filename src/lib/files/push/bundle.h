#ifndef TNK_LIB_FILES_PUSH_BUNDLE_H
#define TNK_LIB_FILES_PUSH_BUNDLE_H

#include "lib/files/push/folder.h"
#include "lib/io/loop/work.h"

/*
 * What a push is about: its options and its files, in memory of its own, since
 * the thread pool may still be reading when nobody waits for it any more.
 *
 * States: idle, or busy with one job of the pool. Letting go of it is legal in
 * both.
 */
typedef struct tnk__bundle {
  tnk__folder_t folder;
  tnk_push_options_t options;
  const char *owner; /* of the repository, or NULL: the token's */
  const char *name;
  const char *revision;
  /* The owner's, called when a job is done, on the loop thread. */
  void (*done)(struct tnk__bundle *bundle);
  void *user;
  /* Private. */
  tnk__arena_t arena;
  tnk__work_t work;
  void (*job)(tnk__folder_t *folder);
  int is_busy;
  int is_free;
} tnk__bundle_t;

/* Make one with copies of all. NULL without memory. */
tnk__bundle_t *tnk__bundle_new(const tnk_allocator_t *alloc,
                               const char *directory,
                               const tnk_push_options_t *options);
/* Have the pool do a job, once at a time. TNK_OK, or a code and `done` is not
 * called. */
int tnk__bundle_run(tnk__bundle_t *bundle, tnk__context_t *context,
                    void (*job)(tnk__folder_t *folder));
/* Free it: nothing is called any more. NULL does nothing. Allocates nothing. */
void tnk__bundle_free(tnk__bundle_t *bundle);

#endif
