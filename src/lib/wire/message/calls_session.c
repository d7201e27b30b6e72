/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_session.h"

#include <string.h>

#include "lib/wire/message/calls.h"
#include "tnk/error.h"

/* The limit of sizes from a server, so that sums stay far below 2^63. */
#define MAX_SIZE ((int64_t)1 << 50)
/* About 30 years: in milliseconds still far from any limit. */
#define MAX_SECONDS ((int64_t)1000000000)

/* ---- Configuration ---- */

/* Servers choose the flags by the version. It is therefore the version of the
 * protocol and not of this library. */
void tnk__client_config_write(tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "sdk_version", TNK__PROTOCOL_VERSION);
  tnk__calls_end(&w);
}

void tnk__flags_default(tnk__flags_t *flags) {
  *flags = (tnk__flags_t){
      .parallel_chunks = 1,
      .sample_watch = 1,
      .train_chunk_items = 1024,
      .train_chunk_bytes = 5000000,
      .train_dispatch_bytes = 50000000,
      .sample_dispatch_bytes = 10485760,
      .sample_concurrency = 2000,
      .result_bytes = 52428800,
      .billing_pause_s = 3600,
  };
}

/* A flag keeps its default if the member is absent. */
static int get_flag(int *out, const json_t *root, const char *key) {
  return tnk__json_get_bool(root, key, out) != TNK__JSON_WRONG;
}

static int get_size(uint64_t *out, const json_t *root, const char *key,
                    int64_t min, int64_t max) {
  int64_t value = (int64_t)*out;

  if (tnk__json_get_int(root, key, min, max, &value) == TNK__JSON_WRONG)
    return 0;
  *out = (uint64_t)value;
  return 1;
}

static int read_switches(tnk__flags_t *f, const json_t *root) {
  const char *source = "api_key";
  int sound;

  sound = tnk__json_get_text(root, "credential_default_source", &source) !=
          TNK__JSON_WRONG;
  /* Any other word means the plain key: the official client compares only with
   * this one. */
  f->credential_cmd = strcmp(source, "credential_cmd") == 0;
  return sound && get_flag(&f->use_jwt, root, "pjwt_auth_enabled") &&
         get_flag(&f->parallel_chunks, root, "parallel_fwdbwd_chunks") &&
         get_flag(&f->compress_train, root, "proto_compress_fwdbwd") &&
         get_flag(&f->sample_fail_fast, root, "sample_no_retries") &&
         get_flag(&f->sample_watch, root, "sample_enable_stuck_detection") &&
         get_flag(&f->batched_polls, root, "sample_use_retrieve_futures") &&
         get_flag(&f->join_samplers, root, "sample_join_sampling_session") &&
         get_flag(&f->server_losses, root, "custom_loss_server_side");
}

/* 0 is rejected where it would stop everything: no chunk could contain an
 * example, and no sample could be under way. A byte budget may be 0, because
 * one request is always allowed (lib/policy/semaphore.h). */
static int read_sizes(tnk__flags_t *f, const json_t *root) {
  return get_size(&f->train_chunk_items, root, "fwdbwd_max_chunk_len", 1,
                  MAX_SIZE) &&
         get_size(&f->train_chunk_bytes, root, "fwdbwd_max_chunk_bytes_count",
                  0, MAX_SIZE) &&
         get_size(&f->train_dispatch_bytes, root,
                  "fwdbwd_dispatch_bytes_semaphore_size", 0, MAX_SIZE) &&
         get_size(&f->sample_dispatch_bytes, root,
                  "sample_dispatch_bytes_semaphore_size", 0, MAX_SIZE) &&
         get_size(&f->sample_concurrency, root,
                  "sample_max_concurrent_requests", 1, MAX_SIZE) &&
         get_size(&f->result_bytes, root,
                  "inflight_response_bytes_semaphore_size", 0, MAX_SIZE) &&
         get_size(&f->billing_pause_s, root,
                  "billing_exception_max_pause_duration_sec", 0, MAX_SECONDS);
}

/* This is as strict as the official client. An unexpected type means a change
 * of the protocol, which should be found at the start. */
int tnk__flags_read(tnk__flags_t *flags, const uint8_t *body, size_t n) {
  tnk__flags_t read;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  tnk__flags_default(&read);
  if (!read_switches(&read, root) || !read_sizes(&read, root))
    err = TNK_EPROTO;
  json_decref(root);
  if (err == TNK_OK)
    *flags = read;
  return err;
}

void tnk__dynamic_flags_default(tnk__dynamic_flags_t *flags) {
  *flags = (tnk__dynamic_flags_t){.refresh_interval_s = 300,
                                  .sample_cancel_batch = 64};
}

int tnk__dynamic_flags_read(tnk__dynamic_flags_t *flags, const uint8_t *body,
                            size_t n) {
  tnk__dynamic_flags_t read;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  tnk__dynamic_flags_default(&read);
  if (!get_size(&read.refresh_interval_s, root, "refresh_interval_sec", 0,
                MAX_SECONDS) ||
      !get_flag(&read.sample_cancel, root, "sample_cancel_enabled") ||
      !get_size(&read.sample_cancel_batch, root, "sample_cancel_max_batch_size",
                1, MAX_SIZE))
    err = TNK_EPROTO;
  json_decref(root);
  if (err == TNK_OK)
    *flags = read;
  return err;
}

/* ---- Credential ---- */

void tnk__auth_token_write(tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__calls_end(&w);
}

int tnk__auth_token_read(const char **jwt, tnk__arena_t *arena,
                         const uint8_t *body, size_t n) {
  return tnk__calls_read_one(jwt, arena, body, n, "jwt");
}

/* ---- Session ---- */

void tnk__create_session_write(tnk__buf_t *out, const char *const *tags,
                               size_t n_tags, const tnk_pair_t *user_metadata,
                               size_t n_user_metadata, const char *project_id,
                               const char *display_name) {
  tnk__json_writer_t w;
  size_t i;

  tnk__calls_begin(&w, out);
  tnk__json_key(&w, "tags");
  tnk__json_begin_array(&w);
  for (i = 0; i < n_tags; i++)
    tnk__json_text(&w, tags[i]);
  tnk__json_end(&w);
  /* Sent even if it is empty, because one kind of server rejects a session
   * without it. */
  tnk__calls_put_pairs(&w, "user_metadata", user_metadata, n_user_metadata);
  tnk__json_put_text(&w, "sdk_version", TNK__PROTOCOL_VERSION);
  tnk__calls_put_optional(&w, "project_id", project_id);
  tnk__calls_put_optional(&w, "display_name", display_name);
  tnk__json_put_text(&w, "type", "create_session");
  tnk__calls_end(&w);
}

int tnk__create_session_read(tnk__create_session_reply_t *out,
                             tnk__arena_t *arena, const uint8_t *body,
                             size_t n) {
  tnk__create_session_reply_t read;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_required(&read.session_id, arena, root, "session_id");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.info_message, arena, root, "info_message");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.warning_message, arena, root,
                              "warning_message");
  if (err == TNK_OK)
    err =
        tnk__calls_get_text(&read.error_message, arena, root, "error_message");
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

void tnk__heartbeat_write(tnk__buf_t *out, const char *session_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__json_put_text(&w, "type", "session_heartbeat");
  tnk__calls_end(&w);
}

void tnk__finish_session_write(tnk__buf_t *out, const char *reason,
                               const char *detail) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_key(&w, "reason");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", reason);
  tnk__json_end(&w);
  /* A null is sent, because the member is required. */
  tnk__json_put_text(&w, "detail", detail);
  tnk__calls_end(&w);
}

/* ---- Server ---- */

struct tnk_capabilities {
  tnk_model_t *models;
  size_t n_models;
};

static tnk_choice_t choice(const json_t *model, const char *key, int *sound) {
  int value = 0;

  switch (tnk__json_get_bool(model, key, &value)) {
  case TNK__JSON_FOUND:
    return value ? TNK_YES : TNK_NO;
  case TNK__JSON_WRONG:
    *sound = 0;
    break;
  default:
    break;
  }
  return TNK_DEFAULT;
}

static int read_model(tnk_model_t *out, tnk__arena_t *arena,
                      const json_t *model) {
  int64_t length = 0;
  int sound = json_is_object(model);
  int err;

  out->trainable = choice(model, "trainable", &sound);
  out->sampleable = choice(model, "sampleable", &sound);
  if (tnk__json_get_int(model, "max_context_length", 0, INT64_MAX, &length) ==
      TNK__JSON_WRONG)
    sound = 0;
  out->max_context_length = length;
  if (!sound)
    return TNK_EPROTO;
  err = tnk__calls_get_text(&out->name, arena, model, "model_name");
  return err;
}

static int read_models(tnk_capabilities_t *out, tnk__arena_t *arena,
                       const json_t *list) {
  size_t n = json_array_size(list);
  size_t i;
  int err = TNK_OK;

  out->models = tnk__arena_calloc(arena, n + 1, sizeof(*out->models));
  if (out->models == NULL)
    return TNK_ENOMEM;
  for (i = 0; err == TNK_OK && i < n; i++)
    err = read_model(&out->models[i], arena, json_array_get(list, i));
  out->n_models = n;
  return err;
}

int tnk__capabilities_read(tnk_capabilities_t **out, tnk__arena_t *arena,
                           const uint8_t *body, size_t n) {
  tnk_capabilities_t *read;
  const json_t *list;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  list = tnk__json_arr(root, "supported_models");
  read = tnk__arena_calloc(arena, 1, sizeof(*read));
  if (list == NULL)
    err = TNK_EPROTO;
  else if (read == NULL)
    err = TNK_ENOMEM;
  else
    err = read_models(read, arena, list);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

int tnk__health_read(const uint8_t *body, size_t n) {
  const char *status;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  status = tnk__json_str(root, "status");
  if (status == NULL || strcmp(status, "ok") != 0)
    err = TNK_EPROTO;
  json_decref(root);
  return err;
}

size_t tnk_capabilities_count(const tnk_capabilities_t *capabilities) {
  return capabilities != NULL ? capabilities->n_models : 0;
}

const tnk_model_t *
tnk_capabilities_model(const tnk_capabilities_t *capabilities, size_t index) {
  return index < tnk_capabilities_count(capabilities)
             ? &capabilities->models[index]
             : NULL;
}
