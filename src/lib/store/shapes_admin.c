/* SPDX-License-Identifier: MIT */
/* Records of use, cost and audit logs. */
#include <math.h>
#include <string.h>

#include "lib/store/shapes.h"

/* ---- Uses ---- */

static const tnk__field_t event_fields[] = {
    TNK__FIELD(TEXT, tnk_usage_event_t, type, "type", 0),
    TNK__FIELD(BOOL, tnk_usage_event_t, is_cached, "cached", 0),
    TNK__FIELD(INT, tnk_usage_event_t, n_tokens, "token_count", 0),
    TNK__FIELD(INT, tnk_usage_event_t, n_checkpoints, "count", 0),
    TNK__FIELD(BOOL, tnk_usage_event_t, is_free, "free", 0),
    TNK__FIELD(NUMBER, tnk_usage_event_t, gigabyte_hours, "gigabyte_hours", 0),
};

static const tnk_usage_event_t blank_event = {.type = ""};

static const char *finish_event(void *record) {
  static const struct {
    const char *word;
    tnk_usage_kind_t kind;
  } known[] = {{"training", TNK_USAGE_TRAINING},
               {"sampling_prefill", TNK_USAGE_PREFILL},
               {"sampling_sample", TNK_USAGE_SAMPLE},
               {"checkpoint", TNK_USAGE_CHECKPOINT},
               {"storage", TNK_USAGE_STORAGE}};
  tnk_usage_event_t *event = record;

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strcmp(event->type, known[i].word) == 0)
      event->kind = known[i].kind;
  return NULL;
}

static const tnk__shape_t event_shape = {
    TNK__FIELDS(event_fields), .size = sizeof(tnk_usage_event_t),
    .blank = &blank_event, .finish = finish_event,
    .raw_at = offsetof(tnk_usage_event_t, json)};

static const tnk__field_t usage_fields[] = {
    TNK__FIELD(TIME, tnk_usage_t, start_us, "bucket_start", 1),
    TNK__FIELD(TIME, tnk_usage_t, end_us, "bucket_end", 1),
    TNK__FIELD(TEXT, tnk_usage_t, base_model, "base_model", 0),
    TNK__FIELD(TEXT, tnk_usage_t, user_id, "user_id", 0),
    TNK__FIELD(TEXT, tnk_usage_t, user_name, "user_name", 0),
    TNK__FIELD(ID, tnk_usage_t, session_id, "session_id", 0),
    TNK__FIELD(TEXT, tnk_usage_t, project_id, "project_id", 0),
    TNK__FIELD(NUMBER, tnk_usage_t, cost_usd, "estimated_cost_usd", 0),
    TNK__FIELD(NUMBER, tnk_usage_t, usd_per_million_tokens,
               "effective_rate_usd_per_million_tokens", 0),
    TNK__FIELD(NUMBER, tnk_usage_t, usd_per_gigabyte_month,
               "effective_rate_usd_per_gigabyte_month", 0),
    TNK__FIELD_RECORD_AT(tnk_usage_t, event, "event_info", &event_shape, 1),
};

static const tnk_usage_t blank_usage = {.cost_usd = NAN,
                                        .usd_per_million_tokens = NAN,
                                        .usd_per_gigabyte_month = NAN};

const tnk__shape_t tnk__shape_usage = {TNK__FIELDS(usage_fields),
                                       .size = sizeof(tnk_usage_t),
                                       .blank = &blank_usage};

static const tnk__field_t usage_session_fields[] = {
    TNK__FIELD_LIST(PAIRS, tnk__usage_session_t, user_metadata, n_user_metadata,
                    "user_metadata", NULL, 0),
};

const tnk__shape_t tnk__shape_usage_session = {
    TNK__FIELDS(usage_session_fields), .size = sizeof(tnk__usage_session_t)};

/* ---- Storage ---- */

static const tnk__field_t storage_fields[] = {
    TNK__FIELD(TEXT, tnk_storage_t, project_id, "project_id", 0),
    TNK__FIELD(TEXT, tnk_storage_t, user_urn, "org_user_urn", 0),
    TNK__FIELD(TEXT, tnk_storage_t, user_email, "user_email", 0),
    TNK__FIELD(TEXT, tnk_storage_t, user_name, "user_name", 0),
    TNK__FIELD(INT, tnk_storage_t, n_checkpoints, "checkpoint_count", 1),
    TNK__FIELD(INT, tnk_storage_t, size_bytes, "size_bytes", 1),
    TNK__FIELD(NUMBER, tnk_storage_t, size_gigabytes, "size_gigabytes", 1),
    TNK__FIELD(NUMBER, tnk_storage_t, usd_per_month,
               "estimated_monthly_cost_usd", 0),
};

static const tnk_storage_t blank_storage = {
    .n_checkpoints = -1, .size_bytes = -1, .usd_per_month = NAN};

const tnk__shape_t tnk__shape_storage = {TNK__FIELDS(storage_fields),
                                         .size = sizeof(tnk_storage_t),
                                         .blank = &blank_storage};

/* ---- The audit log ---- */

static const tnk__field_t audit_fields[] = {
    TNK__FIELD(TIME, tnk_audit_entry_t, time_us, "timestamp", 1),
    TNK__FIELD(TEXT, tnk_audit_entry_t, event, "event", 1),
    TNK__FIELD(JSON, tnk_audit_entry_t, details, "event_details", 0),
    TNK__FIELD(TEXT, tnk_audit_entry_t, model_id, "model_id", 0),
    TNK__FIELD(TEXT, tnk_audit_entry_t, tinker_path, "tinker_path", 0),
    TNK__FIELD(TEXT, tnk_audit_entry_t, purpose, "purpose", 0),
};

const tnk__shape_t tnk__shape_audit_entry = {TNK__FIELDS(audit_fields),
                                             .size = sizeof(tnk_audit_entry_t)};

/* ---- Keys ---- */

typedef struct {
  const char *text;
} named_t;

/* The service's answer about the owner of a key. */
typedef struct {
  const named_t *organization;
  const named_t *user;
  const char *json;
} details_t;

/* A key, with temporary fields for some of its members. */
typedef struct {
  tnk_api_key_t key;
  const details_t *details;
} api_key_t;

static const tnk__field_t organization_fields[] = {
    TNK__FIELD(TEXT, named_t, text, "name", 0),
};
static const tnk__shape_t organization_shape = {
    TNK__FIELDS(organization_fields), .size = sizeof(named_t)};

static const tnk__field_t user_fields[] = {
    TNK__FIELD(TEXT, named_t, text, "email", 0),
};
static const tnk__shape_t user_shape = {TNK__FIELDS(user_fields),
                                        .size = sizeof(named_t)};

static const tnk__field_t details_fields[] = {
    TNK__FIELD_RECORD_AT(details_t, organization, "org_details",
                         &organization_shape, 0),
    TNK__FIELD_RECORD_AT(details_t, user, "user_details", &user_shape, 0),
};
static const tnk__shape_t details_shape = {TNK__FIELDS(details_fields),
                                           .size = sizeof(details_t),
                                           .raw_at = offsetof(details_t, json)};

static const tnk__field_t api_key_fields[] = {
    TNK__FIELD(INT, api_key_t, key.id, "key_id", 1),
    TNK__FIELD(TEXT, api_key_t, key.name, "name", 1),
    TNK__FIELD(TEXT, api_key_t, key.note, "note", 0),
    TNK__FIELD_RECORD_AT(api_key_t, details, "details", &details_shape, 0),
};

static const char *finish_api_key(void *record) {
  api_key_t *of = record;
  const details_t *details = of->details;

  if (details == NULL)
    return NULL;
  of->key.details = details->json;
  if (details->organization != NULL)
    of->key.organization = details->organization->text;
  if (details->user != NULL)
    of->key.email = details->user->text;
  return NULL;
}

const tnk__shape_t tnk__shape_api_key = {TNK__FIELDS(api_key_fields),
                                         .size = sizeof(api_key_t),
                                         .finish = finish_api_key};
