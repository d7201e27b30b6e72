#ifndef TNK_GATEWAY_RECORD_JOURNAL_H
#define TNK_GATEWAY_RECORD_JOURNAL_H

#include <uv.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"

/*
 * A file that only grows: lines, each written before those who wait for it go
 * on. Lines of one turn of the loop, and those that come while others are
 * written, share one write on libuv's thread pool, and one fdatasync() where
 * they have to outlive a machine that loses its power; a process that is killed
 * loses nothing that was written. At its end all of it is on the disk.
 *
 * A process that is killed leaves whole lines and perhaps a piece of one at the
 * end, which the next one cuts off.
 */
typedef struct tnk__gw_journal tnk__gw_journal_t;

/* Somebody who waits; embedded in its owner. */
typedef struct tnk__gw_waiter {
  tnk__list_t link;
  uint64_t upto; /* bytes that must be written */
  void (*done)(struct tnk__gw_waiter *waiter, int err);
} tnk__gw_waiter_t;

/* One line that was there; `line` has no line feed. 0, or a code that opening
 * fails with. */
typedef int (*tnk__gw_line_cb)(void *user, const char *line, size_t n,
                               uint64_t offset);

/*
 * Open, and read what is there; blocks. `loop` is NULL where nothing is to be
 * written. `path` is NULL for a journal that keeps nothing: everything is
 * written at once. `syncs`: each write goes on to the disk. TNK_OK; TNK_EFILE
 * or the code of `on_line`, with a sentence in `why`; TNK_ENOMEM.
 */
int tnk__gw_journal_open(tnk__gw_journal_t **out, uv_loop_t *loop,
                         const tnk_allocator_t *alloc, const char *path,
                         int syncs, tnk__gw_line_cb on_line, void *user,
                         char *why, size_t n_why);
/* Append a line, which must not hold a line feed; one is added. *offset
 * receives its place. TNK_OK; TNK_ETOOBIG for a line of more than almost 128
 * MiB, and while the disk is too slow for what comes; TNK_EFILE after a write
 * has failed: then nothing is written any more; TNK_ENOMEM. */
int tnk__gw_journal_add(tnk__gw_journal_t *journal, const void *line, size_t n,
                        uint64_t *offset);
/* Wait until all that was added is written. 1: it is, 0: `done` will be
 * called, from the loop; negative: a code, as a write has failed. */
int tnk__gw_journal_wait(tnk__gw_journal_t *journal, tnk__gw_waiter_t *waiter);
/* Do not wait any more. */
void tnk__gw_journal_leave(tnk__gw_waiter_t *waiter);
/* TNK_OK, or TNK_EFILE after a write has failed. */
int tnk__gw_journal_error(const tnk__gw_journal_t *journal);
/* Read bytes of lines that were added. TNK_OK, TNK_EFILE or TNK_ENOMEM. */
int tnk__gw_journal_read(const tnk__gw_journal_t *journal, uint64_t offset,
                         size_t n, tnk__buf_t *out);
/* Write what is left, then close; `closed` runs from the loop, or at once
 * without one. Those who wait are told TNK_ECLOSED if it is not written. */
void tnk__gw_journal_close(tnk__gw_journal_t *journal,
                           void (*closed)(void *user), void *user);

#endif
