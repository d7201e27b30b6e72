/* SPDX-License-Identifier: MIT */
#include "lib/store/shapes.h"

#include <string.h>

#include "tnk/rest.h"

/* ---- Checkpoints ---- */

static const tnk__field_t checkpoint_fields[] = {
    TNK__FIELD(ID, tnk_checkpoint_t, id, "checkpoint_id", 1),
    TNK__FIELD(TEXT, tnk_checkpoint_t, type, "checkpoint_type", 1),
    TNK__FIELD(TIME, tnk_checkpoint_t, time_us, "time", 1),
    TNK__FIELD(ID, tnk_checkpoint_t, path, "tinker_path", 1),
    TNK__FIELD(INT, tnk_checkpoint_t, size_bytes, "size_bytes", 0),
    TNK__FIELD(BOOL, tnk_checkpoint_t, is_public, "public", 0),
    TNK__FIELD_LIST(PAIRS, tnk_checkpoint_t, user_metadata, n_user_metadata,
                    "user_metadata", NULL, 0),
    TNK__FIELD(TIME, tnk_checkpoint_t, expires_us, "expires_at", 0),
};

static const tnk_checkpoint_t blank_checkpoint = {.size_bytes = -1};

static const char *finish_checkpoint(void *record) {
  static const struct {
    const char *word;
    tnk_checkpoint_kind_t kind;
  } known[] = {{"training", TNK_CHECKPOINT_TRAINING},
               {"sampler", TNK_CHECKPOINT_SAMPLER},
               {"external", TNK_CHECKPOINT_EXTERNAL}};
  tnk_checkpoint_t *checkpoint = record;

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strcmp(checkpoint->type, known[i].word) == 0)
      checkpoint->kind = known[i].kind;
  return NULL;
}

const tnk__shape_t tnk__shape_checkpoint = {
    TNK__FIELDS(checkpoint_fields), .size = sizeof(tnk_checkpoint_t),
    .blank = &blank_checkpoint, .finish = finish_checkpoint};

/* ---- Runs ---- */

static const tnk__field_t run_fields[] = {
    TNK__FIELD(ID, tnk_run_t, id, "training_run_id", 1),
    TNK__FIELD(TEXT, tnk_run_t, base_model, "base_model", 1),
    TNK__FIELD(TEXT, tnk_run_t, owner, "model_owner", 1),
    TNK__FIELD(BOOL, tnk_run_t, is_lora, "is_lora", 1),
    TNK__FIELD(BOOL, tnk_run_t, is_corrupted, "corrupted", 0),
    TNK__FIELD(INT, tnk_run_t, lora_rank, "lora_rank", 0),
    TNK__FIELD(TIME, tnk_run_t, last_request_us, "last_request_time", 1),
    TNK__FIELD_RECORD_AT(tnk_run_t, last_checkpoint, "last_checkpoint",
                         &tnk__shape_checkpoint, 0),
    TNK__FIELD_RECORD_AT(tnk_run_t, last_sampler_checkpoint,
                         "last_sampler_checkpoint", &tnk__shape_checkpoint, 0),
    TNK__FIELD_LIST(PAIRS, tnk_run_t, user_metadata, n_user_metadata,
                    "user_metadata", NULL, 0),
};

const tnk__shape_t tnk__shape_run = {TNK__FIELDS(run_fields),
                                     .size = sizeof(tnk_run_t)};

/* ---- Weights ---- */

static const tnk__field_t weights_info_fields[] = {
    TNK__FIELD(ID, tnk_weights_info_t, base_model, "base_model", 1),
    TNK__FIELD(BOOL, tnk_weights_info_t, is_lora, "is_lora", 1),
    TNK__FIELD(INT, tnk_weights_info_t, lora_rank, "lora_rank", 0),
    TNK__FIELD(CHOICE, tnk_weights_info_t, train_unembed, "train_unembed", 0),
    TNK__FIELD(CHOICE, tnk_weights_info_t, train_mlp, "train_mlp", 0),
    TNK__FIELD(CHOICE, tnk_weights_info_t, train_attn, "train_attn", 0),
    TNK__FIELD(JSON, tnk_weights_info_t, optimizer_json, "optimizer_config", 0),
};

const tnk__shape_t tnk__shape_weights_info = {
    TNK__FIELDS(weights_info_fields), .size = sizeof(tnk_weights_info_t)};

static const tnk__field_t external_files_fields[] = {
    TNK__FIELD_LIST(PAIRS, tnk_external_files_t, files, n_files, "urls", NULL,
                    1),
    TNK__FIELD(TIME, tnk_external_files_t, expires_us, "expires", 1),
};

/* Returns whether a name stays inside the folder that it is joined to. */
static int is_below(const char *name) {
  size_t n;

  if (strchr(name, '\\') != NULL)
    return 0;
  for (;; name += n + 1) {
    n = strcspn(name, "/");
    if (n == 0 || ((n == 1 || n == 2) && memcmp(name, "..", n) == 0))
      return 0;
    if (name[n] == '\0')
      return 1;
  }
}

static const char *check_files(void *record) {
  const tnk_external_files_t *files = record;

  for (size_t i = 0; i < files->n_files; i++)
    if (!is_below(files->files[i].name))
      return "urls";
  return NULL;
}

const tnk__shape_t tnk__shape_external_files = {
    TNK__FIELDS(external_files_fields), .size = sizeof(tnk_external_files_t),
    .finish = check_files};

/* ---- Sessions and samplers ---- */

static const tnk__field_t status_fields[] = {
    TNK__FIELD(TEXT, tnk_session_status_t, type, "type", 1),
    TNK__FIELD(TEXT, tnk_session_status_t, detail, "detail", 0),
    TNK__FIELD(TEXT, tnk_session_status_t, category, "category", 0),
    TNK__FIELD(TEXT, tnk_session_status_t, message, "message", 0),
    TNK__FIELD(JSON, tnk_session_status_t, reason, "reason", 0),
};

/* Its members depend on the type. */
static const tnk__shape_t status_shape = {TNK__FIELDS(status_fields),
                                          .size = sizeof(tnk_session_status_t),
                                          .is_sparse = 1};

static const tnk_session_t blank_session = {.n_checkpoints = -1,
                                            .checkpoint_bytes = -1};

static const tnk__field_t session_fields[] = {
    TNK__FIELD_LIST(TEXTS, tnk_session_t, run_ids, n_run_ids,
                    "training_run_ids", NULL, 1),
    TNK__FIELD_LIST(TEXTS, tnk_session_t, sampler_ids, n_sampler_ids,
                    "sampler_ids", NULL, 1),
    TNK__FIELD_LIST(PAIRS, tnk_session_t, user_metadata, n_user_metadata,
                    "user_metadata", NULL, 0),
    TNK__FIELD(TEXT, tnk_session_t, display_name, "display_name", 0),
};

const tnk__shape_t tnk__shape_session = {TNK__FIELDS(session_fields),
                                         .size = sizeof(tnk_session_t),
                                         .blank = &blank_session};

static const tnk__field_t summary_fields[] = {
    TNK__FIELD(ID, tnk_session_t, id, "session_id", 1),
    TNK__FIELD(TEXT, tnk_session_t, display_name, "display_name", 0),
    TNK__FIELD(TEXT, tnk_session_t, owner, "owner", 1),
    TNK__FIELD(TEXT, tnk_session_t, project_id, "project_id", 1),
    TNK__FIELD(TIME, tnk_session_t, created_us, "created_at", 1),
    TNK__FIELD(INT, tnk_session_t, n_checkpoints, "checkpoints_count", 1),
    TNK__FIELD(INT, tnk_session_t, checkpoint_bytes, "checkpoint_storage_bytes",
               0),
    TNK__FIELD_RECORD_AT(tnk_session_t, status, "status", &status_shape, 0),
    TNK__FIELD_LIST(PAIRS, tnk_session_t, user_metadata, n_user_metadata,
                    "user_metadata", NULL, 0),
};

const tnk__shape_t tnk__shape_session_summary = {TNK__FIELDS(summary_fields),
                                                 .size = sizeof(tnk_session_t),
                                                 .blank = &blank_session};

static const tnk__field_t sampler_fields[] = {
    TNK__FIELD(ID, tnk_sampler_t, id, "sampler_id", 1),
    TNK__FIELD(TEXT, tnk_sampler_t, base_model, "base_model", 1),
    TNK__FIELD(TEXT, tnk_sampler_t, model_path, "model_path", 0),
};

const tnk__shape_t tnk__shape_sampler = {TNK__FIELDS(sampler_fields),
                                         .size = sizeof(tnk_sampler_t)};
