/* SPDX-License-Identifier: MIT */
/*
 * The loss of a set of data, which may have several passes. All passes are
 * called at once, so they take consecutive places among the operations of the
 * model, and a later step of the optimizer does not change their weights.
 *
 * The promise is pending until all passes have resolved, one of them was
 * rejected, or it was canceled. In the last two cases the other passes are
 * canceled. The memory of an evaluation exists until each of its passes has
 * settled.
 */
#include "lib/train/eval.h"

#include <math.h>

#include "lib/base/alloc.h"
#include "lib/io/loop/promise.h"
#include "lib/wire/data/data.h"
#include "lib/wire/message/results.h"
#include "tnk/train.h"

/* ---- Losses ---- */

/* The usual weights of an example are 0 and one other number. Their sum is that
 * number times its count: a float times a count below 2^29 is exact, and so is
 * each sum on the way to it. Returns 0 if the weights are others. The loop has
 * no exit, so that compilers use vectors. */
static int alike_weight(const float *values, size_t n, double *sum) {
  float value = 0;
  uint32_t n_equal = 0, n_other = 0;
  size_t i = 0;

  while (i < n && values[i] == 0.0f)
    i++;
  if (i < n)
    value = values[i];
  if (n - i >= (size_t)1 << 29)
    return 0;
  for (; i < n; i++) {
    n_equal += values[i] == value;
    n_other += values[i] != value && values[i] != 0.0f;
  }
  *sum = (double)value * n_equal;
  return n_other == 0;
}

static double tensor_weight(const tnk_tensor_t *tensor, int is_count) {
  const float *values = tensor->data;
  double sum = 0;

  /* A step of tnk train spent an eighth of its time here. */
  if (tensor->dtype == TNK_F32 && !is_count) {
    if (alike_weight(values, tensor->n_values, &sum))
      return sum;
    sum = 0;
    for (size_t i = 0; i < tensor->n_values; i++)
      sum += (double)values[i];
    return sum;
  }
  for (size_t i = 0; i < tensor->n_values; i++) {
    const double value = tnk__tensor_float(tensor, i);

    sum += is_count ? value != 0 : value;
  }
  return sum;
}

/* A sampled token has a logprob, and a token of its prompt has 0. */
double tnk_data_weight(const tnk_datum_t *data, size_t n_data) {
  double sum = 0;

  for (size_t i = 0; data != NULL && i < n_data; i++) {
    const size_t logprobs = tnk__datum_find(&data[i], "logprobs");
    const size_t at =
        logprobs != SIZE_MAX ? logprobs : tnk__datum_find(&data[i], "weights");
    const tnk_loss_input_t input = at != SIZE_MAX
                                       ? tnk__datum_input_at(&data[i], at)
                                       : (tnk_loss_input_t){0};

    sum += at != SIZE_MAX ? tensor_weight(&input.tensor, at == logprobs)
                          : (double)tnk__input_length(&data[i].input);
  }
  return sum;
}

double tnk_pass_loss_sum(const tnk_pass_t *pass) {
  const tnk_metrics_t *metrics = tnk_pass_metrics(pass);

  return tnk_metrics_count(metrics) > 0 ? tnk_metrics_get(metrics, "loss:sum")
                                        : tnk_pass_loss(pass);
}

/* ---- Evaluations ---- */

typedef struct eval eval_t;

typedef struct {
  eval_t *eval;
  tnk_promise_t *promise; /* of the pass; NULL once it has settled */
  tnk__then_t then;       /* so that watching it needs no memory */
  double loss_sum;
} part_t;

struct eval {
  const tnk_allocator_t *alloc; /* of the context */
  tnk_promise_t *promise;       /* NULL once it has settled */
  tnk_eval_t *result;           /* NULL once it was handed over */
  size_t n_waiting;             /* passes that have not settled */
  size_t n_parts;
  part_t parts[];
};

static void free_result(const tnk_allocator_t *alloc, void *result) {
  tnk__free(alloc, result);
}

static void cancel_parts(const eval_t *eval) {
  for (size_t i = 0; i < eval->n_parts; i++)
    tnk_promise_cancel(eval->parts[i].promise);
}

/* The error of a canceled pass says whether it was run. */
static tnk__error_t *error_of_parts(const eval_t *eval) {
  for (size_t i = 0; i < eval->n_parts; i++) {
    tnk_promise_t *pass = eval->parts[i].promise;

    if (tnk_promise_status(pass) == TNK_ECANCELED)
      return tnk__error_ref(tnk__promise_error(pass));
  }
  return tnk__error_static(TNK_ECANCELED);
}

static void on_cancel(void *op) {
  eval_t *eval = op;
  tnk_promise_t *promise = eval->promise;

  eval->promise = NULL;
  cancel_parts(eval);
  tnk__promise_reject(promise, error_of_parts(eval));
}

static void explain(const void *op, tnk__text_t *out) {
  const eval_t *eval = op;
  size_t i = 0;

  while (i < eval->n_parts &&
         tnk_promise_status(eval->parts[i].promise) != TNK_EPENDING)
    i++;
  tnk__text_printf(out, "evaluate: waits for %zu of %zu passes",
                   eval->n_waiting, eval->n_parts);
  if (i == eval->n_parts)
    return;
  tnk__text_printf(out, "; the first of them: ");
  tnk__promise_explain(eval->parts[i].promise, out);
}

static void fail(eval_t *eval, tnk_promise_t *pass) {
  tnk_promise_t *promise = eval->promise;

  eval->promise = NULL;
  cancel_parts(eval);
  tnk__promise_reject(promise, tnk__error_ref(tnk__promise_error(pass)));
}

/* The sums are added in the order of the data, so the same passes always have
 * the same loss. */
static void resolve(eval_t *eval) {
  tnk_eval_t *result = eval->result;

  for (size_t i = 0; i < eval->n_parts; i++)
    result->loss_sum += eval->parts[i].loss_sum;
  result->loss = result->weight != 0 ? result->loss_sum / result->weight : NAN;
  eval->result = NULL;
  tnk__promise_resolve(eval->promise, TNK__RESULT_EVAL, result, free_result);
}

static void on_pass(tnk_promise_t *pass, int status, void *user) {
  part_t *part = user;
  eval_t *eval = part->eval;

  if (status == TNK_OK)
    part->loss_sum =
        tnk_pass_loss_sum(tnk__promise_value(pass, TNK__RESULT_PASS));
  else if (eval->promise != NULL)
    fail(eval, pass);
  /* Its outputs are not needed, and all of them together may be large. */
  tnk_promise_unref(part->promise);
  part->promise = NULL;
  if (--eval->n_waiting > 0)
    return;
  if (eval->promise != NULL)
    resolve(eval);
  tnk__free(eval->alloc, eval->result);
  tnk__free(eval->alloc, eval);
}

static void measure(tnk_eval_t *result, const tnk_datum_t *data,
                    size_t n_data) {
  int is_whole;

  result->weight = tnk_data_weight(data, n_data);
  result->n_data = n_data;
  for (size_t i = 0; i < n_data; i++)
    result->n_tokens += tnk__input_tokens(&data[i].input, &is_whole);
}

/* NULL without memory. */
static eval_t *new_eval(const tnk_allocator_t *alloc, size_t n_parts) {
  const eval_t *none = NULL;
  const size_t max = (SIZE_MAX - sizeof(*none)) / sizeof(none->parts[0]);
  eval_t *eval =
      n_parts <= max
          ? tnk__calloc(alloc, 1,
                        sizeof(*none) + n_parts * sizeof(none->parts[0]))
          : NULL;

  if (eval == NULL)
    return NULL;
  eval->alloc = alloc;
  eval->n_parts = eval->n_waiting = n_parts;
  eval->result = tnk__calloc(alloc, 1, sizeof(*eval->result));
  if (eval->result != NULL)
    return eval;
  tnk__free(alloc, eval);
  return NULL;
}

tnk_promise_t *tnk__eval_start(tnk_training_t *training,
                               const tnk_datum_t *data, size_t n_data,
                               const tnk_pass_options_t *pass, size_t n_batch) {
  tnk__context_t *context = training->session->context;
  tnk_promise_t *promise = tnk__promise_new(context, NULL, NULL);
  eval_t *eval;

  if (tnk__promise_is_oom(promise))
    return promise;
  tnk__promise_name(promise, "evaluate");
  eval = new_eval(&context->alloc, (n_data - 1) / n_batch + 1);
  if (eval == NULL) {
    tnk__promise_reject(promise, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  measure(eval->result, data, n_data);
  eval->result->n_passes = eval->n_parts;
  eval->promise = promise;
  tnk__promise_bind(promise, on_cancel, explain, eval);
  for (size_t i = 0; i < eval->n_parts; i++) {
    part_t *part = &eval->parts[i];
    const size_t left = n_data - i * n_batch;

    part->eval = eval;
    part->promise = tnk__pass_start(training, data + i * n_batch,
                                    left < n_batch ? left : n_batch, pass, 1);
    tnk__promise_watch(tnk_promise_ref(part->promise), &part->then, on_pass,
                       part);
  }
  return promise;
}
