/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_JOURNAL_H
#define TNK_GATEWAY_RECORD_JOURNAL_H

#include <uv.h>

#include "gateway/base/wait.h"
#include "lib/base/buf.h"

/*
 * An append-only file of lines. A waiter is called when its lines are written.
 * Lines of one turn of the loop share one write on libuv's thread pool, and so
 * do lines that arrive during a write. With `syncs` each write is followed by
 * fdatasync(), so the lines survive a power failure. Without it a killed
 * process still loses nothing that was written. Closing syncs everything to the
 * disk.
 *
 * A killed process leaves whole lines, and possibly an incomplete one at the
 * end. The next process cuts that one off.
 */
typedef struct tnk__gw_journal tnk__gw_journal_t;

/* Called with each existing line; `line` has no line feed. Returns 0, or a code
 * that opening fails with. */
typedef int (*tnk__gw_line_cb)(void *user, const char *line, size_t n,
                               uint64_t offset);

/*
 * Open a journal and read the existing lines. Blocks. `loop` is NULL if nothing
 * is going to be written. `path` is NULL for a journal that keeps nothing; its
 * lines count as written at once. `syncs`: sync each write to the disk. Returns
 * TNK_OK or TNK_ENOMEM. TNK_EFILE and codes of `on_line` come with a sentence
 * in `why`.
 */
int tnk__gw_journal_open(tnk__gw_journal_t **out, uv_loop_t *loop,
                         const tnk_allocator_t *alloc, const char *path,
                         int syncs, tnk__gw_line_cb on_line, void *user,
                         char *why, size_t n_why);
/* Read the lines that another process has appended since. For a journal that
 * was opened without a loop, at the same `path`. An incomplete line is read
 * when it is complete. Returns TNK_OK, TNK_ENOMEM, or a code of `on_line`.
 * TNK_EFILE also if the file has become shorter than what was read, or if
 * `path` is another file now. All come with a sentence in `why`. */
int tnk__gw_journal_more(tnk__gw_journal_t *journal, const char *path,
                         tnk__gw_line_cb on_line, void *user, char *why,
                         size_t n_why);
/* Append a line, without its line feed. *offset receives its position. Returns
 * TNK_OK or TNK_ENOMEM. TNK_ETOOBIG: the line has almost 128 MiB or more, or
 * the disk is too slow for the lines that arrive. TNK_EFILE: a write has
 * failed, and nothing is written any more. */
int tnk__gw_journal_add(tnk__gw_journal_t *journal, const void *line, size_t n,
                        uint64_t *offset);
/* Wait until all lines so far are written. Returns 1 if they are, 0 if `done`
 * will be called from the loop, or a negative code if a write has failed. */
int tnk__gw_journal_wait(tnk__gw_journal_t *journal, tnk__gw_waiter_t *waiter);
/* Stop waiting. */
void tnk__gw_journal_leave(tnk__gw_waiter_t *waiter);
/* The number of bytes that were added, with those of earlier processes. 0 if
 * nothing is kept. */
uint64_t tnk__gw_journal_size(const tnk__gw_journal_t *journal);
/* Returns TNK_OK, or TNK_EFILE after a failed write. */
int tnk__gw_journal_error(const tnk__gw_journal_t *journal);
/* Read bytes of lines that were added. Returns TNK_OK, TNK_EFILE or
 * TNK_ENOMEM. */
int tnk__gw_journal_read(const tnk__gw_journal_t *journal, uint64_t offset,
                         size_t n, tnk__buf_t *out);
/* Write the remaining lines, then close. `closed` runs from the loop, or at
 * once without a loop. Waiters of lines that were not written get
 * TNK_ECLOSED. */
void tnk__gw_journal_close(tnk__gw_journal_t *journal,
                           void (*closed)(void *user), void *user);

#endif
