/* SPDX-License-Identifier: MIT */
/*
 *   OPENING --locked--> pause --> OPENING
 *   OPENING --all is there--> over
 *   OPENING --> [EXPORTING -->] ASKING --> MEASURING --> LOADING -->
 *     [UNSEALING --> or UNPACKING -->] COMMITTING --> over
 *   EXPORTING, ASKING --no such call--> ASKING for an archive
 *
 * Any failure, a cancel and the end of the service also lead to over.
 */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/files/weights/job.h"
#include "lib/store/rest.h"

/* A canceled download may still hold the lock for a moment. */
enum { LOCKED_TRIES = 10, LOCKED_MS = 200 };
enum { MAX_ARENA = 64 };

static tnk__context_t *context_of(const tnk__weights_job_t *job) {
  return job->weights->session->context;
}

/* ---- The end ---- */

/* Returns whether the export is being saved or soon will be. */
static int is_saving(const tnk__weights_job_t *job) {
  return job->asked != NULL && job->sweeps && !job->is_saved;
}

static void sweep(tnk__weights_job_t *job) {
  tnk__weights_sweep_t *own = job->sweep;

  job->sweep = NULL;
  if (own != NULL && job->sweeps)
    tnk__weights_sweep_start(own);
  else
    tnk__weights_sweep_free(own);
}

/* The export at the service is removed. If it is still being saved, it is
 * removed afterwards. */
static void stop(tnk__weights_job_t *job) {
  tnk__weights_files_stop(job);
  if (is_saving(job)) {
    job->is_late = 1;
    job->weights->n_late++;
    return;
  }
  tnk__weights_export_stop(job);
  sweep(job);
}

/* The pending save of a job that is over has ended. */
static void end_late(tnk__weights_job_t *job) {
  tnk__weights_t *weights = job->weights;

  job->is_late = 0;
  tnk__weights_export_stop(job);
  sweep(job);
  weights->n_late--;
  weights->swept(weights);
}

/* ---- The place ---- */

static void run_commit(tnk__weights_job_t *job) {
  const tnk__journal_ready_t ready = {.n_files = job->n_given,
                                      .n_bytes = job->n_bytes};

  job->cause = tnk__place_commit(job->place, job->options.force == TNK_YES,
                                 &ready, &job->left);
}

static void on_committed(tnk__weights_job_t *job) {
  if (job->cause != 0) {
    tnk__weights_job_fail_place(job, job->cause, job->directory);
    return;
  }
  if (job->left)
    tnk__log(&context_of(job)->logger, TNK_LOG_WARN, "weights",
             "%.512s.incomplete could not be removed", job->directory);
  tnk__weights_job_succeed(job);
}

static void commit(tnk__weights_job_t *job) {
  job->state = TNK__WEIGHTS_COMMITTING;
  tnk__timer_stop(&job->deadline);
  tnk__weights_job_work(job, run_commit, on_committed);
}

static void run_measure(tnk__weights_job_t *job) {
  job->cause = tnk__weights_files_measure(job);
}

static void on_measured(tnk__weights_job_t *job) {
  if (job->cause != 0) {
    tnk__weights_job_fail_place(job, job->cause, job->directory);
    return;
  }
  for (size_t i = 0; i < job->n_files; i++)
    job->n_bytes += job->files[i].n_bytes;
  job->state = TNK__WEIGHTS_LOADING;
  tnk__weights_files_load(job);
}

/* Returns whether an answer may mean that the server does not support the call.
 */
static int may_lack(const tnk__error_t *error) {
  const int status = error->pub.http_status;

  return status == 404 || status == 405 || status == 501;
}

static void on_refused(tnk__weights_job_t *job, tnk__error_t *error) {
  const int is_missing = may_lack(error);

  if (is_missing && job->state == TNK__WEIGHTS_ASKING &&
      tnk__weights_job_try_archive(job, error))
    return;
  /* Both calls are missing, so the first error is reported. */
  if (is_missing && job->refused != NULL)
    error = job->refused;
  tnk__weights_job_fail_about(job, error);
}

static void on_urls(tnk__weights_job_t *job, tnk_promise_t *promise,
                    int status) {
  const tnk_page_t *page = tnk__promise_value(promise, TNK__RESULT_PAGE);

  if (status == TNK_ENOTFOUND && job->is_found) {
    /* The export was removed in the meantime. */
    job->is_found = job->is_saved = job->sweeps = 0;
    tnk__weights_export(job);
  } else if (status != TNK_OK) {
    on_refused(job, tnk__promise_error(promise));
  } else if (!tnk__weights_files_take(job, tnk_page_external_files(page, 0))) {
    return;
  } else if (job->state == TNK__WEIGHTS_LOADING) {
    tnk__weights_files_load(job);
  } else {
    job->state = TNK__WEIGHTS_MEASURING;
    tnk__weights_job_work(job, run_measure, on_measured);
  }
}

/* Extend the lifetime of the export by an hour. The next request shows whether
 * it still exists. */
static void keep_export(tnk__weights_job_t *job) {
  const tnk__ask_t ask = {.kind = TNK__ASK_SET_TTL,
                          .path = job->address,
                          .ttl_seconds = TNK__WEIGHTS_EXPORT_S};

  tnk_then(tnk__rest_ask(job->weights->session, &ask, NULL), NULL, NULL);
}

static void sign(tnk__weights_job_t *job) {
  const tnk__ask_t ask = {.kind = job->is_archive ? TNK__ASK_ARCHIVE
                                                  : TNK__ASK_EXTERNAL_FILES,
                          .path = job->address};

  if (job->state != TNK__WEIGHTS_LOADING)
    job->state = TNK__WEIGHTS_ASKING;
  if (job->is_training && (job->is_found || job->files != NULL))
    keep_export(job);
  tnk__weights_job_ask(job, tnk__rest_ask(job->weights->session, &ask, NULL),
                       on_urls);
}

/* ---- Opening ---- */

static void run_open(tnk__weights_job_t *job) {
  tnk__free(job->place->alloc, job->found.text);
  tnk__free(job->place->alloc, job->found.address);
  job->cause = tnk__place_open(job->place, job->source,
                               job->options.force == TNK_YES, &job->found);
}

static void on_opened(tnk__weights_job_t *job);

static void on_try_again(tnk__timer_t *timer) {
  tnk__weights_job_work(tnk__container_of(timer, tnk__weights_job_t, pause),
                        run_open, on_opened);
}

/* Use the export of an earlier download. Returns 0 without memory. */
static int take_export(tnk__weights_job_t *job) {
  char why[256];

  job->address = job->source;
  if (!job->is_training || job->found.address == NULL ||
      tnk__ask_check_path(job->found.address, TNK_PATH_EXTERNAL_WEIGHTS, why,
                          sizeof(why)) != TNK_OK)
    return 1;
  job->address = tnk__arena_strdup(&job->arena, job->found.address);
  if (job->address == NULL ||
      tnk__weights_sweep_prepare(&job->sweep, job->weights, job->address) !=
          TNK_OK)
    return 0;
  job->is_found = job->is_saved = job->sweeps = 1;
  return 1;
}

static void on_opened(tnk__weights_job_t *job) {
  if (job->cause == UV_EBUSY && ++job->n_tries < LOCKED_TRIES) {
    tnk__timer_start(context_of(job), &job->pause, LOCKED_MS, on_try_again);
  } else if (job->cause == UV_EBUSY) {
    tnk__weights_job_fail_with(job, TNK_ECONFLICT,
                               "another one to %.512s is under way",
                               job->directory);
  } else if (job->cause != 0) {
    tnk__weights_job_fail_place(job, job->cause,
                                job->found.why != NULL ? job->found.why
                                                       : job->directory);
  } else if (!take_export(job)) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
  } else if (job->found.is_done) {
    job->n_given = (size_t)job->found.ready.n_files;
    job->n_bytes = job->found.ready.n_bytes;
    tnk__weights_job_succeed(job);
  } else if (job->is_training && !job->is_found) {
    tnk__weights_export(job);
  } else {
    sign(job);
  }
}

/* ---- Beginning ---- */

static void on_deadline(tnk__timer_t *timer) {
  tnk__weights_job_t *job =
      tnk__container_of(timer, tnk__weights_job_t, deadline);

  tnk__weights_job_fail_with(job, TNK_ETIMEDOUT, "%s",
                             "it takes longer than timeout_ms allows");
}

static void on_cancel(void *op) {
  tnk__weights_job_t *job = op;

  if (job->state != TNK__WEIGHTS_COMMITTING)
    tnk__weights_job_fail(job, tnk__error_static(TNK_ECANCELED));
}

static const char *is_busy_with(const tnk__weights_job_t *job) {
  if (job->state == TNK__WEIGHTS_COMMITTING)
    return "the directory is being renamed";
  if (job->state == TNK__WEIGHTS_UNPACKING)
    return "the archive is being unpacked";
  return job->state == TNK__WEIGHTS_UNSEALING
             ? "files are being decrypted"
             : "the files on the disk are being checked";
}

static void explain(const void *op, tnk__text_t *out) {
  const tnk__weights_job_t *job = op;

  tnk__text_printf(out, TNK__WEIGHTS_NAME ": ");
  if (job->is_busy)
    tnk__text_printf(out, "%s", is_busy_with(job));
  else if (tnk__timer_is_active(&job->pause))
    tnk__text_printf(out, "waits for another one to this directory");
  else if (job->state == TNK__WEIGHTS_LOADING)
    tnk__weights_files_explain(job, out);
  else if (job->asked != NULL)
    tnk__promise_explain(job->asked, out);
  else
    tnk__text_printf(out, "is about to continue");
}

static int keep(tnk__weights_job_t *job, const char *path,
                const char *directory) {
  tnk__context_t *context = context_of(job);

  tnk__arena_init(&job->arena, &context->alloc, MAX_ARENA * TNK__MIB);
  job->source = tnk__arena_strdup(&job->arena, path);
  job->directory = tnk__arena_strdup(&job->arena, directory);
  if (job->source == NULL || job->directory == NULL)
    return TNK_ENOMEM;
  /* Allocate now: nothing may fail after the directory has its name. */
  if (tnk__weights_job_will_succeed(job) != TNK_OK)
    return TNK_ENOMEM;
  job->place = tnk__place_new(&context->alloc, job->directory);
  return job->place != NULL ? TNK_OK : TNK_ENOMEM;
}

static int is_training(const char *path) {
  tnk_path_t parts = TNK_PATH_INIT;

  return tnk_path_parse(&parts, path) == TNK_OK &&
         parts.kind == TNK_PATH_WEIGHTS;
}

static tnk__weights_job_t *new_job(tnk__weights_t *weights,
                                   tnk_promise_t **promise) {
  tnk__context_t *context = weights->session->context;
  tnk__weights_job_t *job = tnk__calloc(&context->alloc, 1, sizeof(*job));

  if (job == NULL) {
    *promise = tnk__promise_rejected(context, tnk__error_static(TNK_ENOMEM));
    return NULL;
  }
  *promise = tnk__promise_new(context, on_cancel, job);
  if (tnk__promise_is_oom(*promise)) {
    tnk__free(&context->alloc, job);
    return NULL;
  }
  tnk__promise_bind(*promise, on_cancel, explain, job);
  tnk__promise_enter(*promise, TNK__WEIGHTS_NAME, NULL);
  job->stop = stop;
  job->late = end_late;
  job->sign = sign;
  job->commit = commit;
  job->weights = weights;
  job->promise = *promise;
  tnk__list_append(&weights->jobs, &job->link);
  return job;
}

tnk_promise_t *tnk__weights_job_start(tnk__weights_t *weights, const char *path,
                                      const char *directory,
                                      const tnk_weights_options_t *options,
                                      const uint8_t *identity) {
  tnk_promise_t *promise;
  tnk__weights_job_t *job = new_job(weights, &promise);

  if (job == NULL)
    return promise;
  job->options = *options;
  job->options.identity = NULL;
  job->has_identity = identity != NULL;
  if (identity != NULL)
    memcpy(job->identity, identity, sizeof(job->identity));
  job->is_archive = options->archive == TNK_YES;
  job->is_training = !job->is_archive && is_training(path);
  if (keep(job, path, directory) != TNK_OK) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  if (options->timeout_ms > 0)
    tnk__timer_start(context_of(job), &job->deadline, options->timeout_ms,
                     on_deadline);
  tnk__weights_job_work(job, run_open, on_opened);
  return promise;
}
