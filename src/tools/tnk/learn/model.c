/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/model.h"

#include <inttypes.h>

#include "tnk/error.h"

/* The time to delete old states after the last save. A state that cannot be
 * deleted stays until the user deletes it. */
enum { DELETION_MS = 5000 };

int learn_ledger_open(tnk_ledger_t **out, cli_ask_t *ask, const char *run) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_promise_t *opened;
  int status = CLI_EXIT_OK;

  options.n_rolling = 2;
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

int learn_model_open(tnk_training_t **out, cli_ask_t *ask, tnk_ledger_t *ledger,
                     const char *run, const tnk_lora_options_t *lora,
                     uint64_t *first) {
  tnk_promise_t *resumed = tnk_ledger_resume(ledger, NULL);
  const int err = cli_ask_wait(ask, resumed);
  int status = CLI_EXIT_OK;

  *first = 0;
  if (err == TNK_OK) {
    *out = tnk_promise_training(resumed);
    *first = tnk_ledger_resumed(ledger)->n_steps;
    cli_note(ask->cli, "resuming after step %" PRIu64, *first);
  } else if (err != TNK_ENOTFOUND) {
    status = cli_ask_failed(ask, resumed);
  } else if (tnk_ledger_count(ledger) > 0) {
    /* A new start would overwrite the checkpoints of the run. */
    status = cli_fail(ask->cli, CLI_EXIT_NOT_FOUND,
                      "the service has none of the checkpoints of %s. Is it "
                      "the service that the run began with?",
                      run);
  }
  tnk_promise_unref(resumed);
  if (status != CLI_EXIT_OK || err == TNK_OK)
    return status;
  return create(out, ask, lora);
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

int learn_report_unfinished(const cli_ask_t *ask) {
  return cli_report(
      ask->cli,
      &(cli_problem_t){
          .status =
              ask->signal_number != 0 ? CLI_EXIT_INTERRUPT : CLI_EXIT_NETWORK,
          .message = "the run is not finished",
          .code = "interrupted",
          .hint = "Its state is saved. The same command continues it."});
}
