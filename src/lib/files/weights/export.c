/* SPDX-License-Identifier: MIT */
/*
 * Exports a checkpoint of kind training, which has no files to download. It is
 * loaded into a separate model, which saves its weights for other programs for
 * one hour. Those files are downloaded.
 *
 *   restore --> note (pool) --> save --> over, or note once more and over
 *
 * The path of the export is determined and noted before the save, so that a
 * restarted download finds it. shared.c removes the export.
 */
#include "lib/files/weights/job.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/client/service/service.h"
#include "lib/client/train/operations.h"
#include "lib/store/ask.h"
#include "lib/store/rest.h"

static void save(tnk__weights_job_t *job);

/* Set the address whose files are requested. Returns 0 if the job is over. */
static int set_address(tnk__weights_job_t *job, const char *address) {
  char why[256];

  if (tnk__ask_check_path(address, TNK_PATH_EXTERNAL_WEIGHTS, why,
                          sizeof(why)) != TNK_OK) {
    tnk__weights_job_fail_with(
        job, TNK_EPROTO, "the export has a name that cannot be used: %s", why);
    return 0;
  }
  job->address = tnk__arena_strdup(&job->arena, address);
  if (job->address != NULL &&
      tnk__weights_sweep_prepare(&job->sweep, job->weights, job->address) ==
          TNK_OK)
    return 1;
  tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
  return 0;
}

static void run_note(tnk__weights_job_t *job) {
  tnk__buf_t line;

  /* A new export has different bytes. */
  job->cause = tnk__place_clear(job->place, job->source);
  if (job->cause != 0)
    return;
  tnk__buf_init(&line, job->place->alloc, TNK__MAX_URL);
  tnk__journal_put_export(&line, job->address);
  job->cause = tnk__place_note(job->place, &line);
  tnk__buf_deinit(&line);
}

static void on_noted(tnk__weights_job_t *job) {
  if (job->cause != 0)
    tnk__weights_job_fail_place(job, job->cause, job->directory);
  else if (job->is_saved)
    job->sign(job);
  else
    save(job);
}

/* If the server cannot save weights for other programs, no export exists. */
static void on_not_saved(tnk__weights_job_t *job, tnk__error_t *error) {
  if (error->pub.code == TNK_EUNSUPPORTED) {
    job->sweeps = 0;
    tnk__weights_export_stop(job);
    if (tnk__weights_job_try_archive(job, error))
      return;
  }
  tnk__weights_job_fail_about(job, error);
}

static void on_saved(tnk__weights_job_t *job, tnk_promise_t *promise,
                     int status) {
  const tnk_saved_t *saved = tnk__promise_value(promise, TNK__RESULT_SAVED);

  if (status != TNK_OK) {
    on_not_saved(job, tnk__promise_error(promise));
    return;
  }
  job->is_saved = 1;
  tnk__weights_export_stop(job);
  if (strcmp(saved->path, job->address) == 0)
    job->sign(job);
  else if (set_address(job, saved->path))
    tnk__weights_job_work(job, run_note, on_noted);
}

static void save(tnk__weights_job_t *job) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  tnk_training_t *training =
      tnk__promise_value(job->restored, TNK__RESULT_TRAINING);

  options.ttl_seconds = TNK__WEIGHTS_EXPORT_S;
  job->sweeps = 1;
  tnk__weights_job_ask(job,
                       tnk__save_start(training, TNK__SAVE_EXTERNAL,
                                       TNK__WEIGHTS_NAME, &options),
                       on_saved);
}

static void on_known(tnk__weights_job_t *job, tnk_promise_t *promise,
                     int status) {
  tnk__weights_job_fail_about(job, status == TNK_ENOTFOUND
                                       ? tnk__promise_error(promise)
                                       : job->refused);
}

/* For an unknown path the service reports a general failure of the operation. A
 * separate request checks whether the path exists. */
static void ask_why(tnk__weights_job_t *job, tnk__error_t *error) {
  const tnk__ask_t ask = {.kind = TNK__ASK_WEIGHTS_INFO, .path = job->source};

  tnk__error_unref(job->refused);
  job->refused = tnk__error_ref(error);
  tnk__weights_job_ask(job, tnk__rest_ask(job->weights->session, &ask, NULL),
                       on_known);
}

static void on_restored(tnk__weights_job_t *job, tnk_promise_t *promise,
                        int status) {
  const tnk_training_t *training;
  char address[1024];
  int n;

  if (status == TNK_EFAILED) {
    ask_why(job, tnk__promise_error(promise));
    return;
  }
  if (status != TNK_OK) {
    tnk__weights_job_fail_about(job, tnk__promise_error(promise));
    return;
  }
  job->restored = tnk_promise_ref(promise);
  training = tnk__promise_value(promise, TNK__RESULT_TRAINING);
  n = snprintf(address, sizeof(address),
               "tinker://%s/external_weights/" TNK__WEIGHTS_NAME,
               training->info.model_id);
  if (n < 0 || (size_t)n >= sizeof(address))
    address[0] = '\0';
  if (set_address(job, address))
    tnk__weights_job_work(job, run_note, on_noted);
}

void tnk__weights_export(tnk__weights_job_t *job) {
  static const tnk_pair_t metadata = {"created_by", "tnk download"};
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  job->state = TNK__WEIGHTS_EXPORTING;
  options.path = job->source;
  options.user_metadata = &metadata;
  options.n_user_metadata = 1;
  tnk__weights_job_ask(job, tnk__restore(job->weights->session, &options),
                       on_restored);
}

void tnk__weights_export_stop(tnk__weights_job_t *job) {
  tnk_training_t *training;

  if (job->restored == NULL)
    return;
  training = tnk__promise_value(job->restored, TNK__RESULT_TRAINING);
  tnk__training_close(training, NULL, NULL);
  tnk_promise_unref(job->restored);
  job->restored = NULL;
}
