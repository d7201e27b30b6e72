#ifndef TNK_LIB_FILES_PUSH_SOURCE_H
#define TNK_LIB_FILES_PUSH_SOURCE_H

#include "lib/io/http/client.h"
#include "lib/io/loop/work.h"

/*
 * A run of bytes of a file, as the body of a request: read by the thread pool,
 * one block ahead of what is sent, so that memory stays flat and the loop never
 * waits for a disk. What is in memory already needs no pool.
 */
typedef struct tnk__source tnk__source_t;

/* Make one for a file of the folder `dir`; or for `content`, which is borrowed.
 * `on_block` hears on the loop thread that a block was read, as its last touch;
 * it may free the source. NULL without memory. */
tnk__source_t *tnk__source_new(tnk__context_t *context, const char *dir,
                               const char *name, const char *content,
                               void (*on_block)(tnk__source_t *source),
                               void *user);
/* Free it: nothing is called any more. NULL does nothing. No exchange may hold
 * the feed. Allocates nothing. */
void tnk__source_free(tnk__source_t *source);
void *tnk__source_user(const tnk__source_t *source);
/* The bytes from `at` on, `n` of them, as a body; for any exchange after the
 * one before has ended. */
tnk__feed_t *tnk__source_feed(tnk__source_t *source, uint64_t at, uint64_t n);
/* Where the last block that was read ends. */
uint64_t tnk__source_place(const tnk__source_t *source);
/* TNK_OK, or why it cannot be read: TNK_EFILE with libuv's cause (0: it became
 * shorter), or TNK_ENOMEM. */
int tnk__source_err(const tnk__source_t *source, int *cause);

#endif
