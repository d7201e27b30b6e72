#include "cli/rest/record.h"

static void put_number(cli_json_t *json, const char *key, int64_t value,
                       int is_known) {
  tnk__json_key(&json->w, key);
  if (is_known)
    tnk__json_int(&json->w, value);
  else
    tnk__json_null(&json->w);
}

static void put_metadata(cli_json_t *json, const tnk_pair_t *pairs, size_t n) {
  if (n > 0)
    cli_json_put_pairs(json, "user_metadata", pairs, n);
  else
    tnk__json_put_text(&json->w, "user_metadata", NULL);
}

void cli_put_checkpoint_members(cli_json_t *json,
                                const tnk_checkpoint_t *checkpoint) {
  tnk__json_put_text(&json->w, "checkpoint_id", checkpoint->id);
  tnk__json_put_text(&json->w, "checkpoint_type", checkpoint->type);
  cli_json_put_time(json, "time", checkpoint->time_us);
  tnk__json_put_text(&json->w, "tinker_path", checkpoint->path);
  put_number(json, "size_bytes", checkpoint->size_bytes,
             checkpoint->size_bytes >= 0);
  tnk__json_put_bool(&json->w, "public", checkpoint->is_public);
  put_metadata(json, checkpoint->user_metadata, checkpoint->n_user_metadata);
  cli_json_put_time(json, "expires_at", checkpoint->expires_us);
}

void cli_put_checkpoint(cli_json_t *json, const tnk_checkpoint_t *checkpoint) {
  if (checkpoint == NULL) {
    tnk__json_null(&json->w);
    return;
  }
  tnk__json_begin_object(&json->w);
  cli_put_checkpoint_members(json, checkpoint);
  tnk__json_end(&json->w);
}

void cli_put_run_members(cli_json_t *json, const tnk_run_t *run) {
  tnk__json_put_text(&json->w, "training_run_id", run->id);
  tnk__json_put_text(&json->w, "base_model", run->base_model);
  tnk__json_put_text(&json->w, "model_owner", run->owner);
  tnk__json_put_bool(&json->w, "is_lora", run->is_lora);
  tnk__json_put_bool(&json->w, "corrupted", run->is_corrupted);
  put_number(json, "lora_rank", run->lora_rank, run->lora_rank > 0);
  cli_json_put_time(json, "last_request_time", run->last_request_us);
  tnk__json_key(&json->w, "last_checkpoint");
  cli_put_checkpoint(json, run->last_checkpoint);
  tnk__json_key(&json->w, "last_sampler_checkpoint");
  cli_put_checkpoint(json, run->last_sampler_checkpoint);
  put_metadata(json, run->user_metadata, run->n_user_metadata);
}
