/* SPDX-License-Identifier: MIT */
#include "bindings/node/addon/addon.h"

/* ---- Entries ---- */

static napi_value make_entry(napi_env env, const tnk_ledger_entry_t *entry) {
#define MEMBER(member, name, type) FIELD(tnk_ledger_entry_t, member, name, type)
  static const field_t fields[] = {
      MEMBER(name, "name", FIELD_TEXT),
      MEMBER(state_path, "statePath", FIELD_TEXT),
      MEMBER(sampler_path, "samplerPath", FIELD_TEXT),
      MEMBER(cursor, "cursor", FIELD_TEXT),
      MEMBER(json, "json", FIELD_JSON),
      MEMBER(batch, "batch", FIELD_COUNT),
      MEMBER(epoch, "epoch", FIELD_COUNT),
      MEMBER(n_steps, "steps", FIELD_U64),
      MEMBER(n_passes, "passes", FIELD_U64),
      MEMBER(time_s, "time", FIELD_TIME_S),
      MEMBER(expires_s, "expires", FIELD_TIME_S),
      MEMBER(is_final, "isFinal", FIELD_BOOL),
      MEMBER(is_rolling, "isRolling", FIELD_BOOL),
      MEMBER(is_deleted, "isDeleted", FIELD_BOOL),
  };
#undef MEMBER
  if (entry == NULL)
    return make_undefined(env);
  napi_value object = write_fields(env, fields, COUNT(fields), entry);
  if (entry->used != NULL)
    napi_set_named_property(env, object, "used", make_totals(env, entry->used));
  return object;
}

static napi_value convert_entry(addon_t *addon, object_t *owner,
                                tnk_promise_t *promise) {
  (void)owner;
  return make_entry(addon->env, tnk_promise_entry(promise));
}

static napi_value convert_ledger(addon_t *addon, object_t *owner,
                                 tnk_promise_t *promise) {
  return convert_handle(addon, owner, promise, OBJECT_LEDGER,
                        tnk_promise_ledger(promise));
}

/* ---- Calls ---- */

/* ledgerOpen(service, directory, options, control) */
static tnk_promise_t *open_ledger(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_ledger_options_t, run, "run", FIELD_TEXT),
      FIELD(tnk_ledger_options_t, every_steps, "everySteps", FIELD_U64),
      FIELD(tnk_ledger_options_t, every_seconds, "everySeconds", FIELD_U64),
      FIELD(tnk_ledger_options_t, ttl_seconds, "ttlSeconds", FIELD_U64),
      FIELD(tnk_ledger_options_t, n_rolling, "rolling", FIELD_U64),
  };
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  const char *directory =
      read_text(call->env, call->args[1], "directory", NULL, &call->scratch);

  if (directory == NULL ||
      !read_options(call, 2, fields, COUNT(fields), &options))
    return NULL;
  return tnk_ledger_open(call->object->handle, directory, &options);
}

/* ledgerSave(ledger, training, options, control) */
static tnk_promise_t *save_entry(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_ledger_save_t, name, "name", FIELD_TEXT),
      FIELD(tnk_ledger_save_t, cursor, "cursor", FIELD_TEXT),
      FIELD(tnk_ledger_save_t, batch, "batch", FIELD_U64),
      FIELD(tnk_ledger_save_t, epoch, "epoch", FIELD_U64),
      FIELD(tnk_ledger_save_t, ttl_seconds, "ttlSeconds", FIELD_U64),
      FIELD(tnk_ledger_save_t, with_sampler, "withSampler", FIELD_CHOICE),
      FIELD(tnk_ledger_save_t, is_final, "isFinal", FIELD_CHOICE),
      FIELD(tnk_ledger_save_t, is_rolling, "isRolling", FIELD_CHOICE),
  };
  tnk_ledger_save_t options = TNK_LEDGER_SAVE_INIT;
  object_t *training = call_object(call, 1, OBJECT_TRAINING);

  if (training == NULL ||
      !read_options(call, 2, fields, COUNT(fields), &options))
    return NULL;
  return tnk_ledger_save(call->object->handle, training->handle, &options);
}

/* ledgerResume(ledger, options, control) */
static tnk_promise_t *resume_ledger(call_t *call) {
  static const field_t field =
      FIELD(tnk_ledger_resume_t, with_optimizer, "withOptimizer", FIELD_CHOICE);
  tnk_ledger_resume_t options = TNK_LEDGER_RESUME_INIT;

  if (!read_options(call, 1, &field, 1, &options))
    return NULL;
  return tnk_ledger_resume(call->object->handle, &options);
}

/* ledgerDue(ledger, training) */
static napi_value js_due(napi_env env, napi_callback_info info) {
  napi_value value = NULL;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_LEDGER))
    return NULL;
  object_t *training = call_object(&call, 1, OBJECT_TRAINING);
  if (training == NULL)
    return NULL;
  napi_get_boolean(env, tnk_ledger_due(call.object->handle, training->handle),
                   &value);
  return value;
}

/* ledgerEntries(ledger) */
static napi_value js_entries(napi_env env, napi_callback_info info) {
  napi_value entries = NULL;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_LEDGER))
    return NULL;
  tnk_ledger_t *ledger = call.object->handle;
  napi_create_array(env, &entries);
  for (size_t i = 0; i < tnk_ledger_count(ledger); i++)
    napi_set_element(env, entries, (uint32_t)i,
                     make_entry(env, tnk_ledger_entry(ledger, i)));
  return entries;
}

/* ledgerLast(ledger), ledgerResumed(ledger) */
static napi_value js_last(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_LEDGER))
    return NULL;
  return make_entry(env, tnk_ledger_last(call.object->handle));
}

static napi_value js_resumed(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_LEDGER))
    return NULL;
  return make_entry(env, tnk_ledger_resumed(call.object->handle));
}

const function_t ledger_functions[] = {
    {"ledgerDue", js_due},
    {"ledgerEntries", js_entries},
    {"ledgerLast", js_last},
    {"ledgerResumed", js_resumed},
    {NULL, NULL},
};

const operation_t ledger_operations[] = {
    {"ledgerOpen", OBJECT_SERVICE, 1, open_ledger, convert_ledger},
    {"ledgerSave", OBJECT_LEDGER, 1, save_entry, convert_entry},
    {"ledgerResume", OBJECT_LEDGER, 0, resume_ledger, convert_training},
    {NULL, 0, 0, NULL, NULL},
};
