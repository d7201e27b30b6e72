#ifndef TNK_LIB_FILES_PUSH_SOURCE_H
#define TNK_LIB_FILES_PUSH_SOURCE_H

#include "lib/io/http/client.h"
#include "lib/io/loop/work.h"

/*
 * A range of a file as a request body. The thread pool reads one block ahead,
 * so memory is bounded and the loop never waits for a disk. Content in memory
 * does not need the pool.
 */
typedef struct tnk__source tnk__source_t;

/* Create a source for a file in the folder `dir`, or for `content`, which is
 * borrowed. `on_block` is called on the loop thread after a block was read, as
 * the last access; it may free the source. NULL without memory. */
tnk__source_t *tnk__source_new(tnk__context_t *context, const char *dir,
                               const char *name, const char *content,
                               void (*on_block)(tnk__source_t *source),
                               void *user);
/* Free it: no callback is called afterwards. `source` may be NULL. No exchange
 * may still use the feed. Allocates nothing. */
void tnk__source_free(tnk__source_t *source);
void *tnk__source_user(const tnk__source_t *source);
/* The n bytes from `at` on, as a body. The previous exchange must have
 * ended. */
tnk__feed_t *tnk__source_feed(tnk__source_t *source, uint64_t at, uint64_t n);
/* End of the last block that was read. */
uint64_t tnk__source_place(const tnk__source_t *source);
/* Returns TNK_OK, TNK_EFILE with libuv's cause (0: the file became shorter), or
 * TNK_ENOMEM. */
int tnk__source_err(const tnk__source_t *source, int *cause);

#endif
