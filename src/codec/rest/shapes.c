#include "codec/rest/shapes.h"

#include <string.h>

#include "tnk/rest.h"

#define FIELDS(fields_)                                                        \
  .fields = (fields_), .n_fields = sizeof(fields_) / sizeof((fields_)[0])

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

static void finish_checkpoint(void *record) {
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
}

const tnk__shape_t tnk__shape_checkpoint = {
    FIELDS(checkpoint_fields), .size = sizeof(tnk_checkpoint_t),
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

const tnk__shape_t tnk__shape_run = {FIELDS(run_fields),
                                     .size = sizeof(tnk_run_t)};
