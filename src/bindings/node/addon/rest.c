/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "bindings/node/addon/addon.h"

/* ---- Records ---- */

static const char *const checkpoint_kinds[] = {"other", "training", "sampler",
                                               "external", NULL};

static const field_t checkpoint_fields[] = {
    FIELD(tnk_checkpoint_t, path, "path", FIELD_TEXT),
    FIELD(tnk_checkpoint_t, id, "id", FIELD_TEXT),
    FIELD(tnk_checkpoint_t, type, "type", FIELD_TEXT),
    FIELD_NAMED(tnk_checkpoint_t, kind, "kind", checkpoint_kinds),
    FIELD(tnk_checkpoint_t, is_public, "isPublic", FIELD_BOOL),
    FIELD(tnk_checkpoint_t, time_us, "time", FIELD_TIME_US),
    FIELD(tnk_checkpoint_t, expires_us, "expires", FIELD_TIME_US),
    FIELD(tnk_checkpoint_t, size_bytes, "sizeBytes", FIELD_COUNT),
    FIELD(tnk_checkpoint_t, user_metadata, "userMetadata", FIELD_PAIRS),
};

static const field_t run_fields[] = {
    FIELD(tnk_run_t, id, "id", FIELD_TEXT),
    FIELD(tnk_run_t, base_model, "baseModel", FIELD_TEXT),
    FIELD(tnk_run_t, owner, "owner", FIELD_TEXT),
    FIELD(tnk_run_t, is_lora, "isLora", FIELD_BOOL),
    FIELD(tnk_run_t, is_corrupted, "isCorrupted", FIELD_BOOL),
    FIELD(tnk_run_t, lora_rank, "loraRank", FIELD_COUNT),
    FIELD(tnk_run_t, last_request_us, "lastRequest", FIELD_TIME_US),
    FIELD(tnk_run_t, user_metadata, "userMetadata", FIELD_PAIRS),
};

static const field_t session_fields[] = {
    FIELD(tnk_session_t, id, "id", FIELD_TEXT),
    FIELD(tnk_session_t, display_name, "displayName", FIELD_TEXT),
    FIELD(tnk_session_t, owner, "owner", FIELD_TEXT),
    FIELD(tnk_session_t, project_id, "projectId", FIELD_TEXT),
    FIELD(tnk_session_t, created_us, "created", FIELD_TIME_US),
    FIELD(tnk_session_t, n_checkpoints, "checkpoints", FIELD_COUNT),
    FIELD(tnk_session_t, checkpoint_bytes, "checkpointBytes", FIELD_COUNT),
    FIELD(tnk_session_t, user_metadata, "userMetadata", FIELD_PAIRS),
    FIELD(tnk_session_t, run_ids, "runIds", FIELD_TEXTS),
    FIELD(tnk_session_t, sampler_ids, "samplerIds", FIELD_TEXTS),
};

static const field_t weights_fields[] = {
    FIELD(tnk_weights_info_t, base_model, "baseModel", FIELD_TEXT),
    FIELD(tnk_weights_info_t, is_lora, "isLora", FIELD_BOOL),
    FIELD(tnk_weights_info_t, lora_rank, "loraRank", FIELD_COUNT),
    FIELD(tnk_weights_info_t, train_mlp, "trainMlp", FIELD_CHOICE),
    FIELD(tnk_weights_info_t, train_attn, "trainAttn", FIELD_CHOICE),
    FIELD(tnk_weights_info_t, train_unembed, "trainUnembed", FIELD_CHOICE),
    FIELD(tnk_weights_info_t, optimizer_json, "optimizerJson", FIELD_JSON),
};

static const field_t sampler_fields[] = {
    FIELD(tnk_sampler_t, id, "id", FIELD_TEXT),
    FIELD(tnk_sampler_t, base_model, "baseModel", FIELD_TEXT),
    FIELD(tnk_sampler_t, model_path, "modelPath", FIELD_TEXT),
};

static const field_t identity_fields[] = {
    FIELD(tnk_identity_t, user_urn, "userUrn", FIELD_TEXT),
    FIELD(tnk_identity_t, org_urn, "orgUrn", FIELD_TEXT),
    FIELD(tnk_identity_t, email, "email", FIELD_TEXT),
};

static napi_value make_run(napi_env env, const tnk_run_t *run) {
  napi_value object = write_fields(env, run_fields, COUNT(run_fields), run);

  if (run->last_checkpoint != NULL)
    napi_set_named_property(env, object, "lastCheckpoint",
                            write_fields(env, checkpoint_fields,
                                         COUNT(checkpoint_fields),
                                         run->last_checkpoint));
  if (run->last_sampler_checkpoint != NULL)
    napi_set_named_property(env, object, "lastSamplerCheckpoint",
                            write_fields(env, checkpoint_fields,
                                         COUNT(checkpoint_fields),
                                         run->last_sampler_checkpoint));
  return object;
}

static napi_value make_session(napi_env env, const tnk_session_t *session) {
  napi_value object =
      write_fields(env, session_fields, COUNT(session_fields), session);

  if (session->status != NULL)
    set_text(env, object, "status", session->status->type);
  return object;
}

/* The record of a page, whatever its kind. */
static napi_value make_record(napi_env env, const tnk_page_t *page, size_t i) {
  const void *record = NULL;

  if ((record = tnk_page_run(page, i)) != NULL)
    return make_run(env, record);
  if ((record = tnk_page_checkpoint(page, i)) != NULL)
    return write_fields(env, checkpoint_fields, COUNT(checkpoint_fields),
                        record);
  if ((record = tnk_page_session(page, i)) != NULL)
    return make_session(env, record);
  if ((record = tnk_page_weights_info(page, i)) != NULL)
    return write_fields(env, weights_fields, COUNT(weights_fields), record);
  if ((record = tnk_page_sampler(page, i)) != NULL)
    return write_fields(env, sampler_fields, COUNT(sampler_fields), record);
  if ((record = tnk_page_identity(page, i)) != NULL)
    return write_fields(env, identity_fields, COUNT(identity_fields), record);
  return make_undefined(env);
}

/* {items, total, next}: `next` is the page itself unless it is the last. */
static napi_value convert_page(addon_t *addon, object_t *owner,
                               tnk_promise_t *promise) {
  napi_env env = addon->env;
  const tnk_page_t *page = tnk_promise_page(promise);
  napi_value object = NULL, items = NULL;

  napi_create_object(env, &object);
  napi_create_array(env, &items);
  for (size_t i = 0; i < tnk_page_count(page); i++)
    napi_set_element(env, items, (uint32_t)i, make_record(env, page, i));
  napi_set_named_property(env, object, "items", items);
  if (tnk_page_total(page) >= 0)
    set_number(env, object, "total", (double)tnk_page_total(page));
  if (tnk_page_is_last(page))
    return object;
  napi_value next = convert_handle(addon, owner, promise, OBJECT_PAGE,
                                   (void *)(uintptr_t)page);
  if (next == NULL)
    return NULL;
  napi_set_named_property(env, object, "next", next);
  return object;
}

static napi_value convert_record(addon_t *addon, object_t *owner,
                                 tnk_promise_t *promise) {
  (void)owner;
  return make_record(addon->env, tnk_promise_page(promise), 0);
}

/* ---- Calls ---- */

static const char *const scopes[] = {"owned", "accessible", NULL};

typedef tnk_promise_t *(*list_t)(tnk_service_t *, const tnk_list_options_t *);

/* restList(service, kind, options, control) */
static tnk_promise_t *list(call_t *call) {
  static const char *const kinds[] = {"runs", "checkpoints", "sessions", NULL};
  static const list_t lists[] = {tnk_rest_list_runs, tnk_rest_list_checkpoints,
                                 tnk_rest_list_sessions};
  static const field_t kind = {"kind", 0, FIELD_ENUM, kinds};
  static const field_t fields[] = {
      FIELD(tnk_list_options_t, limit, "limit", FIELD_U32),
      FIELD_NAMED(tnk_list_options_t, scope, "scope", scopes),
      FIELD(tnk_list_options_t, offset, "offset", FIELD_U64),
      FIELD(tnk_list_options_t, project_id, "projectId", FIELD_TEXT),
  };
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  uint32_t which = 0;

  if (!read_field(call->env, call->args[1], &kind, &which, &call->scratch) ||
      !read_options(call, 2, fields, COUNT(fields), &options))
    return NULL;
  return lists[which](call->object->handle, &options);
}

/* restNext(service, page, options, control) */
static tnk_promise_t *next(call_t *call) {
  object_t *page = call_object(call, 1, OBJECT_PAGE);

  if (page == NULL)
    return NULL;
  return tnk_rest_next_page(call->object->handle, page->handle);
}

static tnk_promise_t *get_run(tnk_service_t *service, const char *id) {
  return tnk_rest_get_run(service, id, TNK_SCOPE_ACCESSIBLE);
}

static tnk_promise_t *get_session(tnk_service_t *service, const char *id) {
  return tnk_rest_get_session(service, id, TNK_SCOPE_ACCESSIBLE);
}

static tnk_promise_t *whoami(tnk_service_t *service, const char *id) {
  (void)id;
  return tnk_rest_whoami(service);
}

/* Functions of a service and one string. */
static const struct {
  const char *name;
  tnk_promise_t *(*call)(tnk_service_t *service, const char *id);
  convert_t convert;
} gets[] = {
    {"run", get_run, convert_record},
    {"runCheckpoints", tnk_rest_list_run_checkpoints, convert_page},
    {"session", get_session, convert_record},
    {"sampler", tnk_rest_get_sampler, convert_record},
    {"weights", tnk_rest_get_weights_info, convert_record},
    {"whoami", whoami, convert_record},
    {"delete", tnk_rest_delete_checkpoint, NULL},
    {"publish", tnk_rest_publish_checkpoint, NULL},
    {"unpublish", tnk_rest_unpublish_checkpoint, NULL},
};

/* restGet(service, kind, id, options, control) */
static tnk_promise_t *get(call_t *call) {
  const char *kind =
      read_text(call->env, call->args[1], "kind", NULL, &call->scratch);
  const char *id = kind == NULL ? NULL
                                : read_text(call->env, call->args[2], "id",
                                            NULL, &call->scratch);

  for (size_t i = 0; id != NULL && i < COUNT(gets); i++)
    if (strcmp(gets[i].name, kind) == 0) {
      call->convert = gets[i].convert;
      return gets[i].call(call->object->handle, id);
    }
  return NULL;
}

/* restTtl(service, path, seconds, options, control) */
static tnk_promise_t *set_ttl(call_t *call) {
  static const field_t field = {"seconds", 0, FIELD_I64, NULL};
  int64_t seconds = 0;
  const char *path =
      read_text(call->env, call->args[1], "path", NULL, &call->scratch);

  if (path == NULL ||
      !read_field(call->env, call->args[2], &field, &seconds, &call->scratch))
    return NULL;
  return tnk_rest_set_checkpoint_ttl(call->object->handle, path, seconds);
}

/* restCopy(service, options, control) */
static tnk_promise_t *copy(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_copy_options_t, path, "path", FIELD_TEXT),
      FIELD(tnk_copy_options_t, project_id, "projectId", FIELD_TEXT),
      FIELD(tnk_copy_options_t, ttl_seconds, "ttlSeconds", FIELD_I64),
      FIELD(tnk_copy_options_t, weights_access_token, "weightsAccessToken",
            FIELD_TEXT),
  };
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  if (!read_options(call, 1, fields, COUNT(fields), &options))
    return NULL;
  return tnk_rest_copy_weights(call->object->handle, &options);
}

const operation_t rest_operations[] = {
    {"restList", OBJECT_SERVICE, 1, list, convert_page},
    {"restGet", OBJECT_SERVICE, 2, get, NULL},
    {"restNext", OBJECT_SERVICE, 1, next, convert_page},
    {"restTtl", OBJECT_SERVICE, 2, set_ttl, NULL},
    {"restCopy", OBJECT_SERVICE, 0, copy, convert_path},
    {NULL, 0, 0, NULL, NULL},
};
