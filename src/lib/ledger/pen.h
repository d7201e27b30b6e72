#ifndef TNK_LIB_LEDGER_PEN_H
#define TNK_LIB_LEDGER_PEN_H

#include "lib/base/buf.h"
#include "lib/io/loop/work.h"
#include "lib/ledger/file.h"

/* Lines that are to be in the file. Embedded in its owner. */
typedef struct tnk__pen_line {
  tnk__list_t link;
  const tnk__buf_t *text; /* the owner's, until the pool has it */
  /* They are on the disk (0), or are not (libuv's code). */
  void (*done)(struct tnk__pen_line *self, int cause);
} tnk__pen_line_t;

/*
 * Writes lines in the order in which they come, off the loop. What comes while
 * the pool is busy is written and synchronized together.
 *
 * Idle, or busy: then the file, `batch` and `cause` are the pool's.
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
  void (*idle)(struct tnk__pen *self); /* nothing is left to write */
} tnk__pen_t;

void tnk__pen_init(tnk__pen_t *pen, tnk__context_t *context,
                   const tnk__ledger_disk_t *disk,
                   void (*idle)(tnk__pen_t *self));
/* End one that is idle: the file is closed. */
void tnk__pen_deinit(tnk__pen_t *pen);
void tnk__pen_line_init(tnk__pen_line_t *line,
                        void (*done)(tnk__pen_line_t *self, int cause));
/* Write. `text` stays until `done`, which is never called inside this. */
void tnk__pen_write(tnk__pen_t *pen, tnk__pen_line_t *line,
                    const tnk__buf_t *text);
/* Let go of lines: `done` is not called, and what the pool does not have yet is
 * not written. */
void tnk__pen_forget(tnk__pen_line_t *line);

#endif
