/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_training.h"

#include <string.h>

#include "lib/wire/format/number_text.h"
#include "lib/wire/message/calls.h"
#include "tnk/error.h"

/* ---- Training ---- */

enum { DEFAULT_RANK = 32 };

/* ---- Training: creating ---- */

static void put_lora_config(tnk__json_writer_t *w,
                            const tnk_lora_options_t *o) {
  tnk__json_key(w, "lora_config");
  tnk__json_begin_object(w);
  /* The official client's own default, which servers need not know. */
  tnk__json_put_int(w, "rank", o->rank != 0 ? o->rank : DEFAULT_RANK);
  if (o->seed != TNK_ABSENT)
    tnk__json_put_int(w, "seed", o->seed);
  tnk__json_put_bool(w, "train_unembed", o->train_unembed != TNK_NO);
  tnk__json_put_bool(w, "train_mlp", o->train_mlp != TNK_NO);
  tnk__json_put_bool(w, "train_attn", o->train_attn != TNK_NO);
  tnk__json_end(w);
}

static void put_optimizer(tnk__json_writer_t *w, tnk_optimizer_t optimizer,
                          const char *json) {
  tnk__json_key(w, "optimizer_config");
  if (optimizer == TNK_OPTIMIZER_RAW) {
    tnk__json_raw(w, json, strlen(json));
    return;
  }
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type",
                     optimizer == TNK_OPTIMIZER_DIMUON ? "dimuon" : "adamw");
  if (optimizer == TNK_OPTIMIZER_DIMUON)
    tnk__json_put_int(w, "version", 1);
  tnk__json_end(w);
}

void tnk__create_model_write(tnk__buf_t *out, const char *session_id,
                             uint64_t model_seq_id,
                             const tnk_lora_options_t *options) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__calls_put_uint(&w, "model_seq_id", model_seq_id);
  tnk__json_put_text(&w, "base_model", options->base_model);
  tnk__calls_put_metadata(&w, options->user_metadata, options->n_user_metadata);
  put_lora_config(&w, options);
  /* Adam is the server's default. Some servers have no choice and reject the
   * member. */
  if (options->optimizer != TNK_OPTIMIZER_ADAMW)
    put_optimizer(&w, options->optimizer, options->optimizer_json);
  tnk__json_put_text(&w, "type", "create_model");
  tnk__calls_end(&w);
}

void tnk__create_from_state_write(tnk__buf_t *out, const char *session_id,
                                  uint64_t model_seq_id,
                                  const tnk_restore_options_t *options) {
  int with_optimizer = options->with_optimizer == TNK_YES;
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__calls_put_uint(&w, "model_seq_id", model_seq_id);
  tnk__calls_put_optional(&w, "base_model", options->base_model);
  tnk__calls_put_metadata(&w, options->user_metadata, options->n_user_metadata);
  tnk__json_put_text(&w, "path", options->path);
  tnk__json_put_bool(&w, "optimizer", with_optimizer);
  /* Adam is the server's default. A state with its optimizer includes the
   * type. */
  if (!with_optimizer && options->optimizer != TNK_OPTIMIZER_ADAMW)
    put_optimizer(&w, options->optimizer, options->optimizer_json);
  tnk__calls_put_optional(&w, "weights_access_token",
                          options->weights_access_token);
  tnk__json_put_text(&w, "type", "load_weights");
  tnk__calls_end(&w);
}

void tnk__model_id_write(tnk__buf_t *out, const char *session_id,
                         uint64_t model_seq_id) {
  char number[TNK__NUMBER_TEXT];

  tnk__buf_text(out, session_id);
  tnk__buf_text(out, ":train:");
  tnk__buf_append(out, number, tnk__uint_text(number, model_seq_id));
}

int tnk__create_model_read(const char **model_id, tnk__arena_t *arena,
                           const uint8_t *body, size_t n) {
  return tnk__calls_read_one(model_id, arena, body, n, "model_id");
}

/* ---- Training: queries ---- */

void tnk__get_info_write(tnk__buf_t *out, const char *model_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__json_put_text(&w, "type", "get_info");
  tnk__calls_end(&w);
}

/* Read the first of the members that is present. Other types count as
 * absent. */
static int get_first(const char **out, tnk__arena_t *arena, const char *a,
                     const char *b, const char *c) {
  const char *text = a != NULL ? a : b != NULL ? b : c;

  *out = NULL;
  if (text == NULL)
    return TNK_OK;
  *out = tnk__arena_strdup(arena, text);
  return *out != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Keep the family of "family:revision", because only the family names a
 * tokenizer. */
static int get_tokenizer(const char **out, tnk__arena_t *arena,
                         const json_t *data) {
  const char *text = tnk__json_str(data, "tokenizer_id");

  *out = NULL;
  if (text == NULL)
    return TNK_OK;
  *out = tnk__arena_strndup(arena, text, strcspn(text, ":"));
  return *out != NULL ? TNK_OK : TNK_ENOMEM;
}

/* An impossible rank counts as not stated. */
static uint32_t get_rank(const json_t *object, const char *key) {
  int64_t rank = 0;

  tnk__json_get_int(object, key, 0, UINT32_MAX, &rank);
  return (uint32_t)rank;
}

static int get_optimizer(const char **out, tnk__arena_t *arena,
                         const json_t *root) {
  const json_t *config = NULL;

  if (tnk__json_get_object(root, "optimizer_config", &config) ==
      TNK__JSON_WRONG)
    return TNK_EPROTO;
  return get_first(out, arena, tnk__json_str(config, "type"), "adamw", NULL);
}

static int read_info(tnk_training_info_t *out, tnk__arena_t *arena,
                     const json_t *root) {
  const json_t *data = tnk__json_obj(root, "model_data");
  int err = tnk__calls_get_required(&out->model_id, arena, root, "model_id");

  if (err == TNK_OK)
    err = get_first(&out->base_model, arena, tnk__json_str(data, "model_name"),
                    tnk__json_str(root, "model_name"),
                    tnk__json_str(data, "base_model"));
  if (err == TNK_OK)
    err = get_first(&out->arch, arena, tnk__json_str(data, "arch"), NULL, NULL);
  if (err == TNK_OK)
    err = get_tokenizer(&out->tokenizer_id, arena, data);
  if (err == TNK_OK)
    err = get_optimizer(&out->optimizer, arena, root);
  out->lora_rank = get_rank(root, "lora_rank");
  /* Some servers send it only inside the model's data. */
  if (out->lora_rank == 0)
    out->lora_rank = get_rank(tnk__json_obj(data, "lora_config"), "rank");
  return err;
}

int tnk__get_info_read(tnk_training_info_t *out, tnk__arena_t *arena,
                       const uint8_t *body, size_t n) {
  tnk_training_info_t read = {0};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = read_info(&read, arena, root);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

void tnk__weights_info_write(tnk__buf_t *out, const char *path) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "tinker_path", path);
  tnk__calls_end(&w);
}

/* The protocol allows null, which means that all parts have adapters. */
static tnk_choice_t get_part(const json_t *root, const char *key) {
  int value = 1;

  tnk__json_get_bool(root, key, &value);
  return value ? TNK_YES : TNK_NO;
}

static int read_weights_info(tnk__weights_info_t *out, tnk__arena_t *arena,
                             const json_t *root) {
  const json_t *config = tnk__json_obj(root, "optimizer_config");
  int err =
      tnk__calls_get_required(&out->base_model, arena, root, "base_model");

  if (err != TNK_OK)
    return err;
  if (tnk__json_get_bool(root, "is_lora", &out->is_lora) != TNK__JSON_FOUND)
    return TNK_EPROTO;
  out->lora_rank = get_rank(root, "lora_rank");
  out->train_mlp = get_part(root, "train_mlp");
  out->train_attn = get_part(root, "train_attn");
  out->train_unembed = get_part(root, "train_unembed");
  err = get_optimizer(&out->optimizer, arena, root);
  if (err == TNK_OK && tnk__json_str(config, "type") != NULL)
    err = tnk__calls_keep_json(&out->optimizer_json, NULL, arena, config);
  return err;
}

int tnk__weights_info_read(tnk__weights_info_t *out, tnk__arena_t *arena,
                           const uint8_t *body, size_t n) {
  tnk__weights_info_t read = {0};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = read_weights_info(&read, arena, root);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

void tnk__unload_model_write(tnk__buf_t *out, const char *model_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__json_put_text(&w, "type", "unload_model");
  tnk__calls_end(&w);
}

/* ---- Losses ---- */

/* Custom losses of the caller that run on the service. */

static void put_inputs(tnk__json_writer_t *w,
                       const tnk_loss_options_t *options) {
  tnk__json_key(w, "inputs");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < options->n_arguments; i++) {
    tnk__json_begin_object(w);
    tnk__json_put_text(w, "name", options->arguments[i].name);
    tnk__json_put_int(w, "rank", options->arguments[i].n_dims == 2 ? 2 : 1);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

void tnk__create_loss_write(tnk__buf_t *out, const char *session_id,
                            uint64_t loss_seq_id,
                            const tnk_loss_options_t *options) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__calls_put_uint(&w, "custom_loss_seq_id", loss_seq_id);
  tnk__json_put_text(&w, "name", options->name);
  put_inputs(&w, options);
  tnk__json_key(&w, "graph");
  tnk__json_raw(&w, options->graph, strlen(options->graph));
  tnk__json_put_text(&w, "type", "create_custom_loss");
  tnk__calls_end(&w);
}

int tnk__create_loss_read(const char **loss_id, tnk__arena_t *arena,
                          const uint8_t *body, size_t n) {
  return tnk__calls_read_one(loss_id, arena, body, n, "loss_id");
}

/* ---- Weights ---- */

static const tnk_save_options_t defaults = TNK_SAVE_OPTIONS_INIT;

/* Write the common beginning of all saves with a name. Returns the options, or
 * the defaults. */
static const tnk_save_options_t *begin_save(tnk__json_writer_t *w,
                                            tnk__buf_t *out,
                                            const char *model_id,
                                            uint64_t seq_id, const char *name,
                                            const tnk_save_options_t *options) {
  const tnk_save_options_t *o = options != NULL ? options : &defaults;

  tnk__calls_begin(w, out);
  tnk__json_put_text(w, "model_id", model_id);
  tnk__json_put_text(w, "path", name);
  tnk__calls_put_uint(w, "seq_id", seq_id);
  if (o->ttl_seconds != 0)
    tnk__calls_put_uint(w, "ttl_seconds", o->ttl_seconds);
  return o;
}

static void end_typed(tnk__json_writer_t *w, const char *type) {
  tnk__json_put_text(w, "type", type);
  tnk__calls_end(w);
}

void tnk__save_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);

  tnk__json_put_bool(&w, "overwrite", o->overwrite == TNK_YES);
  tnk__calls_put_metadata(&w, o->user_metadata, o->n_user_metadata);
  end_typed(&w, "save_weights");
}

void tnk__save_sampler_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);

  tnk__calls_put_metadata(&w, o->user_metadata, o->n_user_metadata);
  end_typed(&w, "save_weights_for_sampler");
}

void tnk__save_ephemeral_write(tnk__buf_t *out, const char *model_id,
                               uint64_t seq_id, uint64_t sampling_seq_id,
                               tnk_sampling_kind_t kind) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__calls_put_uint(&w, "sampling_session_seq_id", sampling_seq_id);
  /* A snapshot is the server's default, and some servers know no other kind. */
  if (kind == TNK_SAMPLING_INFLIGHT)
    tnk__json_put_text(&w, "kind", "inflight");
  tnk__calls_put_uint(&w, "seq_id", seq_id);
  end_typed(&w, "save_weights_for_sampler");
}

void tnk__save_external_write(tnk__buf_t *out, const char *model_id,
                              uint64_t seq_id, const char *name,
                              const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);
  size_t i;

  if (o->n_recipients > 0) {
    tnk__json_key(&w, "age_encryption_recipients");
    tnk__json_begin_array(&w);
    for (i = 0; i < o->n_recipients; i++)
      tnk__json_text(&w, o->recipients[i]);
    tnk__json_end(&w);
  }
  end_typed(&w, "save_weights_external");
}

void tnk__load_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *path,
                             int with_optimizer, const char *access_token) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__calls_put_uint(&w, "seq_id", seq_id);
  tnk__json_put_text(&w, "path", path);
  tnk__json_put_bool(&w, "optimizer", with_optimizer);
  tnk__calls_put_optional(&w, "weights_access_token", access_token);
  end_typed(&w, "load_weights");
}

int tnk__saved_read(tnk__saved_t *out, tnk__arena_t *arena, const uint8_t *body,
                    size_t n) {
  tnk__saved_t read = {.size_bytes = -1};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_text(&read.path, arena, root, "path");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.sampling_session_id, arena, root,
                              "sampling_session_id");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.model_id, arena, root, "model_id");
  if (err == TNK_OK && tnk__json_get_int(root, "size_bytes", 0, INT64_MAX,
                                         &read.size_bytes) == TNK__JSON_WRONG)
    err = TNK_EPROTO;
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}
