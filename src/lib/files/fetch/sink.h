#ifndef TNK_LIB_FILES_FETCH_SINK_H
#define TNK_LIB_FILES_FETCH_SINK_H

#include "lib/base/buf.h"
#include "lib/files/fetch/sha256.h"
#include "lib/io/loop/work.h"

/*
 * Writes a file on the thread pool. A temporary file gets the final name only
 * when it is complete and matches the expected checksum. A kept file has its
 * final name from the start, so that a later process can resume it.
 *
 * States: idle; busy with one job at a time; finished. It may be freed in every
 * state.
 */
typedef struct tnk__sink tnk__sink_t;

/* Receives the result of a job: TNK_OK, TNK_EFILE with libuv's `cause`,
 * TNK_ECORRUPT (the checksum differs) or TNK_ENOMEM. After an error the sink
 * can only be freed. */
typedef void (*tnk__sink_cb)(tnk__sink_t *sink, int err, int cause);

/* Create a sink. Returns TNK_OK or TNK_ENOMEM. Nothing is written yet; the
 * first write creates missing parent folders. */
int tnk__sink_new(tnk__sink_t **out, tnk__context_t *context, const char *path,
                  tnk__sink_cb done, void *user);
/* Keep the file, and keep its first `offset` bytes. Call it right after
 * tnk__sink_new(). The line from tnk__sink_note() is written to `journal`
 * before the bytes of an answer. Both strings are copied. `gone` may be NULL.
 * It is called once, when the pool no longer uses the file, also after
 * tnk__sink_free(). Returns TNK_OK or TNK_ENOMEM; after an error the sink can
 * only be freed. */
int tnk__sink_keep(tnk__sink_t *sink, uint64_t offset, const char *journal,
                   void (*gone)(void *user), void *user);
/* Write a line to the journal with the next bytes, after the file was cut to
 * its offset. The sink takes the contents of `line`, which is empty
 * afterwards. */
void tnk__sink_note(tnk__sink_t *sink, tnk__buf_t *line);
void *tnk__sink_user(const tnk__sink_t *sink);
int tnk__sink_is_busy(const tnk__sink_t *sink);
/* Start over: the next bytes are the first of the file. */
void tnk__sink_rewind(tnk__sink_t *sink);
/* Append bytes; the sink takes the contents of the buffer, which is empty
 * afterwards. `done` is called later. */
void tnk__sink_write(tnk__sink_t *sink, tnk__buf_t *piece);
/* Compare the checksum (copied; NULL: any), synchronize the file and give it
 * its name. `done` is called later. */
void tnk__sink_finish(tnk__sink_t *sink, const char *sum);
/* Free the sink: only `gone` is called afterwards. An unfinished file is
 * removed on the pool, unless it is kept. `sink` may be NULL. Allocates
 * nothing. */
void tnk__sink_free(tnk__sink_t *sink);

#endif
