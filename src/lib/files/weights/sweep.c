/* SPDX-License-Identifier: MIT */
#include "lib/files/weights/job.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/store/ask.h"

struct tnk__weights_sweep {
  tnk__list_t link; /* in weights->sweeps, while it waits for an answer */
  tnk__weights_t *weights;
  tnk__call_t call;
  char *path;
  char *target;
};

static tnk__weights_sweep_t *new_sweep(tnk__weights_t *weights,
                                       const char *path) {
  const tnk__ask_t ask = {.kind = TNK__ASK_DELETE, .path = path};
  const tnk_allocator_t *alloc = &weights->session->context->alloc;
  tnk__weights_sweep_t *sweep = tnk__calloc(alloc, 1, sizeof(*sweep));
  tnk__buf_t target;

  if (sweep == NULL)
    return NULL;
  sweep->weights = weights;
  tnk__list_init(&sweep->link);
  tnk__buf_init(&target, alloc, TNK__MAX_URL);
  tnk__ask_write_target(&target, &ask);
  if (tnk__buf_cstr(&target) != NULL)
    sweep->target = tnk__strdup(alloc, tnk__buf_cstr(&target));
  tnk__buf_deinit(&target);
  sweep->path = tnk__strdup(alloc, path);
  if (sweep->target != NULL && sweep->path != NULL)
    return sweep;
  tnk__weights_sweep_free(sweep);
  return NULL;
}

void tnk__weights_sweep_free(tnk__weights_sweep_t *sweep) {
  const tnk_allocator_t *alloc;

  if (sweep == NULL)
    return;
  alloc = &sweep->weights->session->context->alloc;
  tnk__list_remove(&sweep->link);
  tnk__free(alloc, sweep->path);
  tnk__free(alloc, sweep->target);
  tnk__free(alloc, sweep);
}

int tnk__weights_sweep_prepare(tnk__weights_sweep_t **sweep,
                               tnk__weights_t *weights, const char *path) {
  tnk__weights_sweep_free(*sweep);
  *sweep = new_sweep(weights, path);
  return *sweep != NULL ? TNK_OK : TNK_ENOMEM;
}

static void on_swept(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__weights_sweep_t *sweep =
      tnk__container_of(call, tnk__weights_sweep_t, call);
  tnk__weights_t *weights = sweep->weights;

  /* A missing export need not be removed. */
  if (reply->error != NULL && reply->status != 404)
    tnk__log(&weights->session->context->logger, TNK_LOG_WARN, "weights",
             "%.256s could not be removed, the service does that within an "
             "hour: %s",
             sweep->path, reply->error->pub.text);
  tnk__weights_sweep_free(sweep);
  weights->swept(weights);
}

void tnk__weights_sweep_start(tnk__weights_sweep_t *sweep) {
  tnk__weights_t *weights = sweep->weights;

  tnk__list_append(&weights->sweeps, &sweep->link);
  tnk__call_init(&sweep->call, &weights->session->endpoint,
                 TNK__ROUTE_REST_DELETE, "delete_checkpoint");
  sweep->call.owner.method_name =
      "RestClient.delete_checkpoint_from_tinker_path";
  sweep->call.request.target = sweep->target;
  tnk__call_start(&sweep->call, on_swept);
}

void tnk__weights_sweeps_stop(tnk__weights_t *weights) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&weights->sweeps)) != NULL) {
    tnk__weights_sweep_t *sweep =
        tnk__container_of(node, tnk__weights_sweep_t, link);
    tnk__call_cancel(&sweep->call);
    tnk__weights_sweep_free(sweep);
  }
}
