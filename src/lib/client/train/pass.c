/* SPDX-License-Identifier: MIT */
#include "lib/client/train/operations.h"
#include "lib/client/train/pass.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/policy/slicer.h"
#include "lib/wire/data/data.h"
#include "lib/wire/message/pass_result.h"

static tnk__pass_op_t *pass_of(tnk__op_t *op) {
  return tnk__container_of(op, tnk__pass_op_t, op);
}

/* ---- Data that was lent ---- */

static void on_released(tnk__deferred_t *deferred) {
  tnk__pass_op_t *pass = tnk__container_of(deferred, tnk__pass_op_t, released);
  void (*release)(void *user) = pass->release;
  void *user = pass->release_user;

  pass->release = NULL;
  if (pass->is_over)
    tnk__free(pass->arena.alloc, pass);
  tnk__callout_begin();
  release(user);
  tnk__callout_end();
}

void tnk__pass_submitted(tnk__op_t *op) {
  tnk__pass_op_t *pass = pass_of(op);

  if (pass->release != NULL)
    tnk__defer(op->training->session->context, &pass->released);
}

void tnk__pass_destroy(tnk__op_t *op) {
  tnk__pass_op_t *pass = pass_of(op);
  const tnk_allocator_t *alloc = pass->arena.alloc;
  size_t i;

  for (i = 0; pass->results != NULL && i < pass->n_slices; i++)
    tnk__pass_result_free(alloc, pass->results[i]);
  tnk__arena_deinit(&pass->arena);
  pass->is_over = 1;
  if (pass->release != NULL)
    tnk__defer(op->training->session->context, &pass->released);
  else
    tnk__free(alloc, pass);
}

/* ---- Requests ---- */

static int make_slices(tnk__pass_op_t *pass) {
  const tnk__flags_t *flags = &pass->op.training->session->start.flags;
  tnk__slicer_t slicer;
  tnk__slice_t *slice = NULL;
  size_t i;
  int is_whole;

  /* There are at most as many chunks as examples. An array of that size is
   * small compared with the examples. */
  pass->slices =
      tnk__arena_calloc(&pass->arena, pass->n_data, sizeof(*pass->slices));
  if (pass->slices == NULL)
    return TNK_ENOMEM;
  tnk__slicer_init(&slicer, flags->train_chunk_items, flags->train_chunk_bytes);
  for (i = 0; i < pass->n_data; i++) {
    uint64_t n_bytes = tnk__datum_bytes(&pass->data[i]);
    if (tnk__slicer_add(&slicer, n_bytes)) {
      slice = &pass->slices[pass->n_slices++];
      slice->begin = i;
    }
    slice->n++;
    slice->n_bytes += n_bytes;
    slice->n_tokens += tnk__input_tokens(&pass->data[i].input, &is_whole);
  }
  return TNK_OK;
}

int tnk__pass_prepare(tnk__op_t *op, size_t *n_parts) {
  tnk__pass_op_t *pass = pass_of(op);
  int err = make_slices(pass);

  if (err != TNK_OK)
    return err;
  pass->results =
      tnk__arena_calloc(&pass->arena, pass->n_slices, sizeof(tnk_pass_t *));
  if (pass->results == NULL)
    return TNK_ENOMEM;
  *n_parts = pass->n_slices;
  return TNK_OK;
}

tnk__fwdbwd_t tnk__pass_request(tnk__op_t *op, size_t index, uint64_t number) {
  const tnk__pass_op_t *pass = pass_of(op);
  const tnk__slice_t *slice = &pass->slices[index];

  return (tnk__fwdbwd_t){.model_id = op->training->info.model_id,
                         .seq_id = (int64_t)number,
                         .data = pass->data + slice->begin,
                         .n_data = slice->n,
                         .loss_fn = pass->loss_fn,
                         .settings = pass->settings,
                         .n_settings = pass->n_settings,
                         .forward_only = pass->forward_only};
}

uint64_t tnk__pass_cost(tnk__op_t *op, size_t index) {
  return pass_of(op)->slices[index].n_bytes;
}

uint64_t tnk__pass_tokens(tnk__op_t *op, size_t index) {
  return pass_of(op)->slices[index].n_tokens;
}

/* ---- Results ---- */

/* Outputs belong to examples by position, so their number must match. Servers
 * may also strip all of them. */
int tnk__pass_result_read_part(tnk__op_t *op, size_t index,
                               const tnk__reply_t *reply, tnk__text_t *why) {
  tnk__pass_op_t *pass = pass_of(op);
  const size_t n_data = pass->slices[index].n;
  size_t n;
  int err = tnk__pass_result_read(
      &pass->results[index], &op->training->session->context->alloc,
      reply->body, reply->body_len, reply->is_proto);

  if (err != TNK_OK)
    return err;
  n = tnk_pass_count(pass->results[index]);
  if (n == 0 || n == n_data)
    return TNK_OK;
  tnk__text_printf(why, "%zu outputs for %zu examples", n, n_data);
  return TNK_EPROTO;
}

int tnk__pass_join(tnk__pass_op_t *pass, tnk_pass_t **out) {
  tnk__context_t *context = pass->op.training->session->context;
  size_t *n_data =
      tnk__arena_calloc(&pass->arena, pass->n_slices, sizeof(*n_data));
  size_t i;
  int err;

  if (n_data == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < pass->n_slices; i++)
    n_data[i] = pass->slices[i].n;
  err = tnk__pass_result_combine(out, &context->alloc, pass->results, n_data,
                                 pass->n_slices);
  if (err != TNK_OK)
    return err;
  for (i = 0; i < pass->n_slices; i++)
    pass->results[i] = NULL; /* part of the joined result now */
  for (i = 0; i < (*out)->warnings.n; i++)
    tnk__training_warn(pass->op.training, pass->op.type->name,
                       (*out)->warnings.text[i]);
  return TNK_OK;
}

static void finish(tnk__op_t *op) {
  const tnk__pass_op_t *pass = pass_of(op);
  tnk_pass_t *result = NULL;
  int err = tnk__pass_join(pass_of(op), &result);

  /* Lent data may already be gone. */
  if (err == TNK_OK && !pass->is_lent)
    tnk__pass_fill_loss(result, pass->loss_fn, pass->data, pass->n_data);
  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else
    tnk__op_resolve(op, TNK__RESULT_PASS, result, tnk__pass_result_free);
}

/* ---- Start ---- */

/* Both are the same request except for one flag in the body. */
#define PASS_CLASS(call, result_type, counts_)                                 \
  {                                                                            \
    .name = call, .method = "TrainingClient." call, .type = result_type,       \
    .counts = (counts_), .route = TNK__ROUTE_FORWARD_BACKWARD,                 \
    .prepare = tnk__pass_prepare, .request = tnk__pass_request,                \
    .cost = tnk__pass_cost, .tokens = tnk__pass_tokens,                        \
    .read = tnk__pass_result_read_part, .finish = finish,                      \
    .submitted = tnk__pass_submitted, .destroy = tnk__pass_destroy,            \
  }

static const tnk__op_class_t forward_class =
    PASS_CLASS("forward", "Forward", TNK__COUNTS_NOTHING);
static const tnk__op_class_t forward_backward_class =
    PASS_CLASS("forward_backward", "ForwardBackward", TNK__COUNTS_PASS);

void tnk__pass_give_back(tnk__session_t *session,
                         const tnk_pass_options_t *options) {
  if (options != NULL && options->release != NULL)
    tnk__loans_end(&session->loans, options->release, options->release_user);
}

/* Copy the loss options. */
static int copy_loss(tnk__pass_op_t *pass, const tnk_pass_options_t *options) {
  const char *loss_fn = options != NULL ? options->loss_fn : NULL;
  tnk_loss_setting_t *settings;
  size_t n = options != NULL ? options->n_settings : 0;
  size_t i;

  pass->loss_fn = tnk__arena_strdup(
      &pass->arena, loss_fn != NULL ? loss_fn : "cross_entropy");
  settings = tnk__arena_calloc(&pass->arena, n + 1, sizeof(*settings));
  if (pass->loss_fn == NULL || settings == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    settings[i] = options->settings[i];
    settings[i].name =
        tnk__arena_strdup(&pass->arena, options->settings[i].name);
    if (settings[i].text != NULL)
      settings[i].text = tnk__arena_strdup(&pass->arena, settings[i].text);
    if (settings[i].name == NULL ||
        (options->settings[i].text != NULL && settings[i].text == NULL))
      return TNK_ENOMEM;
  }
  pass->settings = settings;
  pass->n_settings = n;
  return TNK_OK;
}

tnk__pass_op_t *tnk__pass_new(size_t size, const tnk__op_class_t *type,
                              tnk_training_t *training, const tnk_datum_t *data,
                              size_t n_data, const tnk_pass_options_t *options,
                              tnk_promise_t **promise) {
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  int is_lent = options != NULL && options->release != NULL;
  tnk__pass_op_t *pass = tnk__op_new(size, type, training, promise);

  if (pass != NULL) {
    tnk__arena_init(&pass->arena, alloc, 4 * TNK__MAX_REQUEST_BODY);
    tnk__deferred_init(&pass->released, on_released);
    pass->data = is_lent ? data : tnk__data_copy(&pass->arena, data, n_data);
    pass->n_data = n_data;
    if (pass->data != NULL && copy_loss(pass, options) == TNK_OK) {
      pass->is_lent = is_lent;
      pass->release = is_lent ? options->release : NULL;
      pass->release_user = is_lent ? options->release_user : NULL;
      return pass;
    }
    tnk__op_enter(&pass->op, 0);
  }
  tnk__pass_give_back(training->session, options);
  return NULL;
}

void tnk__pass_enter(tnk__pass_op_t *pass, uint64_t n_passes) {
  tnk_training_t *training = pass->op.training;
  uint64_t n_tokens = 0;
  int is_whole = 1;

  for (size_t i = 0; i < pass->n_data; i++) {
    int is_told;
    n_tokens += tnk__input_tokens(&pass->data[i].input, &is_told);
    is_whole &= is_told;
  }
  training->lacks_pass =
      !tnk__op_take(&pass->op, n_passes * n_tokens, is_whole);
  if (!training->lacks_pass)
    tnk__op_enter(&pass->op, 1);
}

tnk_promise_t *tnk__pass_start(tnk_training_t *training,
                               const tnk_datum_t *data, size_t n_data,
                               const tnk_pass_options_t *options,
                               int forward_only) {
  tnk_promise_t *promise = NULL;
  tnk__pass_op_t *pass = tnk__pass_new(
      sizeof(*pass), forward_only ? &forward_class : &forward_backward_class,
      training, data, n_data, options, &promise);

  if (pass != NULL) {
    pass->forward_only = forward_only;
    tnk__pass_enter(pass, 1);
  }
  return promise;
}
