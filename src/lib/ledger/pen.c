/* SPDX-License-Identifier: MIT */
#include "lib/ledger/pen.h"

#include "lib/base/alloc.h"

#include "tnk/error.h"

static void start(tnk__pen_t *pen);

void tnk__pen_init(tnk__pen_t *pen, tnk__context_t *context,
                   const tnk__ledger_disk_t *disk,
                   void (*idle)(tnk__pen_t *self)) {
  *pen = (tnk__pen_t){.context = context, .idle = idle};
  pen->file = (tnk__ledger_file_t){.disk = disk, .fd = -1};
  tnk__list_init(&pen->waiting);
  tnk__list_init(&pen->writing);
  tnk__buf_init(&pen->batch, &context->alloc, (size_t)TNK__LEDGER_MAX_FILE);
}

void tnk__pen_deinit(tnk__pen_t *pen) {
  tnk__ledger_file_close(&pen->file);
  tnk__buf_deinit(&pen->batch);
}

void tnk__pen_line_init(tnk__pen_line_t *line,
                        void (*done)(tnk__pen_line_t *self, int cause)) {
  *line = (tnk__pen_line_t){.done = done};
  tnk__list_init(&line->link);
}

/* ---- In the pool ---- */

static void run(tnk__work_t *work) {
  tnk__pen_t *pen = tnk__container_of(work, tnk__pen_t, work);

  pen->cause =
      pen->batch.err != TNK_OK
          ? UV_ENOMEM
          : tnk__ledger_file_add(&pen->file, pen->batch.data, pen->batch.len);
}

/* ---- On the loop ---- */

static void ran(tnk__work_t *work) {
  tnk__pen_t *pen = tnk__container_of(work, tnk__pen_t, work);
  const int cause = pen->cause;
  tnk__list_t *node;

  /* A callback may add lines. They wait until all callbacks have run. */
  while ((node = tnk__list_pop(&pen->writing)) != NULL) {
    tnk__pen_line_t *line = tnk__container_of(node, tnk__pen_line_t, link);

    line->done(line, line->cause != 0 ? line->cause : cause);
  }
  tnk__buf_clear(&pen->batch);
  pen->is_busy = 0;
  if (!tnk__list_empty(&pen->waiting))
    start(pen);
  else
    pen->idle(pen);
}

/* A text that could not be written whole must not reach the file: the next line
 * would continue it. The other lines of the batch do not depend on it. */
static void start(tnk__pen_t *pen) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&pen->waiting)) != NULL) {
    tnk__pen_line_t *line = tnk__container_of(node, tnk__pen_line_t, link);
    const tnk__buf_t *text = line->text;

    line->cause = text->err == TNK_OK ? 0 : UV_ENOMEM;
    if (line->cause == 0)
      tnk__buf_append(&pen->batch, text->data, text->len);
    tnk__list_append(&pen->writing, node);
  }
  pen->is_busy = 1;
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(pen->context, &pen->work, run, ran);
}

void tnk__pen_write(tnk__pen_t *pen, tnk__pen_line_t *line,
                    const tnk__buf_t *text) {
  line->text = text;
  tnk__list_append(&pen->waiting, &line->link);
  if (!pen->is_busy)
    start(pen);
}

void tnk__pen_forget(tnk__pen_line_t *line) {
  tnk__list_remove(&line->link);
}
