/* SPDX-License-Identifier: MIT */
/* A loss of the caller on the service: create_custom_loss and its future, if
 * the server's flags offer such losses. */
#include "lib/client/train/operations.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/future/service_op.h"
#include "lib/wire/message/calls_training.h"

#define NAME "create_loss"
#define METHOD "ServiceClient.create_custom_loss"

typedef struct {
  tnk__service_op_t op;
  tnk_loss_options_t options;
} create_t;

static create_t *of_op(tnk__service_op_t *op) {
  return tnk__container_of(op, create_t, op);
}

/* ---- Result ---- */

static void free_loss(const tnk_allocator_t *alloc, void *value) {
  tnk_loss_t *loss = value;

  loss->arena.alloc = alloc; /* the service may be gone */
  tnk__arena_deinit(&loss->arena);
  tnk__free(alloc, loss);
}

static tnk_loss_argument_t *copy_arguments(tnk__arena_t *arena,
                                           const tnk_loss_options_t *options) {
  tnk_loss_argument_t *copy =
      tnk__arena_calloc(arena, options->n_arguments, sizeof(*copy));

  for (size_t i = 0; copy != NULL && i < options->n_arguments; i++) {
    copy[i] = options->arguments[i];
    copy[i].name = tnk__arena_strdup(arena, options->arguments[i].name);
    if (copy[i].name == NULL)
      return NULL;
  }
  return copy;
}

static int fill(tnk_loss_t *loss, const create_t *create,
                const tnk__reply_t *reply) {
  const tnk_loss_options_t *options = &create->options;

  loss->session_id =
      tnk__arena_strdup(&loss->arena, create->op.session->start.id);
  loss->arguments = copy_arguments(&loss->arena, options);
  loss->n_arguments = options->n_arguments;
  if (loss->session_id == NULL || loss->arguments == NULL)
    return TNK_ENOMEM;
  return tnk__create_loss_read(&loss->id, &loss->arena, reply->body,
                               reply->body_len);
}

static void on_created(tnk__job_t *job, const tnk__reply_t *reply) {
  tnk__service_op_t *op = tnk__container_of(job, tnk__service_op_t, job);
  const tnk_allocator_t *alloc = &op->session->context->alloc;
  tnk_loss_t *loss;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail_job(op, reply, NULL);
    return;
  }
  loss = tnk__calloc(alloc, 1, sizeof(*loss));
  if (loss == NULL) {
    tnk__service_op_fail_code(op, NAME, TNK_ENOMEM);
    return;
  }
  tnk__arena_init(&loss->arena, alloc, TNK__MIB);
  err = fill(loss, of_op(op), reply);
  if (err == TNK_OK) {
    tnk__service_op_resolve(op, TNK__RESULT_LOSS, loss, free_loss);
    return;
  }
  free_loss(alloc, loss);
  tnk__service_op_fail_code(op, NAME, err);
}

/* ---- Request ---- */

static void submit(tnk__service_op_t *op) {
  tnk__session_t *session = op->session;

  tnk__job_init(&op->job, session, TNK__ROUTE_CREATE_LOSS, NAME,
                "CreateCustomLoss");
  op->job.future.call.owner.method_name = METHOD;
  tnk__create_loss_write(&op->body, session->start.id,
                         session->start.progress.next_loss_seq++,
                         &of_op(op)->options);
  tnk__service_op_job(op, on_created);
}

/* A refusal must not create a session. */
static void look(tnk__service_op_t *op) {
  const tnk_error_t pub = {
      .code = TNK_EUNSUPPORTED,
      .message = "it runs no losses of its clients; "
                 "tnk_training_forward_backward_custom() computes one here"};
  tnk__error_t *error;

  if (op->session->start.flags.server_losses) {
    tnk__service_op_enter(op, TNK__SESSION_READY, submit);
    return;
  }
  error = tnk__error_from(&op->session->context->alloc, NAME, &pub);
  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

static int keep(create_t *create, const tnk_loss_options_t *options) {
  tnk__arena_t *arena = &create->op.arena;
  tnk_loss_options_t *own = &create->options;

  *own = *options;
  own->name = tnk__arena_strdup(arena, options->name);
  own->graph = tnk__arena_strdup(arena, options->graph);
  own->arguments = copy_arguments(arena, options);
  return own->name != NULL && own->graph != NULL && own->arguments != NULL;
}

tnk_promise_t *tnk__create_loss(tnk__session_t *session,
                                const tnk_loss_options_t *options) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op =
      tnk__service_op_new(session, NAME, sizeof(create_t), &promise);

  if (op == NULL)
    return promise;
  if (!keep(of_op(op), options))
    tnk__service_op_fail_code(op, NAME, TNK_ENOMEM);
  else
    tnk__service_op_enter(op, TNK__SESSION_CONFIGURED, look);
  return promise;
}
