/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_MODEL_H
#define TNK_TOOLS_TNK_LEARN_MODEL_H

#include "tnk/ledger.h"
#include "tnk/training.h"
#include "tools/tnk/ask/ask.h"

/* The model of a run and the ledger of its checkpoints. All functions that
 * return an exit status have reported errors. */

/* The model of the local server, whose tokens are bytes. */
#define LEARN_BYTE_MODEL "tnk/byte-lm"

/* Outages that a run survives without being started again. A run waits for as
 * long while its account has no credit. */
enum { LEARN_PATIENCE_MS = 15 * 60 * 1000 };

/* Open the ledger in the folder `run`. It keeps the last `n_rolling` states. */
int learn_ledger_open(tnk_ledger_t **out, cli_ask_t *ask, const char *run,
                      uint64_t n_rolling);
/*
 * Resume the run from its last state, or create its model. *first receives the
 * steps in the model.
 *
 * `n_kept` is the number of steps whose metrics are on the disk. A state with
 * more steps was saved before their results arrived, which nobody can fetch
 * anymore. It is deleted, and the run resumes from an older state, from which
 * these steps are trained again. If no such state is left, the run continues
 * with a warning and without these metrics.
 *
 * `run` is for messages.
 */
int learn_model_open(tnk_training_t **out, cli_ask_t *ask, tnk_ledger_t *ledger,
                     const char *run, const tnk_lora_options_t *lora,
                     uint64_t n_kept, uint64_t *first);
/*
 * Continue after the library has restored a lost model, if the result of a save
 * was lost too. The state may exist, and the ledger then has an intent without
 * a result. Look for it now: a later process would find it behind metrics of
 * another history. *model is replaced if the run has a state; *n_steps receives
 * the steps in the model. The other parameters are those of
 * learn_model_open().
 */
int learn_model_settle(tnk_training_t **model, cli_ask_t *ask,
                       tnk_ledger_t *ledger, const char *run, uint64_t n_kept,
                       uint64_t *n_steps);
/* For data whose tokens are bytes: check that the service does not name another
 * tokenizer for the model. It may name none. Returns the exit status. */
int learn_model_check_bytes(const cli_ask_t *ask,
                            const tnk_training_t *training, const char *model);
/* Returns whether the run has ended, with sampler weights. */
int learn_ledger_is_ended(const tnk_ledger_t *ledger);
/* At the end of a run, and when the ledger of a finished run was opened: wait
 * until the ledger has deleted the earlier states, which closing it would
 * end. */
void learn_ledger_settle(cli_ask_t *ask, tnk_ledger_t *ledger);
/* Report that a signal or the --timeout has ended the run before its last step.
 * Returns the exit status. */
int learn_report_unfinished(const cli_ask_t *ask, const tnk_ledger_t *ledger);

#endif
