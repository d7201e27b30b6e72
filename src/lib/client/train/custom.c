/* SPDX-License-Identifier: MIT */
/*
 * First pass: forward only, with the examples' own weights or zeros. Then the
 * caller's function, which returns its result at once or later. Second pass:
 * the same chunks, weights = -gradient. The turn is kept until the second pass
 * has been submitted.
 *
 *   first pass --its results--> the function runs --returns--> second pass
 *   the function runs --tnk_custom_loss_defer()--> deferred: the operation and
 *     its context are held, because a thread may be writing there
 *   deferred --tnk_custom_loss_finish()--> second pass
 *   any --failure, cancel, close--> over, but a deferred one stays in memory
 */
#include "lib/client/train/operations.h"
#include "lib/client/train/pass.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/data/data.h"

typedef struct {
  tnk__pass_op_t pass;
  tnk_custom_loss_cb cb;
  void *user;
  tnk_custom_loss_t io;
  tnk_pass_t *first; /* owns the logprobs in io; NULL before and after */
  int is_running;    /* the function is running */
  int is_deferred;
  int is_second;
  double loss;
  tnk_custom_metric_t *metrics; /* in the arena */
  size_t n_metrics;
} custom_t;

static custom_t *custom_of(tnk__op_t *op) {
  tnk__pass_op_t *pass = tnk__container_of(op, tnk__pass_op_t, op);

  return tnk__container_of(pass, custom_t, pass);
}

static void fail_text(tnk__op_t *op, int code, int cause, const char *text) {
  tnk_error_t pub = {.code = code, .cause = cause, .message = text};
  tnk__error_t *error = tnk__error_from(&op->training->session->context->alloc,
                                        op->type->name, &pub);

  tnk__op_fail(op, error);
  tnk__error_unref(error);
}

/* ---- Data of the two passes ---- */

/* The target. The check requires it. */
static tnk_loss_input_t target_of(const tnk_datum_t *datum) {
  return tnk__datum_input_at(datum, tnk__datum_find(datum, "target_tokens"));
}

/* The example as it is sent: target and weights only. */
static int sent_datum(tnk__arena_t *arena, const tnk_datum_t *from,
                      const tnk_tensor_t *weights, tnk_datum_t *to) {
  tnk_loss_input_t *inputs = tnk__arena_calloc(arena, 2, sizeof(*inputs));

  if (inputs == NULL)
    return TNK_ENOMEM;
  inputs[0] = target_of(from);
  inputs[1] = (tnk_loss_input_t){"weights", *weights};
  *to = *from;
  to->targets = NULL;
  to->weights = NULL;
  to->loss_inputs = inputs;
  to->n_loss_inputs = 2;
  return TNK_OK;
}

/* A dense tensor in the shape of the targets, over `values`. */
static tnk_tensor_t weights_like(const tnk_datum_t *datum, const float *values,
                                 size_t n) {
  const tnk_loss_input_t target = target_of(datum);
  tnk_tensor_t out = tnk_tensor_f32(values, n);

  out.n_dims = target.tensor.n_dims;
  memcpy(out.shape, target.tensor.shape, sizeof(out.shape));
  return out;
}

static size_t n_targets(const tnk_datum_t *datum) {
  const tnk_loss_input_t target = target_of(datum);
  size_t n = 0;

  tnk__tensor_elements(&target.tensor, &n);
  return n;
}

static int make_forward_data(tnk__pass_op_t *pass) {
  tnk_datum_t *data =
      tnk__arena_calloc(&pass->arena, pass->n_data, sizeof(*data));
  size_t i;

  for (i = 0; data != NULL && i < pass->n_data; i++) {
    const tnk_datum_t *from = &pass->data[i];
    const size_t own = tnk__datum_find(from, "weights");
    tnk_tensor_t weights;
    if (own != SIZE_MAX) {
      weights = tnk__datum_input_at(from, own).tensor;
    } else {
      size_t n = n_targets(from);
      float *zeros = tnk__arena_calloc(&pass->arena, n + 1, sizeof(*zeros));
      if (zeros == NULL)
        return TNK_ENOMEM;
      weights = weights_like(from, zeros, n);
    }
    if (sent_datum(&pass->arena, from, &weights, &data[i]) != TNK_OK)
      return TNK_ENOMEM;
  }
  pass->data = data;
  return data != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Replace the data by the second pass's data, weights = -gradient. */
static int make_backward_data(tnk__pass_op_t *pass, float *const *gradients) {
  tnk_datum_t *data =
      tnk__arena_calloc(&pass->arena, pass->n_data, sizeof(*data));
  size_t i;
  size_t k;

  for (i = 0; data != NULL && i < pass->n_data; i++) {
    size_t n = n_targets(&pass->data[i]);
    tnk_tensor_t weights;
    for (k = 0; k < n; k++)
      gradients[i][k] = -gradients[i][k];
    weights = weights_like(&pass->data[i], gradients[i], n);
    if (sent_datum(&pass->arena, &pass->data[i], &weights, &data[i]) != TNK_OK)
      return TNK_ENOMEM;
  }
  pass->data = data;
  return data != NULL ? TNK_OK : TNK_ENOMEM;
}

/* ---- The caller's function ---- */

/* Set up the logprobs of each example, and memory for the gradients. */
static int make_io(custom_t *custom, const char **why) {
  tnk__pass_op_t *pass = &custom->pass;
  const tnk_pass_t *result = custom->first;
  size_t n = pass->n_data;
  tnk_tensor_t *logprobs =
      tnk__arena_calloc(&pass->arena, n, sizeof(*logprobs));
  float **gradients = tnk__arena_calloc(&pass->arena, n, sizeof(*gradients));
  size_t i;

  if (logprobs == NULL || gradients == NULL)
    return TNK_ENOMEM;
  if (tnk_pass_count(result) != n) {
    *why =
        "the forward pass returned a different number of outputs than examples";
    return TNK_EPROTO;
  }
  for (i = 0; i < n; i++) {
    const tnk_tensor_t *tensor = tnk_pass_tensor(result, i, "logprobs");
    size_t n_values = n_targets(&pass->data[i]);
    if (tensor == NULL || tensor->dtype != TNK_F32 || tensor->crow != NULL ||
        tensor->n_values != n_values) {
      *why = "the forward pass returned no logprobs in the targets' shape";
      return TNK_EPROTO;
    }
    logprobs[i] = *tensor;
    gradients[i] =
        tnk__arena_calloc(&pass->arena, n_values + 1, sizeof(**gradients));
    if (gradients[i] == NULL)
      return TNK_ENOMEM;
  }
  custom->io = (tnk_custom_loss_t){
      .n_data = n, .logprobs = logprobs, .gradients = gradients};
  return TNK_OK;
}

static int gradients_are_finite(const tnk_custom_loss_t *io) {
  size_t i;
  size_t k;

  for (i = 0; i < io->n_data; i++)
    for (k = 0; k < io->logprobs[i].n_values; k++)
      if (!isfinite(io->gradients[i][k]))
        return 0;
  return isfinite(io->loss);
}

/* Copy the caller's metrics. */
static int keep_metrics(custom_t *custom, const char **why) {
  const tnk_custom_loss_t *io = &custom->io;
  tnk__arena_t *arena = &custom->pass.arena;
  size_t i;

  if (io->n_metrics > TNK__MAX_CUSTOM_METRICS)
    *why = "the loss has more than 1,024 metrics";
  for (i = 0; *why == NULL && i < io->n_metrics; i++)
    if (io->metrics == NULL || io->metrics[i].name == NULL)
      *why = "a metric of the loss has no name";
  if (*why != NULL)
    return TNK_EUSER;
  custom->metrics =
      tnk__arena_calloc(arena, io->n_metrics + 1, sizeof(*custom->metrics));
  if (custom->metrics == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < io->n_metrics; i++) {
    custom->metrics[i] = io->metrics[i];
    custom->metrics[i].name = tnk__arena_strdup(arena, io->metrics[i].name);
    if (custom->metrics[i].name == NULL)
      return TNK_ENOMEM;
  }
  custom->n_metrics = io->n_metrics;
  return TNK_OK;
}

/* Begin the second pass with the function's result, or fail. */
static void answer(custom_t *custom, int status) {
  tnk__pass_op_t *pass = &custom->pass;
  tnk__op_t *op = &pass->op;
  const char *why = NULL;
  int err = TNK_OK;

  tnk__pass_result_free(&op->training->session->context->alloc, custom->first);
  custom->first = NULL; /* now only the gradients of io are needed */
  if (status != 0) {
    fail_text(op, TNK_EUSER, status, NULL);
    return;
  }
  err = keep_metrics(custom, &why);
  if (err == TNK_OK)
    err = make_backward_data(pass, custom->io.gradients);
  if (err != TNK_OK) {
    fail_text(op, err, 0, why);
    return;
  }
  custom->loss = custom->io.loss;
  custom->is_second = 1;
  pass->forward_only = 0;
  op->poll_type = "ForwardBackward";
  op->keeps_turn = 0;
  tnk__op_next_pass(op, pass->n_slices);
}

/* Check the numbers before the result is used. The logprobs still give their
 * count. */
static void check_answer(custom_t *custom, int status) {
  if (status == 0 && !gradients_are_finite(&custom->io))
    fail_text(&custom->pass.op, TNK_EUSER, 0,
              "the loss or a gradient is not finite");
  else
    answer(custom, status);
}

static void call_user(custom_t *custom) {
  tnk__op_t *op = &custom->pass.op;
  int status;

  tnk__op_hold(op);
  custom->is_running = 1;
  tnk__promise_waits(op->promise, TNK_WAITS_FOR_LOSS, 0);
  tnk__callout_begin();
  status = custom->cb(&custom->io, custom->user);
  tnk__callout_end();
  custom->is_running = 0;
  if (tnk__op_unhold(op) && !custom->is_deferred)
    check_answer(custom, status);
}

static custom_t *custom_of_io(tnk_custom_loss_t *io) {
  return tnk__container_of(io, custom_t, io);
}

int tnk__custom_defer(tnk_custom_loss_t *io) {
  custom_t *custom = custom_of_io(io);

  if (!custom->is_running || custom->is_deferred)
    return TNK_EINVAL;
  custom->is_deferred = 1;
  tnk__op_hold(&custom->pass.op);
  tnk__context_hold(custom->pass.op.training->session->context);
  return TNK_OK;
}

int tnk__custom_finish(tnk_custom_loss_t *io, int status) {
  custom_t *custom = custom_of_io(io);
  tnk__context_t *context;
  int is_open;

  if (!custom->is_deferred)
    return TNK_EINVAL;
  if (custom->is_running)
    return TNK_EREENTRANT;
  context = custom->pass.op.training->session->context;
  custom->is_deferred = 0;
  is_open = tnk__op_unhold(&custom->pass.op);
  if (is_open)
    check_answer(custom, status);
  tnk__context_release(context);
  return is_open ? TNK_OK : TNK_ECANCELED;
}

/* ---- The operation ---- */

static int prepare(tnk__op_t *op, size_t *n_parts) {
  tnk__pass_op_t *pass = &custom_of(op)->pass;
  int err = tnk__pass_prepare(op, n_parts);

  /* Split by the caller's data, like the official client. */
  return err != TNK_OK ? err : make_forward_data(pass);
}

static void finish_first(custom_t *custom, tnk_pass_t *result) {
  const char *why = NULL;
  int err;

  custom->first = result;
  err = make_io(custom, &why);
  if (err != TNK_OK)
    fail_text(&custom->pass.op, err, 0, why);
  else
    call_user(custom); /* may free the operation */
}

static void finish_second(custom_t *custom, tnk_pass_t *result) {
  tnk__op_t *op = &custom->pass.op;

  if (tnk__pass_result_set_custom_loss(result, custom->loss, custom->metrics,
                                       custom->n_metrics) != TNK_OK) {
    tnk__pass_result_free(&op->training->session->context->alloc, result);
    tnk__op_fail_code(op, TNK_ENOMEM);
    return;
  }
  tnk__op_resolve(op, TNK__RESULT_PASS, result, tnk__pass_result_free);
}

static void finish(tnk__op_t *op) {
  custom_t *custom = custom_of(op);
  tnk_pass_t *result = NULL;
  int err = tnk__pass_join(&custom->pass, &result);

  if (err != TNK_OK) {
    tnk__op_fail_code(op, err);
  } else if (custom->is_second) {
    finish_second(custom, result);
  } else {
    finish_first(custom, result);
  }
}

static void destroy(tnk__op_t *op) {
  tnk__pass_result_free(&op->training->session->context->alloc,
                        custom_of(op)->first);
  tnk__pass_destroy(op);
}

static const tnk__op_class_t custom_class = {
    .name = "forward_backward_custom",
    .method = "TrainingClient.forward_backward_custom",
    .type = "Forward", /* type of the first pass */
    .counts = TNK__COUNTS_PASS,
    .route = TNK__ROUTE_FORWARD_BACKWARD,
    .prepare = prepare,
    .request = tnk__pass_request,
    .cost = tnk__pass_cost,
    .tokens = tnk__pass_tokens,
    .read = tnk__pass_result_read_part,
    .finish = finish,
    .submitted = tnk__pass_submitted,
    .destroy = destroy,
};

tnk_promise_t *tnk__custom_start(tnk_training_t *training,
                                 const tnk_datum_t *data, size_t n_data,
                                 tnk_custom_loss_cb loss, void *user,
                                 const tnk_pass_options_t *options) {
  tnk_pass_options_t own = TNK_PASS_OPTIONS_INIT; /* the loss is chosen by
                                                     the library */
  tnk_promise_t *promise = NULL;
  tnk__pass_op_t *pass;
  custom_t *custom;

  if (options != NULL) {
    own.release = options->release;
    own.release_user = options->release_user;
  }
  pass = tnk__pass_new(sizeof(*custom), &custom_class, training, data, n_data,
                       &own, &promise);
  if (pass == NULL)
    return promise;
  custom = tnk__container_of(pass, custom_t, pass);
  custom->cb = loss;
  custom->user = user;
  pass->forward_only = 1;
  pass->op.keeps_turn = 1;
  tnk__pass_enter(pass, 2);
  return promise;
}
