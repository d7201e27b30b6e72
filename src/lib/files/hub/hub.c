/* SPDX-License-Identifier: MIT */
#include "lib/files/hub/hub.h"

#include "lib/base/alloc.h"

void tnk__hub_open(tnk__hub_t *hub, tnk__context_t *context, tnk__http_t *http,
                   const tnk__hub_config_t *config) {
  *hub = (tnk__hub_t){.context = context, .http = http, .config = config};
  tnk__list_init(&hub->jobs);
  tnk__list_init(&hub->files);
  tnk__list_init(&hub->downloads);
  tnk__list_init(&hub->tokenizers);
}

static void dispose(tnk__hub_job_t *job) {
  tnk__list_remove(&job->link);
  job->stop(job);
  tnk__free(&job->hub->context->alloc, job);
}

void tnk__hub_job_fail(tnk__hub_job_t *job, tnk__error_t *error) {
  tnk__promise_reject(job->promise, tnk__error_ref(error));
  dispose(job);
}

void tnk__hub_job_resolve(tnk__hub_job_t *job, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *, void *)) {
  tnk__promise_resolve(job->promise, kind, value, free_value);
  dispose(job);
}

void tnk__hub_close(tnk__hub_t *hub) {
  tnk__list_t *node;

  hub->closing = 1;
  while ((node = tnk__list_first(&hub->jobs)) != NULL)
    tnk__hub_job_fail(tnk__container_of(node, tnk__hub_job_t, link),
                      tnk__error_static(TNK_ECLOSED));
}

static void on_cancel(void *op) {
  tnk__hub_job_fail(op, tnk__error_static(TNK_ECANCELED));
}

tnk__hub_job_t *tnk__hub_job_new(tnk__hub_t *hub, size_t size,
                                 void (*stop)(tnk__hub_job_t *self),
                                 void (*explain)(const void *op,
                                                 tnk__text_t *out),
                                 tnk_promise_t **promise) {
  const tnk_allocator_t *alloc = &hub->context->alloc;
  tnk__hub_job_t *job = tnk__calloc(alloc, 1, size);

  if (job == NULL) {
    *promise =
        tnk__promise_rejected(hub->context, tnk__error_static(TNK_ENOMEM));
    return NULL;
  }
  *promise = tnk__promise_new(hub->context, NULL, NULL);
  if (tnk__promise_is_oom(*promise)) {
    tnk__free(alloc, job);
    return NULL;
  }
  tnk__promise_bind(*promise, on_cancel, explain, job);
  job->hub = hub;
  job->promise = *promise;
  job->stop = stop;
  tnk__list_append(&hub->jobs, &job->link);
  return job;
}
