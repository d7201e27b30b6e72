/* SPDX-License-Identifier: MIT */
#include "lib/client/train/operations.h"

#include "lib/base/alloc.h"
#include "lib/client/train/op.h"
#include "lib/wire/message/optim_wire.h"

typedef struct {
  tnk__op_t op;
  tnk_optim_t optim;
  char *json; /* JSON of the optimizer, owned */
  tnk_metrics_t *result;
} step_t;

static step_t *step_of(tnk__op_t *op) {
  return tnk__container_of(op, step_t, op);
}

static int write_body(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {

  return tnk__optim_write(out, op->training->info.model_id, (int64_t)number,
                          &step_of(op)->optim);
}

static int read_result(tnk__op_t *op, size_t index, const tnk__reply_t *reply,
                       tnk__text_t *why) {
  (void)index;
  (void)why;
  return tnk__optim_read(&step_of(op)->result,
                         &op->training->session->context->alloc, reply->body,
                         reply->body_len);
}

static void finish(tnk__op_t *op) {
  step_t *step = step_of(op);
  tnk_metrics_t *result = step->result;

  step->result = NULL;
  tnk__op_resolve(op, TNK__RESULT_METRICS, result, tnk__metrics_free);
}

static void destroy(tnk__op_t *op) {
  const tnk_allocator_t *alloc = &op->training->session->context->alloc;
  step_t *step = step_of(op);

  tnk__metrics_free(alloc, step->result);
  tnk__free(alloc, step->json);
  tnk__free(alloc, step);
}

static const tnk__op_class_t step_class = {
    .name = "optim_step",
    .method = "TrainingClient.optim_step",
    .type = "OptimStep",
    .route = TNK__ROUTE_OPTIM_STEP,
    .counts = TNK__COUNTS_STEP,
    .write = write_body,
    .read = read_result,
    .finish = finish,
    .destroy = destroy,
};

tnk_promise_t *tnk__step_start(tnk_training_t *training,
                               const tnk_optim_t *optim) {
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  tnk_promise_t *promise = NULL;
  step_t *step = tnk__op_new(sizeof(*step), &step_class, training, &promise);

  if (step == NULL)
    return promise;
  step->optim = *optim;
  if (optim->json != NULL)
    step->json = tnk__strdup(alloc, optim->json);
  step->optim.json = step->json;
  if (training->lacks_pass)
    tnk__op_refuse(&step->op, "a pass before it was refused");
  else
    tnk__op_enter(&step->op, optim->json == NULL || step->json != NULL);
  return promise;
}
