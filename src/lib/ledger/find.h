/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_LEDGER_FIND_H
#define TNK_LIB_LEDGER_FIND_H

#include "lib/io/loop/promise.h"
#include "lib/ledger/line.h"
#include "tnk/record.h"

/* Find the service's record of a save in its list of checkpoints. */

/* The state, or the sampler weights, of a line's save. NULL if the page does
 * not contain it. The page may be NULL. */
const tnk_checkpoint_t *tnk__ledger_find(const tnk_page_t *page,
                                         const tnk__ledger_line_t *line,
                                         tnk__ledger_what_t what);
/* Returns whether the page contains the path, or may be incomplete. */
int tnk__ledger_may_have(const tnk_page_t *page, const char *path);
/* The latest state of the run with this name in its metadata. If `before` is a
 * save, the state must be older. NULL if none is found. */
const tnk_checkpoint_t *tnk__ledger_find_run(const tnk_page_t *page,
                                             const char *run_name,
                                             const tnk__ledger_line_t *before);
/* The counts of use as a checkpoint stores them: numbers separated by
 * commas. */
#define TNK__LEDGER_USED_TEXT (TNK__LEDGER_N_USED * 21)
void tnk__ledger_write_used(char out[TNK__LEDGER_USED_TEXT],
                            const tnk__ledger_line_t *line);
/* Copy the fields that a checkpoint's metadata contains. Strings remain in the
 * checkpoint. */
void tnk__ledger_learn(tnk__ledger_line_t *line,
                       const tnk_checkpoint_t *checkpoint);

#endif
