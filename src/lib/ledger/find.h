#ifndef TNK_LIB_LEDGER_FIND_H
#define TNK_LIB_LEDGER_FIND_H

#include "lib/io/loop/promise.h"
#include "lib/ledger/line.h"
#include "tnk/record.h"

/* What the service keeps of a save, in its list of checkpoints. */

/* The state, or the weights to sample from, that a line announces; NULL. The
 * page may be NULL. */
const tnk_checkpoint_t *tnk__ledger_find(const tnk_page_t *page,
                                         const tnk__ledger_line_t *line,
                                         tnk__ledger_what_t what);
/* Whether the page has the path, or does not say all there is. */
int tnk__ledger_may_have(const tnk_page_t *page, const char *path);
/* The latest state of a run whose checkpoints tell its name, before the save
 * that `before` is of, where that is of one; NULL. */
const tnk_checkpoint_t *tnk__ledger_find_run(const tnk_page_t *page,
                                             const char *run_name,
                                             const tnk__ledger_line_t *before);
/* What was used, as a checkpoint tells it: numbers between commas. */
#define TNK__LEDGER_USED_TEXT (TNK__LEDGER_N_USED * 21)
void tnk__ledger_write_used(char out[TNK__LEDGER_USED_TEXT],
                            const tnk__ledger_line_t *line);
/* Take over what a checkpoint tells of itself. Texts stay the checkpoint's. */
void tnk__ledger_learn(tnk__ledger_line_t *line,
                       const tnk_checkpoint_t *checkpoint);

#endif
