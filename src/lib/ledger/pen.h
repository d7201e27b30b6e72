/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_LEDGER_PEN_H
#define TNK_LIB_LEDGER_PEN_H

#include "lib/base/buf.h"
#include "lib/io/loop/work.h"
#include "lib/ledger/file.h"

/* Lines to write to the file. Embedded in its owner. */
typedef struct tnk__pen_line {
  tnk__list_t link;
  const tnk__buf_t *text; /* borrowed until the pool has it */
  int cause;              /* of a text that has no memory: it is not written */
  /* Called with 0 once the lines are on the disk, or with libuv's error
   * code. */
  void (*done)(struct tnk__pen_line *self, int cause);
} tnk__pen_line_t;

/*
 * Writes lines in the order of the calls, on the pool. Lines that arrive while
 * the pool is busy are written and synchronized together.
 *
 * While it is busy, the file, `batch` and `cause` belong to the pool.
 */
typedef struct tnk__pen {
  tnk__context_t *context;
  tnk__ledger_file_t file;
  tnk__list_t waiting;
  tnk__list_t writing;
  tnk__buf_t batch;
  tnk__work_t work;
  int cause;
  int is_busy;
  void (*idle)(struct tnk__pen *self); /* called when all lines are written */
} tnk__pen_t;

void tnk__pen_init(tnk__pen_t *pen, tnk__context_t *context,
                   const tnk__ledger_disk_t *disk,
                   void (*idle)(tnk__pen_t *self));
/* Deinitialize an idle pen: the file is closed. */
void tnk__pen_deinit(tnk__pen_t *pen);
void tnk__pen_line_init(tnk__pen_line_t *line,
                        void (*done)(tnk__pen_line_t *self, int cause));
/* Queue lines for writing. `text` must stay valid until `done`, which is never
 * called inside this function. If `text` has failed, nothing of it is written
 * and `done` gets UV_ENOMEM. */
void tnk__pen_write(tnk__pen_t *pen, tnk__pen_line_t *line,
                    const tnk__buf_t *text);
/* Drop lines: `done` is not called, and lines that the pool does not have yet
 * are not written. */
void tnk__pen_forget(tnk__pen_line_t *line);

#endif
