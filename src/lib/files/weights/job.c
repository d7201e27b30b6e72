/* SPDX-License-Identifier: MIT */
/*
 * Common parts of all steps: the end of a job, and waiting for the pool and for
 * promises. end() leads to over from every state. Nothing waits for the pool or
 * a promise after that. forget() frees the job when the last of them is done.
 */
#include "lib/files/weights/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"

static const char *const name = TNK__WEIGHTS_NAME;

static tnk__context_t *context_of(const tnk__weights_job_t *job) {
  return job->weights->session->context;
}

/* ---- The end ---- */

static void free_files(tnk__weights_job_t *job) {
  const tnk_allocator_t *alloc = &context_of(job)->alloc;

  for (size_t i = 0; job->files != NULL && i < job->n_files; i++) {
    tnk__free_secret(alloc, job->files[i].url);
    tnk__free(alloc, job->files[i].validator);
  }
}

/* Free the job if it is over and no longer used. */
static void forget(tnk__weights_job_t *job) {
  const tnk_allocator_t *alloc = &context_of(job)->alloc;

  if (job->promise != NULL || job->is_busy || job->asked != NULL ||
      job->is_answered)
    return;
  free_files(job);
  tnk__place_unref(job->place);
  tnk__free(alloc, job->found.text);
  tnk__free(alloc, job->found.address);
  tnk__free(alloc, job->result);
  tnk__weights_sweep_free(job->sweep);
  if (job->unpack != NULL)
    job->forget_unpack(job);
  tnk__error_unref(job->refused);
  tnk__arena_deinit(&job->arena);
  tnk__wipe(job->identity, sizeof(job->identity));
  tnk__free(alloc, job);
}

/* Mark the job as over and stop its activity. */
static tnk_promise_t *end(tnk__weights_job_t *job) {
  tnk_promise_t *promise = job->promise;

  job->promise = NULL;
  tnk__list_remove(&job->link);
  tnk__timer_stop(&job->deadline);
  tnk__timer_stop(&job->pause);
  job->stop(job);
  if (job->asked != NULL && !job->is_late)
    tnk_promise_cancel(job->asked);
  return promise;
}

void tnk__weights_job_fail(tnk__weights_job_t *job, tnk__error_t *error) {
  tnk__promise_reject(end(job), error);
  forget(job);
}

void tnk__weights_job_fail_with(tnk__weights_job_t *job, int code,
                                const char *format, ...) {
  char text[TNK__MAX_ERROR_TEXT];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  tnk__weights_job_fail(
      job, tnk__error_new(&context_of(job)->alloc, code, "%s: %s", name, text));
}

void tnk__weights_job_fail_about(tnk__weights_job_t *job, tnk__error_t *error) {
  const tnk_error_t *from = &error->pub;
  tnk__error_t *named;

  /* A static error gets the promise's name. */
  if (error->refs == 0) {
    tnk__weights_job_fail(job, error);
    return;
  }
  named = tnk__error_new(&context_of(job)->alloc, from->code, "%s: %s", name,
                         from->text);
  if (named->refs > 0) {
    named->pub.cause = from->cause;
    named->pub.http_status = from->http_status;
    named->pub.n_attempts = from->n_attempts;
    named->pub.retry_after_ms = from->retry_after_ms;
  }
  tnk__weights_job_fail(job, named);
}

void tnk__weights_job_fail_place(tnk__weights_job_t *job, int cause,
                                 const char *why) {
  const char *what = uv_strerror(cause);
  tnk__error_t *error;

  if (cause == UV_ENOMEM) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
    return;
  }
  if (cause == UV_EEXIST && job->options.force != TNK_YES)
    what = "it exists and is not empty; only the option force replaces it";
  error = tnk__error_new(&context_of(job)->alloc, TNK_EFILE, "%s: %.512s: %s",
                         name, why, what);
  if (error->refs > 0)
    error->pub.cause = cause;
  tnk__weights_job_fail(job, error);
}

struct tnk__weights_result {
  tnk_weights_t pub;
  char directory[];
};

static void free_result(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

const tnk_weights_t *tnk__weights_value(const void *value) {
  return value;
}

int tnk__weights_job_will_succeed(tnk__weights_job_t *job) {
  const size_t n = strlen(job->directory) + 1;
  struct tnk__weights_result *result =
      tnk__calloc(&context_of(job)->alloc, 1, sizeof(*result) + n);

  if (result == NULL)
    return TNK_ENOMEM;
  memcpy(result->directory, job->directory, n);
  result->pub.directory = result->directory;
  job->result = result;
  return TNK_OK;
}

void tnk__weights_job_succeed(tnk__weights_job_t *job) {
  struct tnk__weights_result *result = job->result;

  job->result = NULL;
  result->pub.n_files = job->n_given;
  result->pub.n_bytes = job->n_bytes;
  result->pub.n_fetched = job->n_fetched;
  tnk__promise_resolve(end(job), TNK__RESULT_WEIGHTS, result, free_result);
  forget(job);
}

int tnk__weights_job_try_archive(tnk__weights_job_t *job, tnk__error_t *why) {
  /* An archive is never encrypted. */
  if (job->is_archive || job->has_identity || job->options.archive == TNK_NO)
    return 0;
  job->is_archive = 1;
  job->is_training = 0;
  job->address = job->source;
  job->refused = tnk__error_ref(why);
  job->sign(job);
  return 1;
}

/* ---- Waiting ---- */

static void on_run(tnk__work_t *work) {
  tnk__weights_job_t *job = tnk__container_of(work, tnk__weights_job_t, work);

  job->run(job);
}

static void on_ran(tnk__work_t *work) {
  tnk__weights_job_t *job = tnk__container_of(work, tnk__weights_job_t, work);

  job->is_busy = 0;
  if (job->promise != NULL)
    job->ran(job);
  else
    forget(job);
}

void tnk__weights_job_work(tnk__weights_job_t *job,
                           void (*run)(tnk__weights_job_t *self),
                           void (*ran)(tnk__weights_job_t *self)) {
  job->run = run;
  job->ran = ran;
  job->is_busy = 1;
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(context_of(job), &job->work, on_run, on_ran);
}

static void on_answer(tnk_promise_t *promise, int status, void *user) {
  tnk__weights_job_t *job = user;

  job->asked = NULL;
  job->is_answered = 1;
  if (job->promise != NULL)
    job->answered(job, promise, status);
  else if (job->is_late)
    job->late(job);
  job->is_answered = 0;
  tnk_promise_unref(promise);
  forget(job);
}

void tnk__weights_job_ask(tnk__weights_job_t *job, tnk_promise_t *promise,
                          void (*answered)(tnk__weights_job_t *self,
                                           tnk_promise_t *promise,
                                           int status)) {
  job->asked = promise;
  job->answered = answered;
  tnk__promise_watch(tnk_promise_ref(promise), &job->then, on_answer, job);
}
