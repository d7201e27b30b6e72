#include "lib/base/alloc.h"
#include "tools/local/train/model.h"

/*
 * The order of a model's training requests. An accepted request is held if its
 * number is higher than the next one; otherwise it is queued. The first of the
 * queue is taken to run. The meaning of a number depends on the server mode;
 * see server.h.
 */

#define OP(node) tnk__container_of(node, local_op_t, link)

static void hold(local_model_t *model, local_op_t *op) {
  tnk__list_t *before = model->held.prev;

  /* From the end, because requests after a gap usually come in order. */
  while (before != &model->held && OP(before)->seq > op->seq)
    before = before->prev;
  tnk__list_prepend(before, &op->link);
  model->n_held++;
}

/* Queue the requests that the accepted number has released. */
static void release(local_model_t *model) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&model->held)) != NULL &&
         OP(node)->seq == model->next_seq) {
    tnk__list_remove(node);
    model->n_held--;
    model->next_seq++;
    tnk__list_append(&model->queue, node);
  }
}

void local_queue_add(local_model_t *model, local_op_t *op) {
  op->model = model;
  if (op->seq < 0 || model->server->options.sequence != LOCAL_BUFFERED) {
    tnk__list_append(&model->queue, &op->link);
  } else if (op->seq > model->next_seq) {
    hold(model, op);
  } else {
    /* A refused number that comes again is lower than the next one. */
    tnk__list_append(&model->queue, &op->link);
    if (op->seq == model->next_seq) {
      model->next_seq++;
      release(model);
    }
  }
}

void local_queue_append(local_model_t *model, local_op_t *op) {
  op->model = model;
  tnk__list_append(&model->queue, &op->link);
}

local_op_t *local_queue_take(local_model_t *model) {
  tnk__list_t *node = tnk__list_pop(&model->queue);

  return node != NULL ? OP(node) : NULL;
}

void local_queue_skip(local_model_t *model, int64_t seq) {
  if (model->server->options.sequence != LOCAL_BUFFERED ||
      seq != model->next_seq ||
      local_seqs_add(&model->seqs, seq, 0, "") != TNK_OK)
    return;
  model->next_seq++;
  release(model);
}

void local_queue_fail(local_model_t *model, const char *why) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&model->queue)) != NULL ||
         (node = tnk__list_pop(&model->held)) != NULL) {
    local_future_fail(OP(node)->future, 410, "user", "%s", why);
    OP(node)->future = NULL;
    local_op_free(OP(node), model->server);
  }
  model->n_held = 0;
}

void local_queue_free(local_model_t *model) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&model->queue)) != NULL ||
         (node = tnk__list_pop(&model->held)) != NULL)
    local_op_free(OP(node), model->server);
  if (model->running != NULL)
    local_op_free(model->running, model->server);
  model->running = NULL;
  model->n_held = 0;
}
