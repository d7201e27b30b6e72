/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/model.h"

#include <inttypes.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/rest.h"
#include "tools/local/lm/lm.h"

/* The time to delete old states after the last save, longer than one pause for
 * credit. The next process tries again. */
enum { DELETION_MS = 8000 };
/* How often resuming is repeated after the service has lost the session. */
enum { MAX_LOST = 10 };

int learn_ledger_open(tnk_ledger_t **out, cli_ask_t *ask, const char *run,
                      uint64_t n_rolling) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_promise_t *opened;
  int status = CLI_EXIT_OK;

  options.n_rolling = n_rolling;
  opened = tnk_ledger_open(ask->service, run, &options);
  if (cli_ask_wait(ask, opened) == TNK_OK)
    *out = tnk_promise_ledger(opened);
  else
    status = cli_ask_failed(ask, opened);
  tnk_promise_unref(opened);
  return status;
}

static int create(tnk_training_t **out, cli_ask_t *ask,
                  const tnk_lora_options_t *lora) {
  tnk_promise_t *created = tnk_service_create_lora(ask->service, lora);
  int status = CLI_EXIT_OK;

  if (cli_ask_wait(ask, created) == TNK_OK)
    *out = tnk_promise_training(created);
  else
    status = cli_ask_model_failed(ask, created, lora->base_model);
  tnk_promise_unref(created);
  return status;
}

/* ---- Resuming ---- */

/* Returns TNK_OK, TNK_ENOTFOUND without a state, or the code of a failure that
 * was reported with *status. */
static int resume(tnk_training_t **out, cli_ask_t *ask, tnk_ledger_t *ledger,
                  int *status) {
  tnk_promise_t *resumed = tnk_ledger_resume(ledger, NULL);
  int err = cli_ask_wait(ask, resumed);

  /* The server may be lost again while it is asked. */
  for (size_t i = 0; i < MAX_LOST && err == TNK_ESESSION; i++) {
    tnk_promise_unref(resumed);
    resumed = tnk_ledger_resume(ledger, NULL);
    err = cli_ask_wait(ask, resumed);
  }
  if (err == TNK_OK)
    *out = tnk_promise_training(resumed);
  else if (err != TNK_ENOTFOUND)
    *status = cli_ask_failed(ask, resumed);
  tnk_promise_unref(resumed);
  return err;
}

/* A service may have no such call. */
static int is_none(int err) {
  return err == TNK_ENOTFOUND || err == TNK_EUNSUPPORTED;
}

/* Load a state that the service has, to see whether it can. Returns TNK_OK, or
 * TNK_ENOTFOUND if a model cannot be made of it. */
static int try_state(cli_ask_t *ask, const char *path, int *status) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;
  int err = TNK_ESESSION;

  options.path = path;
  options.with_optimizer = TNK_YES;
  for (size_t i = 0; i < MAX_LOST && err == TNK_ESESSION; i++) {
    tnk_promise_t *loaded = tnk_service_restore(ask->service, &options);

    err = cli_ask_wait(ask, loaded);
    if (err == TNK_OK)
      tnk_training_close(tnk_promise_training(loaded), NULL, NULL);
    else if (err == TNK_EFAILED)
      err = TNK_ENOTFOUND;
    else if (!is_none(err) && (err != TNK_ESESSION || i + 1 == MAX_LOST))
      *status = cli_ask_failed(ask, loaded);
    tnk_promise_unref(loaded);
  }
  return err;
}

/* Returns whether the service can load a state with at most `n_kept` steps.
 * Only then the one that is ahead can be deleted. */
static int has_older(cli_ask_t *ask, const tnk_ledger_t *ledger,
                     uint64_t n_kept, int *status) {
  int err = TNK_ENOTFOUND;

  for (size_t i = tnk_ledger_count(ledger); i-- > 0 && is_none(err);) {
    const tnk_ledger_entry_t *entry = tnk_ledger_entry(ledger, i);
    tnk_promise_t *found;

    if (entry->state_path == NULL || entry->is_deleted ||
        entry->n_steps > n_kept)
      continue;
    found = tnk_rest_get_weights_info(ask->service, entry->state_path);
    err = cli_ask_wait(ask, found);
    if (err != TNK_OK && !is_none(err))
      *status = cli_ask_failed(ask, found);
    tnk_promise_unref(found);
    if (err == TNK_OK)
      err = try_state(ask, entry->state_path, status);
  }
  return err == TNK_OK;
}

static int delete_state(cli_ask_t *ask, const char *path) {
  tnk_promise_t *deleted = tnk_rest_delete_checkpoint(ask->service, path);
  const int err = cli_ask_wait(ask, deleted);
  int status = CLI_EXIT_OK;

  /* A service without this call still has the state, and returns it again. */
  if (err != TNK_OK && !is_none(err))
    status = cli_ask_failed(ask, deleted);
  tnk_promise_unref(deleted);
  return status;
}

/* *out is NULL if the run has not begun yet. */
static int resume_kept(tnk_training_t **out, cli_ask_t *ask,
                       tnk_ledger_t *ledger, const char *run, uint64_t n_kept,
                       uint64_t *first) {
  const tnk_ledger_entry_t *entry = NULL;
  const tnk_ledger_entry_t *deleted;
  /* A service may return states again that it has deleted. */
  size_t n_tried = 0;
  int status = CLI_EXIT_OK;

  *out = NULL;
  *first = 0;
  do {
    deleted = entry;
    if (resume(out, ask, ledger, &status) != TNK_OK)
      break;
    entry = tnk_ledger_resumed(ledger);
    *first = entry->n_steps;
    if (*first <= n_kept)
      return CLI_EXIT_OK;
    if (entry == deleted || n_tried++ == tnk_ledger_count(ledger) ||
        !has_older(ask, ledger, n_kept, &status)) {
      if (status == CLI_EXIT_OK)
        cli_warn(ask->cli,
                 "the metrics of the steps %" PRIu64 " to %" PRIu64
                 " are missing",
                 n_kept + 1, *first);
      return status;
    }
    cli_note(ask->cli,
             "the state after step %" PRIu64 " was saved before all results "
             "had arrived; continuing from the one before",
             *first);
    tnk_training_close(*out, NULL, NULL);
    *out = NULL;
    status = delete_state(ask, entry->state_path);
  } while (status == CLI_EXIT_OK);
  /* A new start would overwrite the checkpoints of the run. */
  if (status == CLI_EXIT_OK && tnk_ledger_count(ledger) > 0)
    status = cli_fail(ask->cli, CLI_EXIT_NOT_FOUND,
                      "the service has none of the checkpoints of %s. Is it "
                      "the service that the run began with?",
                      run);
  return status;
}

int learn_model_settle(tnk_training_t **model, cli_ask_t *ask,
                       tnk_ledger_t *ledger, const char *run, uint64_t n_kept,
                       uint64_t *n_steps) {
  tnk_training_t *found = NULL;
  uint64_t first = 0;
  const int status = resume_kept(&found, ask, ledger, run, n_kept, &first);

  if (found == NULL)
    return status;
  tnk_training_close(*model, NULL, NULL);
  *model = found;
  *n_steps = first;
  return status;
}

int learn_model_open(tnk_training_t **out, cli_ask_t *ask, tnk_ledger_t *ledger,
                     const char *run, const tnk_lora_options_t *lora,
                     uint64_t n_kept, uint64_t *first) {
  const int status = resume_kept(out, ask, ledger, run, n_kept, first);

  if (status != CLI_EXIT_OK)
    return status;
  if (*out == NULL && n_kept > 0)
    cli_note(ask->cli,
             "the run has no saved state, so its %" PRIu64
             " steps are trained again",
             n_kept);
  if (*out == NULL)
    return create(out, ask, lora);
  cli_note(ask->cli, "resuming after step %" PRIu64, *first);
  return CLI_EXIT_OK;
}

int learn_model_check_bytes(const cli_ask_t *ask,
                            const tnk_training_t *training, const char *model) {
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;

  (void)tnk_training_info(&info, training);
  if (info.tokenizer_id == NULL || info.tokenizer_id[0] == '\0' ||
      strcmp(info.tokenizer_id, TNK__LM_TOKENIZER) == 0)
    return CLI_EXIT_OK;
  return cli_fail(ask->cli, CLI_EXIT_FAILED,
                  "the tokens of the data are bytes, and the service's model "
                  "%s has the tokenizer %.200s: --tokenizer must be that one",
                  model, info.tokenizer_id);
}

int learn_ledger_is_ended(const tnk_ledger_t *ledger) {
  const tnk_ledger_entry_t *last = tnk_ledger_last(ledger);

  return last != NULL && last->is_final && last->sampler_path != NULL;
}

static int has_rolling(const void *user) {
  const tnk_ledger_t *ledger = user;
  int has = 0;

  for (size_t i = 0; i < tnk_ledger_count(ledger); i++) {
    const tnk_ledger_entry_t *entry = tnk_ledger_entry(ledger, i);

    has |= entry->is_rolling && entry->state_path != NULL && !entry->is_deleted;
  }
  return has;
}

void learn_ledger_settle(cli_ask_t *ask, tnk_ledger_t *ledger) {
  cli_ask_while(ask, has_rolling, ledger, DELETION_MS);
}

int learn_report_unfinished(const cli_ask_t *ask, const tnk_ledger_t *ledger) {
  return cli_report(
      ask->cli,
      &(cli_problem_t){
          .status =
              ask->signal_number != 0 ? CLI_EXIT_INTERRUPT : CLI_EXIT_NETWORK,
          .message = "the run is not finished",
          .code = "interrupted",
          .hint = tnk_ledger_last(ledger) != NULL
                      ? "Its state is saved. The same command continues it."
                      : "It has no complete step and no saved state. The same "
                        "command begins it again."});
}
