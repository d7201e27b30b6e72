#include "tools/tnk/rest/record.h"

#include <inttypes.h>
#include <math.h>

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
  cli_json_put_number(json, "size_bytes", checkpoint->size_bytes,
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
  cli_json_put_number(json, "lora_rank", run->lora_rank, run->lora_rank > 0);
  cli_json_put_time(json, "last_request_time", run->last_request_us);
  tnk__json_key(&json->w, "last_checkpoint");
  cli_put_checkpoint(json, run->last_checkpoint);
  tnk__json_key(&json->w, "last_sampler_checkpoint");
  cli_put_checkpoint(json, run->last_sampler_checkpoint);
  put_metadata(json, run->user_metadata, run->n_user_metadata);
}

/* ---- Sessions ---- */

void cli_put_session_id(cli_json_t *json, const tnk_session_t *session) {
  tnk__json_begin_object(&json->w);
  tnk__json_put_text(&json->w, "session_id", session->id);
  tnk__json_end(&json->w);
}

/* Absent members are omitted, because they depend on the status's type. */
static void put_status(cli_json_t *json, const tnk_session_status_t *status) {
  const char *const texts[][2] = {{"type", status->type},
                                  {"detail", status->detail},
                                  {"category", status->category},
                                  {"message", status->message}};

  tnk__json_begin_object(&json->w);
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
    if (texts[i][1] != NULL)
      tnk__json_put_text(&json->w, texts[i][0], texts[i][1]);
  if (status->reason != NULL)
    cli_json_put_raw(json, "reason", status->reason);
  tnk__json_end(&json->w);
}

void cli_put_session(cli_json_t *json, const tnk_session_t *session) {
  tnk__json_begin_object(&json->w);
  tnk__json_put_text(&json->w, "session_id", session->id);
  tnk__json_put_text(&json->w, "display_name", session->display_name);
  tnk__json_put_text(&json->w, "owner", session->owner);
  tnk__json_put_text(&json->w, "project_id", session->project_id);
  cli_json_put_time(json, "created_at", session->created_us);
  cli_json_put_number(json, "checkpoints_count", session->n_checkpoints,
                      session->n_checkpoints >= 0);
  cli_json_put_number(json, "checkpoint_storage_bytes",
                      session->checkpoint_bytes,
                      session->checkpoint_bytes >= 0);
  tnk__json_key(&json->w, "status");
  if (session->status != NULL)
    put_status(json, session->status);
  else
    tnk__json_null(&json->w);
  put_metadata(json, session->user_metadata, session->n_user_metadata);
  tnk__json_end(&json->w);
}

static void put_texts(cli_json_t *json, const char *key,
                      const char *const *texts, size_t n) {
  tnk__json_key(&json->w, key);
  tnk__json_begin_array(&json->w);
  for (size_t i = 0; i < n; i++)
    tnk__json_text(&json->w, texts[i]);
  tnk__json_end(&json->w);
}

void cli_put_session_parts(cli_json_t *json, const tnk_session_t *session) {
  put_texts(json, "training_run_ids", session->run_ids, session->n_run_ids);
  put_texts(json, "sampler_ids", session->sampler_ids, session->n_sampler_ids);
  put_metadata(json, session->user_metadata, session->n_user_metadata);
  tnk__json_put_text(&json->w, "display_name", session->display_name);
}

void cli_table_add_lora(cli_table_t *table, const tnk_run_t *run) {
  if (run->is_lora && run->lora_rank > 0)
    cli_table_add(table, "Rank %" PRId64, run->lora_rank);
  else
    cli_table_add(table, "%s", run->is_lora ? "Yes" : "No");
}

void cli_table_add_usd(cli_table_t *table, double amount) {
  if (isnan(amount))
    cli_table_add(table, "N/A");
  else
    cli_table_add(table, "%.4f", amount);
}
