/* SPDX-License-Identifier: MIT */
#include "tnk/training.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/client/train/operations.h"
#include "lib/client/train/pass.h"
#include "lib/client/train/stop.h"
#include "lib/client/train/training.h"
#include "lib/train/eval.h"
#include "lib/wire/data/check.h"
#include "tnk/train.h"

enum { MAX_TEXT = 512 };

/* ---- Passes ---- */

/* A setting names a custom loss of the service. */
static int use_loss(const tnk_training_t *training, tnk_pass_options_t *own,
                    tnk_loss_setting_t *id, char *text, size_t size) {
  const tnk__session_t *session = training->session;

  if (own->loss_fn != NULL || own->n_settings > 0) {
    snprintf(text, size, "loss_fn and settings are given beside loss");
    return TNK_EINVAL;
  }
  if (session != NULL && session->start.id != NULL &&
      strcmp(session->start.id, own->loss->session_id) != 0) {
    snprintf(text, size, "the loss is one of session %.64s, the model of %.64s",
             own->loss->session_id, session->start.id);
    return TNK_EINVAL;
  }
  *id = (tnk_loss_setting_t){.name = "loss_id", .text = own->loss->id};
  own->loss_fn = "custom";
  own->settings = id;
  own->n_settings = 1;
  return TNK_OK;
}

/* Check the arguments of a pass. Returns NULL, or a rejected promise. `id` is
 * memory for a setting. */
static tnk_promise_t *check_pass(tnk_training_t *training, const char *name,
                                 const tnk_datum_t *data, size_t n_data,
                                 const char *loss_fn,
                                 const tnk_pass_options_t *options,
                                 tnk_pass_options_t *own,
                                 tnk_loss_setting_t *id) {
  char text[MAX_TEXT] = "";
  int err = TNK__LOAD(tnk_pass_options_t, own, options, text, sizeof(text));

  if (err == TNK_OK && loss_fn != NULL &&
      (own->loss_fn != NULL || own->n_settings > 0 || own->loss != NULL)) {
    snprintf(text, sizeof(text), "%s of the service's losses",
             own->loss != NULL ? "loss is one" : "loss_fn and settings are");
    err = TNK_EINVAL;
  }
  if (err == TNK_OK && own->loss != NULL)
    err = use_loss(training, own, id, text, sizeof(text));
  if (err == TNK_OK && loss_fn == NULL)
    loss_fn = own->loss_fn != NULL ? own->loss_fn : "cross_entropy";
  if (err == TNK_OK)
    err = tnk__check_text("loss_fn", loss_fn, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_data(data, n_data, loss_fn, text, sizeof(text));
  if (err == TNK_OK && own->loss != NULL)
    err = tnk__check_arguments(data, n_data, own->loss->arguments,
                               own->loss->n_arguments, text, sizeof(text));
  if (err == TNK_OK)
    err =
        tnk__check_settings(own->settings, own->n_settings, text, sizeof(text));
  return tnk__client_refuses(TNK__CLIENT(training), name, err, text);
}

/* Release borrowed data of a pass that is refused. If the client is gone, the
 * loop may be gone too, so release is called directly. */
static void give_back(const tnk_training_t *training,
                      const tnk_pass_options_t *options) {
  if (training->session != NULL) {
    tnk__pass_give_back(training->session, options);
  } else if (options->release != NULL) {
    tnk__callout_begin();
    options->release(options->release_user);
    tnk__callout_end();
  }
}

static tnk_promise_t *pass(tnk_training_t *training, const tnk_datum_t *data,
                           size_t n_data, const tnk_pass_options_t *options,
                           int forward_only) {
  tnk_pass_options_t own = TNK_PASS_OPTIONS_INIT;
  tnk_loss_setting_t id;
  tnk_promise_t *refusal;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  refusal = check_pass(training, forward_only ? "forward" : "forward_backward",
                       data, n_data, NULL, options, &own, &id);
  if (refusal == NULL)
    return tnk__pass_start(training, data, n_data, &own, forward_only);
  give_back(training, &own);
  return refusal;
}

tnk_promise_t *
tnk_training_forward_backward(tnk_training_t *training, const tnk_datum_t *data,
                              size_t n_data,
                              const tnk_pass_options_t *options) {
  return pass(training, data, n_data, options, 0);
}

tnk_promise_t *tnk_training_forward(tnk_training_t *training,
                                    const tnk_datum_t *data, size_t n_data,
                                    const tnk_pass_options_t *options) {
  return pass(training, data, n_data, options, 1);
}

/* The same number as of a request that the service has no limit for. */
enum { EVAL_BATCH = 1024 };

tnk_promise_t *tnk_training_evaluate(tnk_training_t *training,
                                     const tnk_datum_t *data, size_t n_data,
                                     const tnk_eval_options_t *options) {
  static const char name[] = "evaluate";
  tnk_eval_options_t own = TNK_EVAL_OPTIONS_INIT;
  tnk_pass_options_t pass = TNK_PASS_OPTIONS_INIT;
  tnk_pass_options_t checked = TNK_PASS_OPTIONS_INIT;
  char text[MAX_TEXT] = "";
  tnk_promise_t *refusal = NULL;
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  err = TNK__LOAD(tnk_eval_options_t, &own, options, text, sizeof(text));
  pass.loss_fn = own.loss_fn;
  refusal = err != TNK_OK
                ? tnk__client_refuses(TNK__CLIENT(training), name, err, text)
                : check_pass(training, name, data, n_data, NULL, &pass,
                             &checked, NULL);
  return refusal != NULL
             ? refusal
             : tnk__eval_start(training, data, n_data, &checked,
                               own.n_batch > 0 ? own.n_batch : EVAL_BATCH);
}

tnk_promise_t *tnk_training_forward_backward_custom(
    tnk_training_t *training, const tnk_datum_t *data, size_t n_data,
    tnk_custom_loss_cb loss, void *user, const tnk_pass_options_t *options) {
  static const char name[] = "forward_backward_custom";
  tnk_pass_options_t own = TNK_PASS_OPTIONS_INIT;
  tnk_promise_t *refusal;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  refusal = check_pass(training, name, data, n_data, "cross_entropy", options,
                       &own, NULL);
  if (refusal == NULL && loss == NULL)
    refusal = tnk__client_refuses(TNK__CLIENT(training), name, TNK_EINVAL,
                                  "no loss function was given");
  if (refusal == NULL)
    return tnk__custom_start(training, data, n_data, loss, user, &own);
  give_back(training, &own);
  return refusal;
}

int tnk_custom_loss_defer(tnk_custom_loss_t *io) {
  return io != NULL ? tnk__custom_defer(io) : TNK_EINVAL;
}

int tnk_custom_loss_finish(tnk_custom_loss_t *io, int status) {
  return io != NULL ? tnk__custom_finish(io, status) : TNK_EINVAL;
}

/* ---- Custom losses on the service ---- */

tnk_promise_t *tnk_service_create_loss(tnk_service_t *service,
                                       const tnk_loss_options_t *options) {
  tnk_loss_options_t own = TNK_LOSS_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_loss_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_new_loss(&own, text, sizeof(text));
  refusal = tnk__service_refuses(&service->session, "create_loss", err, text);
  return refusal != NULL ? refusal : tnk__create_loss(&service->session, &own);
}

const char *tnk_loss_id(const tnk_loss_t *loss) {
  return loss != NULL ? loss->id : NULL;
}

/* ---- Steps ---- */

tnk_promise_t *tnk_training_optim_step(tnk_training_t *training,
                                       const tnk_optim_t *optim) {
  tnk_optim_t own = TNK_OPTIM_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  err = TNK__LOAD(tnk_optim_t, &own, optim, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_optim(&own, text, sizeof(text));
  refusal = tnk__client_refuses(TNK__CLIENT(training), "optim_step", err, text);
  return refusal != NULL ? refusal : tnk__step_start(training, &own);
}

/* ---- Saving and loading ---- */

/* Returns an option that this kind of save does not support, or NULL. */
static const char *misplaced(tnk__save_kind_t kind,
                             const tnk_save_options_t *options) {
  if (kind != TNK__SAVE_STATE && options->overwrite == TNK_YES)
    return "overwrite is for save_state alone";
  if (kind != TNK__SAVE_EXTERNAL && options->n_recipients > 0)
    return "recipients are for save_weights_external alone";
  if (kind == TNK__SAVE_EXTERNAL && options->n_user_metadata > 0)
    return "user_metadata is not for save_weights_external";
  return NULL;
}

static tnk_promise_t *save(tnk_training_t *training, tnk__save_kind_t kind,
                           const char *op_name, const char *name,
                           const tnk_save_options_t *options) {
  tnk_save_options_t own = TNK_SAVE_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  err = TNK__LOAD(tnk_save_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_save(name, &own, text, sizeof(text));
  if (err == TNK_OK && misplaced(kind, &own) != NULL) {
    snprintf(text, sizeof(text), "%s", misplaced(kind, &own));
    err = TNK_EINVAL;
  }
  refusal = tnk__client_refuses(TNK__CLIENT(training), op_name, err, text);
  return refusal != NULL ? refusal
                         : tnk__save_start(training, kind, name, &own);
}

tnk_promise_t *tnk_training_save_state(tnk_training_t *training,
                                       const char *name,
                                       const tnk_save_options_t *options) {
  return save(training, TNK__SAVE_STATE, "save_state", name, options);
}

tnk_promise_t *
tnk_training_save_weights_for_sampler(tnk_training_t *training,
                                      const char *name,
                                      const tnk_save_options_t *options) {
  return save(training, TNK__SAVE_SAMPLER, "save_weights_for_sampler", name,
              options);
}

tnk_promise_t *
tnk_training_save_weights_external(tnk_training_t *training, const char *name,
                                   const tnk_save_options_t *options) {
  return save(training, TNK__SAVE_EXTERNAL, "save_weights_external", name,
              options);
}

tnk_promise_t *tnk_training_save_weights_and_get_sampling(
    tnk_training_t *training, tnk_sampling_kind_t kind,
    const tnk_sampling_options_t *options) {
  static const char name[] = "save_weights_and_get_sampling";
  tnk_sampling_options_t own = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char said[MAX_TEXT];
  const char *text = said;
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  err = TNK__LOAD(tnk_sampling_options_t, &own, options, said, sizeof(said));
  if (err == TNK_OK && kind != TNK_SAMPLING_SNAPSHOT &&
      kind != TNK_SAMPLING_INFLIGHT) {
    err = TNK_EINVAL;
    text = "the kind of sampler is not known";
  }
  if (err == TNK_OK && (own.model_path != NULL || own.base_model != NULL ||
                        own.exported != NULL)) {
    err = TNK_EINVAL;
    text = "it samples from this model: set none of model_path, base_model and "
           "exported";
  }
  refusal = tnk__client_refuses(TNK__CLIENT(training), name, err, text);
  return refusal != NULL ? refusal
                         : tnk__save_ephemeral_start(training, kind, &own);
}

tnk_promise_t *tnk_training_load_state(tnk_training_t *training,
                                       const tnk_load_options_t *options) {
  tnk_load_options_t own = TNK_LOAD_OPTIONS_INIT;
  tnk_promise_t *refusal;
  char text[MAX_TEXT] = "";
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  err = TNK__LOAD(tnk_load_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__check_load(&own, text, sizeof(text));
  refusal = tnk__client_refuses(TNK__CLIENT(training), "load_state", err, text);
  if (refusal != NULL)
    return refusal;
  return tnk__load_start(training, own.path, own.with_optimizer == TNK_YES,
                         own.weights_access_token);
}

/* ---- The model ---- */

int tnk_training_info(tnk_training_info_t *out,
                      const tnk_training_t *training) {
  static const tnk_training_info_t none = TNK_TRAINING_INFO_INIT;
  const int is_open = TNK__HANDLE(training, TRAINING) && !training->closing;
  const tnk_training_info_t *info = is_open ? &training->info : &none;

  return out != NULL ? TNK__FILL(tnk_training_info_t, out, info) : TNK_EINVAL;
}

int tnk_training_go_on(tnk_training_t *training) {
  int err;

  if (!TNK__HANDLE(training, TRAINING))
    return TNK_EINVAL;
  if (training->closing)
    return TNK_ECLOSED;
  err = tnk__context_check_caller(training->session->context);
  if (err == TNK_OK)
    tnk__training_go_on(training);
  return err;
}

tnk_promise_t *tnk_training_ready(tnk_training_t *training) {
  tnk_promise_t *refusal;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  refusal = tnk__client_refuses(TNK__CLIENT(training), "ready", TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__training_ready(training);
}

tnk_promise_t *tnk_training_unload(tnk_training_t *training) {
  tnk_promise_t *refusal;

  if (!TNK__HANDLE(training, TRAINING))
    return NULL;
  refusal = tnk__client_refuses(TNK__CLIENT(training), "unload", TNK_OK, NULL);
  return refusal != NULL ? refusal : tnk__unload_start(training);
}

void tnk_training_close(tnk_training_t *training, tnk_close_cb cb, void *user) {
  if (TNK__HANDLE(training, TRAINING) && !training->closing &&
      !tnk__context_is_forked(training->session->context))
    tnk__training_close(training, cb, user);
}
