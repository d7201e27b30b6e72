/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tools/local/call/call.h"

/* ---- Scanning a body ---- */

/* Wire types: the lowest three bits of a tag. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

/* seq_id of a ForwardBackwardRequest */
enum { FIELD_SEQ = 2 };

/* Read a varint and advance. Returns 0 if it is truncated or has more than 64
 * bits. */
static int varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
  uint64_t value = 0;

  for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;

    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *out = value;
      return 1;
    }
  }
  return 0;
}

int64_t local_scan_seq(const uint8_t *bytes, size_t n) {
  const uint8_t *at = bytes;
  const uint8_t *end = n > 0 ? bytes + n : bytes; /* empty may be NULL */
  int64_t seq = -1;
  uint64_t tag;

  while (varint(&at, end, &tag)) {
    uint64_t value = 0;
    uint64_t skip = 0;

    switch (tag & 7) {
    case VARINT:
      if (!varint(&at, end, &value))
        return seq;
      /* The last occurrence counts, as in a decoder. */
      if (tag >> 3 == FIELD_SEQ)
        seq = value <= INT64_MAX ? (int64_t)value : -1;
      break;
    case LENGTH:
      if (!varint(&at, end, &skip))
        return seq;
      break;
    case FIXED64:
      skip = 8;
      break;
    case FIXED32:
      skip = 4;
      break;
    default:
      return seq;
    }
    if (skip > (uint64_t)(end - at))
      return seq;
    at += skip;
  }
  return seq;
}

/* ---- Members ---- */

/*
 * The members of bodies in protocol version 0.25, by call. Each name in a list
 * has a space before and after it. An object inside a body has a separate row.
 * Objects with arbitrary members (metadata, sampling parameters, prompts) have
 * none.
 */
typedef struct {
  const char *path;
  const char *inside; /* the member with the object; NULL: the body */
  const char *known;
} row_t;

static const row_t rows[] = {
    {"/client/config", NULL, " sdk_version project_id "},
    {"/client/dynamic_config", NULL, " sdk_version project_id "},
    {"/create_session", NULL,
     " tags user_metadata sdk_version project_id type "},
    {"/session_heartbeat", NULL, " session_id type "},
    {"/create_model", NULL,
     " session_id model_seq_id base_model user_metadata lora_config type "},
    {"/create_model", "lora_config",
     " rank seed train_unembed train_mlp train_attn "},
    {"/get_info", NULL, " model_id type "},
    {"/unload_model", NULL, " model_id type "},
    {"/optim_step", NULL, " model_id seq_id adam_params type "},
    {"/optim_step", "adam_params",
     " learning_rate beta1 beta2 eps weight_decay grad_clip_norm "},
    {"/save_weights", NULL,
     " model_id path seq_id ttl_seconds overwrite type "},
    {"/save_weights_for_sampler", NULL,
     " model_id path sampling_session_seq_id seq_id ttl_seconds type "},
    {"/load_weights", NULL,
     " model_id session_id model_seq_id base_model user_metadata path seq_id "
     "optimizer weights_access_token type "},
    {"/create_sampling_session", NULL,
     " session_id sampling_session_seq_id base_model model_path type "},
    {"/asample", NULL,
     " num_samples prompt sampling_params base_model model_path "
     "sampling_session_id seq_id prompt_logprobs topk_prompt_logprobs type "},
    {"/stream_sample", NULL,
     " num_samples prompt sampling_params base_model model_path "
     "sampling_session_id seq_id prompt_logprobs topk_prompt_logprobs type "},
    {"/retrieve_future", NULL, " request_id allow_metadata_only "},
    {"/weights_info", NULL, " tinker_path "},
};

static int is_known(const char *known, const char *name) {
  size_t n = strlen(name);

  if (strchr(name, ' ') != NULL)
    return 0;
  for (const char *p = known; (p = strstr(p, name)) != NULL; p++)
    if (n > 0 && p[-1] == ' ' && p[n] == ' ')
      return 1;
  return 0;
}

static void put_extra(tnk__json_writer_t *w, const char *inside,
                      const char *name) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", "extra_forbidden");
  tnk__json_put_array(w, "loc");
  tnk__json_text(w, "body");
  if (inside != NULL)
    tnk__json_text(w, inside);
  tnk__json_text(w, name);
  tnk__json_end(w);
  tnk__json_put_text(w, "msg", "Extra inputs are not permitted");
  tnk__json_end(w);
}

/* Write the unknown members of the row's object. Returns their number. */
static size_t put_extras(tnk__json_writer_t *w, const row_t *row,
                         const json_t *body) {
  const json_t *object =
      row->inside != NULL ? json_object_get(body, row->inside) : body;
  size_t n = 0;
  const char *name;
  json_t *value;

  json_object_foreach((json_t *)object, name, value) {
    if (is_known(row->known, name))
      continue;
    put_extra(w, row->inside, name);
    n++;
  }
  return n;
}

int local_members_check(local_call_t *call, const char *path) {
  size_t n = 0;
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "detail");
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    if (strcmp(rows[i].path, path) == 0)
      n += put_extras(&out.w, &rows[i], call->body);
  tnk__json_end(&out.w);
  if (n == 0) {
    tnk__buf_deinit(&out.buf);
    return 1;
  }
  local_out_reply(&out, call->req, 422);
  return 0;
}
