/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/node/addon/addon.h"

/* ---- Data ---- */

static int read_tensor(call_t *call, napi_value value, const char *name,
                       tnk_tensor_t *out) {
  napi_typedarray_type type = napi_int8_array;
  void *data = NULL;
  bool is = false;

  if (napi_is_typedarray(call->env, value, &is) != napi_ok || !is)
    return read_array(call->env, value, napi_float32_array, name,
                      (const void **)&out->data, &out->n_values);
  napi_get_typedarray_info(call->env, value, &type, &out->n_values, &data, NULL,
                           NULL);
  out->data = data;
  switch (type) {
  case napi_bigint64_array:
    out->dtype = TNK_I64;
    return 1;
  case napi_float32_array:
    out->dtype = TNK_F32;
    return 1;
  case napi_int32_array:
    out->dtype = TNK_I32;
    return 1;
  case napi_float64_array:
    out->dtype = TNK_F64;
    return 1;
  default:
    return read_array(call->env, value, napi_float32_array, name,
                      (const void **)&out->data, &out->n_values);
  }
}

static int read_shape(call_t *call, napi_value value, tnk_tensor_t *out) {
  uint32_t n = 0;

  if (!is_given(call->env, value))
    return 1;
  napi_get_array_length(call->env, value, &n);
  if (n > TNK_MAX_DIMS) {
    napi_throw_range_error(call->env, "ERR_OUT_OF_RANGE",
                           "a tensor has at most 8 dimensions");
    return 0;
  }
  out->n_dims = n;
  for (uint32_t i = 0; i < n; i++) {
    napi_value item = NULL;
    napi_get_element(call->env, value, i, &item);
    napi_get_value_int64(call->env, item, &out->shape[i]);
  }
  return 1;
}

/* A datum is [input, [name, typed array, shape], ...]. */
static int read_datum(call_t *call, napi_value value, tnk_datum_t *out) {
  napi_env env = call->env;
  napi_value item = NULL, part = NULL;
  uint32_t n = 0;

  napi_get_array_length(env, value, &n);
  napi_get_element(env, value, 0, &item);
  if (n == 0 || !read_model_input(call, item, &out->input))
    return 0;
  tnk_loss_input_t *inputs = call_alloc(call, n * sizeof(*inputs));
  if (inputs == NULL)
    return 0;
  for (uint32_t i = 1; i < n; i++) {
    tnk_loss_input_t *input = &inputs[i - 1];
    napi_get_element(env, value, i, &item);
    napi_get_element(env, item, 0, &part);
    input->name = read_text(env, part, "name", NULL, &call->scratch);
    napi_get_element(env, item, 1, &part);
    if (input->name == NULL ||
        !read_tensor(call, part, input->name, &input->tensor))
      return 0;
    napi_get_element(env, item, 2, &part);
    if (!read_shape(call, part, &input->tensor))
      return 0;
  }
  out->loss_inputs = inputs;
  out->n_loss_inputs = n - 1;
  return 1;
}

/* ---- Results ---- */

static napi_value make_tensor(addon_t *addon, tnk_promise_t *promise,
                              const tnk_tensor_t *tensor) {
  return make_view(addon, promise,
                   tensor->dtype == TNK_F32 ? napi_float32_array
                                            : napi_bigint64_array,
                   tensor->data, tensor->n_values);
}

static napi_value convert_pass(addon_t *addon, object_t *owner,
                               tnk_promise_t *promise) {
  napi_env env = addon->env;
  const tnk_pass_t *pass = tnk_promise_pass(promise);
  napi_value result = NULL, outputs = NULL;

  (void)owner;
  napi_create_object(env, &result);
  set_number(env, result, "loss", tnk_pass_loss(pass));
  napi_set_named_property(env, result, "metrics",
                          make_metrics(env, tnk_pass_metrics(pass)));
  set_text(env, result, "outputType", tnk_pass_output_type(pass));
  napi_create_array(env, &outputs);
  for (size_t i = 0; i < tnk_pass_count(pass); i++) {
    napi_value output = NULL;
    napi_create_object(env, &output);
    for (size_t f = 0; f < tnk_pass_field_count(pass, i); f++) {
      const char *name = tnk_pass_field_name(pass, i, f);
      napi_set_named_property(
          env, output, name,
          make_tensor(addon, promise, tnk_pass_tensor(pass, i, name)));
    }
    napi_set_element(env, outputs, (uint32_t)i, output);
  }
  napi_set_named_property(env, result, "outputs", outputs);
  return result;
}

static napi_value convert_metrics(addon_t *addon, object_t *owner,
                                  tnk_promise_t *promise) {
  (void)owner;
  return make_metrics(addon->env, tnk_promise_metrics(promise));
}

static napi_value convert_saved(addon_t *addon, object_t *owner,
                                tnk_promise_t *promise) {
  static const field_t fields[] = {
      FIELD(tnk_saved_t, path, "path", FIELD_TEXT),
      FIELD(tnk_saved_t, n_steps, "steps", FIELD_U64),
      FIELD(tnk_saved_t, n_passes, "passes", FIELD_U64),
  };

  (void)owner;
  const tnk_saved_t *saved = tnk_promise_saved(promise);
  if (saved == NULL)
    return make_undefined(addon->env);
  return write_fields(addon->env, fields, COUNT(fields), saved);
}

/* ---- Passes ---- */

/* Memory that a pass reads until it has been sent. */
typedef struct {
  addon_t *addon;
  scratch_t scratch;
  napi_ref data;
} lent_t;

static void lent_free(void *user) {
  lent_t *lent = user;

  lent->addon->counts.n_lent--;
  napi_delete_reference(lent->addon->env, lent->data);
  addon_unref(lent->addon);
  scratch_free(&lent->scratch);
  free(lent);
}

static lent_t *lent_new(call_t *call, napi_value data) {
  lent_t *lent = calloc(1, sizeof(*lent));

  if (lent == NULL) {
    throw_error(call->addon, TNK_ENOMEM, NULL);
    return NULL;
  }
  lent->addon = call->addon;
  lent->addon->n_refs++;
  lent->addon->counts.n_lent++;
  napi_create_reference(call->env, data, 1, &lent->data);
  return lent;
}

static int read_settings(call_t *call, napi_value options,
                         tnk_pass_options_t *out) {
  napi_env env = call->env;
  napi_value settings = NULL, names = NULL;
  uint32_t n = 0;

  if (!get_property(env, options, "settings", &settings))
    return 1;
  if (napi_get_property_names(env, settings, &names) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE",
                          "settings: expected an object");
    return 0;
  }
  napi_get_array_length(env, names, &n);
  tnk_loss_setting_t *list = call_alloc(call, n * sizeof(*list));
  if (list == NULL)
    return 0;
  for (uint32_t i = 0; i < n; i++) {
    napi_value name = NULL, value = NULL;
    napi_get_element(env, names, i, &name);
    napi_get_property(env, settings, name, &value);
    list[i].name = read_text(env, name, "settings", NULL, &call->scratch);
    if (list[i].name == NULL)
      return 0;
    if (napi_get_value_double(env, value, &list[i].number) != napi_ok) {
      list[i].text = read_text(env, value, list[i].name, NULL, &call->scratch);
      if (list[i].text == NULL)
        return 0;
    }
  }
  out->settings = list;
  out->n_settings = n;
  return 1;
}

typedef tnk_promise_t *(*pass_t)(tnk_training_t *, const tnk_datum_t *, size_t,
                                 const tnk_pass_options_t *);

/* Keep what the library reads until it has sent the pass: the structs, and the
 * arrays. */
static int lend(call_t *call, napi_value data, tnk_pass_options_t *options) {
  lent_t *lent = lent_new(call, data);

  if (lent == NULL)
    return 0;
  lent->scratch = call->scratch;
  call->scratch.first = NULL;
  options->release = lent_free;
  options->release_user = lent;
  return 1;
}

/* forward(training, data, options, control) */
static tnk_promise_t *run_pass(call_t *call, pass_t pass) {
  static const field_t field =
      FIELD(tnk_pass_options_t, loss_fn, "lossFn", FIELD_TEXT);
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  napi_env env = call->env;
  napi_value value = NULL;
  uint32_t n = 0;
  bool lends = false;

  napi_get_array_length(env, call->args[1], &n);
  tnk_datum_t *data = call_alloc(call, n * sizeof(*data));
  for (uint32_t i = 0; data != NULL && i < n; i++) {
    napi_value datum = NULL;
    napi_get_element(env, call->args[1], i, &datum);
    if (!read_datum(call, datum, &data[i]))
      return NULL;
  }
  if (data == NULL || !read_options(call, 2, &field, 1, &options) ||
      !read_settings(call, call->args[2], &options))
    return NULL;
  if (get_property(env, call->args[2], "lend", &value))
    napi_get_value_bool(env, value, &lends);
  if (lends && !lend(call, call->args[1], &options))
    return NULL;
  return pass(call->object->handle, data, n, &options);
}

static tnk_promise_t *forward_backward(call_t *call) {
  return run_pass(call, tnk_training_forward_backward);
}

static tnk_promise_t *forward(call_t *call) {
  return run_pass(call, tnk_training_forward);
}

/* ---- Other operations ---- */

/* optimStep(training, options, control) */
static tnk_promise_t *optim_step(call_t *call) {
  static const field_t fields[] = {
      FIELD_NAMED(tnk_optim_t, optimizer, "optimizer", optimizer_values),
      FIELD(tnk_optim_t, learning_rate, "learningRate", FIELD_DOUBLE),
      FIELD(tnk_optim_t, beta1, "beta1", FIELD_DOUBLE),
      FIELD(tnk_optim_t, beta2, "beta2", FIELD_DOUBLE),
      FIELD(tnk_optim_t, eps, "eps", FIELD_DOUBLE),
      FIELD(tnk_optim_t, weight_decay, "weightDecay", FIELD_DOUBLE),
      FIELD(tnk_optim_t, grad_clip_norm, "gradClipNorm", FIELD_DOUBLE),
      FIELD(tnk_optim_t, json, "json", FIELD_TEXT),
  };
  tnk_optim_t options = TNK_OPTIM_INIT;

  if (!read_options(call, 1, fields, COUNT(fields), &options))
    return NULL;
  return tnk_training_optim_step(call->object->handle, &options);
}

typedef tnk_promise_t *(*save_t)(tnk_training_t *, const char *,
                                 const tnk_save_options_t *);

/* saveState(training, name, options, control) */
static tnk_promise_t *run_save(call_t *call, save_t save) {
  static const field_t fields[] = {
      FIELD(tnk_save_options_t, ttl_seconds, "ttlSeconds", FIELD_U64),
      FIELD(tnk_save_options_t, overwrite, "overwrite", FIELD_CHOICE),
      FIELD(tnk_save_options_t, user_metadata, "userMetadata", FIELD_PAIRS),
      FIELD(tnk_save_options_t, recipients, "recipients", FIELD_TEXTS),
  };
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  const char *name =
      read_text(call->env, call->args[1], "name", NULL, &call->scratch);

  if (name == NULL || !read_options(call, 2, fields, COUNT(fields), &options))
    return NULL;
  return save(call->object->handle, name, &options);
}

static tnk_promise_t *save_state(call_t *call) {
  return run_save(call, tnk_training_save_state);
}

static tnk_promise_t *save_for_sampler(call_t *call) {
  return run_save(call, tnk_training_save_weights_for_sampler);
}

static tnk_promise_t *save_external(call_t *call) {
  return run_save(call, tnk_training_save_weights_external);
}

/* sampler(training, options, control) */
static tnk_promise_t *sampler(call_t *call) {
  static const char *const kinds[] = {"snapshot", "inflight", NULL};
  static const field_t field = {"kind", 0, FIELD_ENUM, kinds};
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  uint32_t kind = TNK_SAMPLING_SNAPSHOT;

  if (!read_options(call, 1, &field, 1, &kind) ||
      !read_sampling_options(call, call->args[1], &options))
    return NULL;
  return tnk_training_save_weights_and_get_sampling(
      call->object->handle, (tnk_sampling_kind_t)kind, &options);
}

/* loadState(training, options, control) */
static tnk_promise_t *load_state(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_load_options_t, path, "path", FIELD_TEXT),
      FIELD(tnk_load_options_t, with_optimizer, "withOptimizer", FIELD_CHOICE),
      FIELD(tnk_load_options_t, weights_access_token, "weightsAccessToken",
            FIELD_TEXT),
  };
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  if (!read_options(call, 1, fields, COUNT(fields), &options))
    return NULL;
  return tnk_training_load_state(call->object->handle, &options);
}

/* ready(training, options, control) */
static tnk_promise_t *ready(call_t *call) {
  return tnk_training_ready(call->object->handle);
}

/* unload(training, options, control) */
static tnk_promise_t *unload(call_t *call) {
  return tnk_training_unload(call->object->handle);
}

static napi_value js_go_on(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TRAINING))
    return NULL;
  int err = tnk_training_go_on(call.object->handle);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return call_end(&call, NULL);
}

/* trainingInfo(training): {id, baseModel, ..., totals} */
static napi_value js_training_info(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(tnk_training_info_t, model_id, "id", FIELD_TEXT),
      FIELD(tnk_training_info_t, base_model, "baseModel", FIELD_TEXT),
      FIELD(tnk_training_info_t, arch, "arch", FIELD_TEXT),
      FIELD(tnk_training_info_t, tokenizer_id, "tokenizerId", FIELD_TEXT),
      FIELD(tnk_training_info_t, optimizer, "optimizer", FIELD_TEXT),
      FIELD(tnk_training_info_t, lora_rank, "loraRank", FIELD_U32),
  };
  tnk_training_info_t from = TNK_TRAINING_INFO_INIT;
  tnk_totals_t totals = TNK_TOTALS_INIT;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TRAINING))
    return NULL;
  int err = tnk_training_info(&from, call.object->handle);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  napi_value object = write_fields(env, fields, COUNT(fields), &from);
  tnk_training_totals(&totals, call.object->handle);
  napi_set_named_property(env, object, "totals", make_totals(env, &totals));
  return object;
}

const function_t training_functions[] = {
    {"goOn", js_go_on},
    {"trainingInfo", js_training_info},
    {NULL, NULL},
};

const operation_t training_operations[] = {
    {"forwardBackward", OBJECT_TRAINING, 1, forward_backward, convert_pass},
    {"forward", OBJECT_TRAINING, 1, forward, convert_pass},
    {"saveState", OBJECT_TRAINING, 1, save_state, convert_saved},
    {"saveForSampler", OBJECT_TRAINING, 1, save_for_sampler, convert_saved},
    {"saveExternal", OBJECT_TRAINING, 1, save_external, convert_saved},
    {"optimStep", OBJECT_TRAINING, 0, optim_step, convert_metrics},
    {"sampler", OBJECT_TRAINING, 0, sampler, convert_sampling},
    {"loadState", OBJECT_TRAINING, 0, load_state, NULL},
    {"ready", OBJECT_TRAINING, 0, ready, convert_saved},
    {"unload", OBJECT_TRAINING, 0, unload, NULL},
    {NULL, 0, 0, NULL, NULL},
};
