#ifndef TNK_TASK_HUB_SINK_H
#define TNK_TASK_HUB_SINK_H

#include "base/buf.h"
#include "task/hub/sha256.h"
#include "loop/work.h"

/*
 * A file that is being written, by the thread pool: a temporary one beside the
 * path, which gets the name only when it is complete and as announced.
 *
 * States: idle, or busy with one piece of work at a time; finished. Giving it
 * up is legal in each of them.
 */
typedef struct tnk__sink tnk__sink_t;

/* Hears how it went: `err` is TNK_OK; or TNK_EFILE with libuv's `cause`,
 * TNK_ECORRUPT (the sum is another one), TNK_ENOMEM. After an error the sink
 * can only be freed. */
typedef void (*tnk__sink_cb)(tnk__sink_t *sink, int err, int cause);

/* Make a sink. TNK_OK or TNK_ENOMEM. Nothing is written yet; missing folders on
 * the way to `path` are made with the first bytes. */
int tnk__sink_new(tnk__sink_t **out, tnk__context_t *context, const char *path,
                  tnk__sink_cb done, void *user);
void *tnk__sink_user(const tnk__sink_t *sink);
int tnk__sink_is_busy(const tnk__sink_t *sink);
/* Begin anew: the next bytes are the first again. */
void tnk__sink_rewind(tnk__sink_t *sink);
/* Append; the buffer is taken, and is empty afterwards. `done` follows. */
void tnk__sink_write(tnk__sink_t *sink, tnk__buf_t *piece);
/* Compare the sum (NULL: any; copied), bring the bytes to the disk and give the
 * file its name. `done` follows. */
void tnk__sink_finish(tnk__sink_t *sink, const char *sum);
/* Free it: nothing is called any more. A file that is not finished is removed,
 * in the pool. NULL does nothing. Allocates nothing. */
void tnk__sink_free(tnk__sink_t *sink);

#endif
