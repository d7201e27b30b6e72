#ifndef TNK_LIB_FILES_FETCH_SINK_H
#define TNK_LIB_FILES_FETCH_SINK_H

#include "lib/base/buf.h"
#include "lib/files/fetch/sha256.h"
#include "lib/io/loop/work.h"

/*
 * A file that is being written, by the thread pool: a temporary one beside the
 * path, which gets the name only when it is complete and as announced. Or one
 * that is kept, under its own name from the start, so that what has come is
 * found again later, whatever happens.
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
/* Right after making it: keep the file, of which so many bytes are there and
 * stay. Before the bytes of an answer, `journal` gets the line that
 * tnk__sink_note() brings; both texts are copied. `gone`, unless it is NULL, is
 * called once, when the pool is done with the file for good, also after
 * tnk__sink_free(). TNK_OK; or TNK_ENOMEM, and then it can only be freed. */
int tnk__sink_keep(tnk__sink_t *sink, uint64_t offset, const char *journal,
                   void (*gone)(void *user), void *user);
/* Have a line written to the journal with the next bytes, once the file is as
 * long as it says. It is taken, and `line` is empty afterwards. */
void tnk__sink_note(tnk__sink_t *sink, tnk__buf_t *line);
void *tnk__sink_user(const tnk__sink_t *sink);
int tnk__sink_is_busy(const tnk__sink_t *sink);
/* Begin anew: the next bytes are the first again. */
void tnk__sink_rewind(tnk__sink_t *sink);
/* Append; the buffer is taken, and is empty afterwards. `done` follows. */
void tnk__sink_write(tnk__sink_t *sink, tnk__buf_t *piece);
/* Compare the sum (NULL: any; copied), bring the bytes to the disk and give the
 * file its name. `done` follows. */
void tnk__sink_finish(tnk__sink_t *sink, const char *sum);
/* Free it: nothing is called any more but `gone`. A file that is not finished
 * is removed, in the pool, unless it is kept. NULL does nothing. Allocates
 * nothing. */
void tnk__sink_free(tnk__sink_t *sink);

#endif
