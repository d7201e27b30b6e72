/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/ledger.h. */
#include "tnk/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/base/utf8.h"
#include "lib/ledger/ledger.h"

enum {
  MAX_DIRECTORY = 3072, /* leaves space in the path for the files below */
  MAX_NAME = 128,
  MAX_CURSOR = 2048,
  MAX_RUN = 256,
  MAX_SECONDS = 1000000000 /* thirty years */
};

/* ---- The ledger ---- */

static int check_directory(const char *directory, char *why, size_t size) {
  const size_t n = directory != NULL ? strlen(directory) : 0;

  if (n > 0 && n < MAX_DIRECTORY)
    return TNK_OK;
  snprintf(why, size, "directory is %s", n == 0 ? "empty" : "too long");
  return TNK_EINVAL;
}

static int check_run(const char *run, char *why, size_t size) {
  const size_t n = run != NULL ? strlen(run) : 1;

  if (n > 0 && n <= MAX_RUN &&
      (run == NULL || tnk__utf8_valid((const uint8_t *)run, n) == n))
    return TNK_OK;
  snprintf(why, size, "run is not UTF-8 of 1 to %d bytes", MAX_RUN);
  return TNK_EINVAL;
}

static int check_policy(const tnk_ledger_options_t *options, char *why,
                        size_t size) {
  if (options->every_seconds > MAX_SECONDS ||
      options->ttl_seconds > MAX_SECONDS) {
    snprintf(why, size, "every_seconds or ttl_seconds is more than %u",
             (unsigned)MAX_SECONDS);
    return TNK_EINVAL;
  }
  if (options->ttl_seconds > 0 && options->every_steps == 0 &&
      options->every_seconds >= options->ttl_seconds) {
    snprintf(why, size,
             "saves expire after %" PRIu64
             " s (ttl_seconds), and are made every %" PRIu64
             " s (every_seconds): each would be gone before the next one",
             options->ttl_seconds, options->every_seconds);
    return TNK_EINVAL;
  }
  return TNK_OK;
}

tnk_promise_t *tnk_ledger_open(tnk_service_t *service, const char *directory,
                               const tnk_ledger_options_t *options) {
  tnk_ledger_options_t own = TNK_LEDGER_OPTIONS_INIT;
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_ledger_options_t, &own, options, why, sizeof(why));
  if (err == TNK_OK)
    err = check_directory(directory, why, sizeof(why));
  if (err == TNK_OK)
    err = check_run(own.run, why, sizeof(why));
  if (err == TNK_OK)
    err = check_policy(&own, why, sizeof(why));
  refusal = tnk__service_refuses(&service->session, "ledger_open", err, why);
  return refusal != NULL ? refusal
                         : tnk__ledger_open(&service->ledgers, directory, &own);
}

tnk_ledger_t *tnk_promise_ledger(const tnk_promise_t *promise) {
  tnk_ledger_t *ledger = TNK__HANDLE(promise, PROMISE)
                             ? tnk__promise_value(promise, TNK__RESULT_LEDGER)
                             : NULL;

  return ledger != NULL && !ledger->closing ? ledger : NULL;
}

const tnk_ledger_entry_t *tnk_promise_entry(const tnk_promise_t *promise) {
  return TNK__HANDLE(promise, PROMISE)
             ? tnk__ledger_entry_value(
                   tnk__promise_value(promise, TNK__RESULT_ENTRY))
             : NULL;
}

size_t tnk_ledger_count(const tnk_ledger_t *ledger) {
  return TNK__HANDLE(ledger, LEDGER) ? ledger->n_entries : 0;
}

const tnk_ledger_entry_t *tnk_ledger_entry(const tnk_ledger_t *ledger,
                                           size_t index) {
  return index < tnk_ledger_count(ledger) ? &ledger->entries[index]->pub : NULL;
}

const tnk_ledger_entry_t *tnk_ledger_last(const tnk_ledger_t *ledger) {
  for (size_t i = tnk_ledger_count(ledger); i-- > 0;) {
    const tnk_ledger_entry_t *entry = &ledger->entries[i]->pub;
    if (entry->state_path != NULL && !entry->is_deleted)
      return entry;
  }
  return NULL;
}

void tnk_ledger_close(tnk_ledger_t *ledger, tnk_close_cb cb, void *user) {
  if (TNK__HANDLE(ledger, LEDGER) && !ledger->closing &&
      tnk__context_check_caller(ledger->session->context) == TNK_OK)
    tnk__ledger_close(ledger, cb, user);
}

/* ---- Saves ---- */

static int check_name(const char *name, char *why, size_t size) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789_-";
  const size_t n = name != NULL ? strlen(name) : 1;

  if (n == 0 || n > MAX_NAME ||
      (name != NULL && name[strspn(name, allowed)] != '\0')) {
    snprintf(why, size,
             "name is not of 1 to %d letters, digits, \"_\" and \"-\"",
             MAX_NAME);
    return TNK_EINVAL;
  }
  return TNK_OK;
}

static int check_save(const tnk_ledger_save_t *save, char *why, size_t size) {
  const size_t n = save->cursor != NULL ? strlen(save->cursor) : 0;

  if (n > MAX_CURSOR || tnk__utf8_valid((const uint8_t *)save->cursor, n) < n)
    snprintf(why, size, "cursor is not UTF-8 of at most %d bytes", MAX_CURSOR);
  else if (save->batch > INT64_MAX || save->epoch > INT64_MAX ||
           save->ttl_seconds > INT64_MAX)
    snprintf(why, size, "batch, epoch or ttl_seconds is too large");
  else if (save->is_final == TNK_YES && save->is_rolling == TNK_YES)
    snprintf(why, size, "a save is either final or rolling");
  else
    return check_name(save->name, why, size);
  return TNK_EINVAL;
}

tnk_promise_t *tnk_ledger_save(tnk_ledger_t *ledger, tnk_training_t *training,
                               const tnk_ledger_save_t *save) {
  static const char name[] = "ledger_save";
  tnk_ledger_save_t own = TNK_LEDGER_SAVE_INIT;
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE(ledger, LEDGER))
    return NULL;
  err = TNK__LOAD(tnk_ledger_save_t, &own, save, why, sizeof(why));
  if (err == TNK_OK)
    err = check_save(&own, why, sizeof(why));
  if (err == TNK_OK && !TNK__HANDLE(training, TRAINING)) {
    snprintf(why, sizeof(why), "there is no training client");
    err = TNK_EINVAL;
  }
  if (err == TNK_OK && !training->closing && !ledger->closing &&
      training->session != ledger->session) {
    snprintf(why, sizeof(why), "the model is of another service");
    err = TNK_EINVAL;
  }
  refusal = tnk__client_refuses(TNK__CLIENT(ledger), name, err, why);
  if (refusal == NULL)
    refusal = tnk__client_refuses(TNK__CLIENT(training), name, TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__ledger_save(ledger, training, &own);
}

int tnk_ledger_due(const tnk_ledger_t *ledger, const tnk_training_t *training) {
  return TNK__HANDLE(ledger, LEDGER) && !ledger->closing &&
         TNK__HANDLE(training, TRAINING) && !training->closing &&
         training->session == ledger->session &&
         tnk__ledger_due(ledger, training);
}

/* ---- Resuming ---- */

tnk_promise_t *tnk_ledger_resume(tnk_ledger_t *ledger,
                                 const tnk_ledger_resume_t *options) {
  tnk_ledger_resume_t own = TNK_LEDGER_RESUME_INIT;
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE(ledger, LEDGER))
    return NULL;
  err = TNK__LOAD(tnk_ledger_resume_t, &own, options, why, sizeof(why));
  refusal = tnk__client_refuses(TNK__CLIENT(ledger), "ledger_resume", err, why);
  return refusal != NULL
             ? refusal
             : tnk__ledger_resume(ledger, own.with_optimizer != TNK_NO);
}

const tnk_ledger_entry_t *tnk_ledger_resumed(const tnk_ledger_t *ledger) {
  return TNK__HANDLE(ledger, LEDGER) && !ledger->closing ? ledger->resumed
                                                         : NULL;
}
