/* SPDX-License-Identifier: MIT */
#include "lib/files/hub/hub.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/fetch/download.h"
#include "lib/files/hub/model_file.h"

/* A download from a URL to a file, with a promise. */
typedef struct {
  tnk__hub_job_t job;
  tnk__download_t download;
  tnk_progress_cb on_progress;
  void *progress_user;
  char *path;
} download_op_t;

static void stop(tnk__hub_job_t *job) {
  download_op_t *op = (download_op_t *)(void *)job;

  tnk__download_cancel(&op->download);
  tnk__free(&job->hub->context->alloc, op->path);
}

static void explain(const void *arg, tnk__text_t *out) {
  const download_op_t *op = arg;

  tnk__text_printf(out, "download: ");
  tnk__download_explain(&op->download, out);
}

static void free_path(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

static void on_done(tnk__download_t *download, tnk__error_t *error) {
  download_op_t *op = tnk__container_of(download, download_op_t, download);
  char *path = op->path;

  if (error != NULL) {
    tnk__hub_job_fail(&op->job, error);
    return;
  }
  op->path = NULL;
  tnk__hub_job_resolve(&op->job, TNK__RESULT_PATH, path, free_path);
}

static void on_progress(tnk__download_t *download) {
  const download_op_t *op =
      tnk__container_of(download, download_op_t, download);

  tnk__callout_begin();
  op->on_progress(op->path, download->fetch.offset,
                  download->n_total == UINT64_MAX ? 0 : download->n_total,
                  op->progress_user);
  tnk__callout_end();
}

static tnk__error_t *start_error(const tnk__hub_t *hub, int err) {
  if (err == TNK_EINVAL)
    return tnk__error_new(&hub->context->alloc, err,
                          "download: the URL or the token cannot be sent");
  return tnk__error_static(err);
}

/* Two downloads to one path would overwrite each other, so the second one is
 * refused. */
static int is_under_way(const tnk__hub_t *hub, const char *path) {
  TNK__LIST_FOREACH (node, &hub->jobs) {
    const tnk__hub_job_t *job = tnk__container_of(node, tnk__hub_job_t, link);
    if (job->stop == stop &&
        strcmp(tnk__container_of_const(job, download_op_t, job)->path, path) ==
            0)
      return 1;
  }
  return 0;
}

tnk_promise_t *tnk__hub_download(tnk__hub_t *hub, const char *url,
                                 const char *path, const char *sum,
                                 const tnk_download_options_t *options) {
  const tnk_hub_options_t *o = &hub->config->options;
  const tnk__download_request_t request = {
      .url = url,
      .path = path,
      .name = "download",
      .token = options->token,
      .sum = sum,
      .n_bytes = options->n_bytes > 0 ? options->n_bytes : UINT64_MAX,
      .max_bytes = options->max_bytes > 0 ? options->max_bytes : UINT64_MAX,
      .silence_ms = o->silence_timeout_ms,
      .max_retries = o->max_retries,
      .lane = TNK__LANE_CONTROL};
  tnk_promise_t *promise;
  tnk__error_t *error;
  download_op_t *op;
  int err;

  if (is_under_way(hub, path))
    return tnk__promise_rejected(
        hub->context, tnk__error_new(&hub->context->alloc, TNK_ECONFLICT,
                                     "download: another one to %.256s is under "
                                     "way",
                                     path));
  op = (download_op_t *)(void *)tnk__hub_job_new(hub, sizeof(*op), stop,
                                                 explain, &promise);
  if (op == NULL)
    return promise;
  tnk__promise_enter(promise, "download", NULL);
  tnk__download_init(&op->download, hub->context, hub->http);
  op->download.fetch.observed = promise;
  op->download.done = on_done;
  op->on_progress = options->on_progress;
  op->progress_user = options->progress_user;
  if (options->on_progress != NULL)
    op->download.on_progress = on_progress;
  op->path = tnk__strdup(&hub->context->alloc, path);
  err = op->path == NULL ? TNK_ENOMEM
                         : tnk__download_start(&op->download, &request);
  if (err != TNK_OK) {
    error = start_error(hub, err);
    tnk__hub_job_fail(&op->job, error);
    tnk__error_unref(error);
  }
  return promise;
}

/* ---- Files of models ---- */

typedef struct {
  tnk__hub_job_t job;
  tnk__wanted_t wanted;
} file_op_t;

static void stop_file(tnk__hub_job_t *job) {
  tnk__wanted_cancel(&((file_op_t *)(void *)job)->wanted);
}

static void explain_file(const void *arg, tnk__text_t *out) {
  tnk__wanted_explain(&((const file_op_t *)arg)->wanted, out);
}

static void on_file(tnk__wanted_t *wanted,
                    const tnk__model_file_result_t *result) {
  file_op_t *op = tnk__container_of(wanted, file_op_t, wanted);
  char *path;

  if (result->error != NULL) {
    tnk__hub_job_fail(&op->job, result->error);
    return;
  }
  path = tnk__strdup(&op->job.hub->context->alloc, result->path);
  if (path == NULL)
    tnk__hub_job_fail(&op->job, tnk__error_static(TNK_ENOMEM));
  else
    tnk__hub_job_resolve(&op->job, TNK__RESULT_PATH, path, free_path);
}

tnk_promise_t *tnk__hub_file(tnk__hub_t *hub, const char *model,
                             const char *revision, const char *file) {
  tnk_promise_t *promise;
  file_op_t *op = (file_op_t *)(void *)tnk__hub_job_new(
      hub, sizeof(*op), stop_file, explain_file, &promise);

  if (op == NULL)
    return promise;
  tnk__promise_enter(promise, "file", NULL);
  tnk__wanted_init(&op->wanted, on_file);
  if (tnk__wanted_start(&op->wanted, hub, model, revision, file) != TNK_OK)
    tnk__hub_job_fail(&op->job, tnk__error_static(TNK_ENOMEM));
  return promise;
}
