/* SPDX-License-Identifier: MIT */
/* Structs of libtnk as dicts, in both directions, and arguments of calls. */
#include <string.h>

#include "bindings/python/native/native.h"

typedef enum {
  TEXT,
  I32,
  U32,
  I64,
  U64,
  F64,
  CHOICE, /* True, False, or None for the default */
  FLAG,   /* an int that is 0 or 1 */
  PAIRS,
  TEXTS,
  SETTINGS, /* a dict of numbers and strings */
  RECORDS,  /* a list of dicts */
  RECORD
} kind_t;

typedef struct {
  const char *name;
  size_t offset;
  size_t count; /* offset of the number of elements */
  kind_t kind;
  const char *type; /* of a record */
} member_t;

typedef struct {
  const char *name;
  size_t size;
  const member_t *members;
  size_t n_members;
} record_t;

#define ONE(T, member, kind)                                                   \
  { #member, offsetof(T, member), 0, kind, NULL }
#define MANY(T, member, kind)                                                  \
  { #member, offsetof(T, member), offsetof(T, n_##member), kind, NULL }
#define ROWS(T, member, type)                                                  \
  { #member, offsetof(T, member), offsetof(T, n_##member), RECORDS, type }
#define INNER(T, member, type)                                                 \
  { #member, offsetof(T, member), 0, RECORD, type }

#define T tnk_service_options_t
static const member_t service_options[] = {
    ONE(T, api_key, TEXT),          ONE(T, base_url, TEXT),
    ONE(T, project_id, TEXT),       ONE(T, tags, TEXT),
    ONE(T, credential_cmd, TEXT),   ONE(T, display_name, TEXT),
    MANY(T, user_metadata, PAIRS),  MANY(T, headers, PAIRS),
    ONE(T, ca_file, TEXT),          ONE(T, proxy, TEXT),
    ONE(T, timeout_ms, U64),        ONE(T, connect_timeout_ms, U64),
    ONE(T, max_retries, U32),       ONE(T, max_polls, U32),
    ONE(T, patience_ms, U64),       ONE(T, max_billing_pause_ms, U64),
    ONE(T, retry_samples, CHOICE),  ONE(T, recovery, CHOICE),
    ONE(T, recovery_attempts, U32), ONE(T, dump_file, TEXT),
    ONE(T, traceparent, TEXT),      ONE(T, http_version, I32)};
#undef T
#define T tnk_lora_options_t
static const member_t lora_options[] = {ONE(T, base_model, TEXT),
                                        ONE(T, rank, U32),
                                        ONE(T, seed, I64),
                                        ONE(T, optimizer, I32),
                                        ONE(T, train_mlp, CHOICE),
                                        ONE(T, train_attn, CHOICE),
                                        ONE(T, train_unembed, CHOICE),
                                        ONE(T, optimizer_json, TEXT),
                                        MANY(T, user_metadata, PAIRS)};
#undef T
#define T tnk_restore_options_t
static const member_t restore_options[] = {ONE(T, path, TEXT),
                                           ONE(T, base_model, TEXT),
                                           ONE(T, with_optimizer, CHOICE),
                                           ONE(T, optimizer, I32),
                                           ONE(T, optimizer_json, TEXT),
                                           ONE(T, weights_access_token, TEXT),
                                           MANY(T, user_metadata, PAIRS)};
#undef T
#define T tnk_sampling_options_t
static const member_t sampling_options[] = {
    ONE(T, model_path, TEXT), ONE(T, base_model, TEXT),
    ONE(T, record_stability_info, CHOICE), ONE(T, exported, TEXT)};
#undef T
#define T tnk_sample_options_t
static const member_t sample_options[] = {ONE(T, n_samples, U32),
                                          ONE(T, prompt_logprobs, CHOICE),
                                          ONE(T, topk_prompt_logprobs, U32),
                                          ONE(T, topk_sample_logprobs, U32),
                                          ONE(T, prompt_alt_tokens_k, U32),
                                          ONE(T, prompt_logprobs_last_n, U32)};
#undef T
#define T tnk_logprobs_options_t
static const member_t logprobs_options[] = {ONE(T, last_n, U32)};
#undef T
#define T tnk_pass_options_t
static const member_t pass_options[] = {ONE(T, loss_fn, TEXT),
                                        MANY(T, settings, SETTINGS)};
#undef T
#define T tnk_optim_t
static const member_t optim[] = {ONE(T, optimizer, I32),
                                 ONE(T, learning_rate, F64),
                                 ONE(T, beta1, F64),
                                 ONE(T, beta2, F64),
                                 ONE(T, eps, F64),
                                 ONE(T, weight_decay, F64),
                                 ONE(T, grad_clip_norm, F64),
                                 ONE(T, json, TEXT)};
#undef T
#define T tnk_save_options_t
static const member_t save_options[] = {
    ONE(T, ttl_seconds, U64), ONE(T, overwrite, CHOICE),
    MANY(T, user_metadata, PAIRS), MANY(T, recipients, TEXTS)};
#undef T
#define T tnk_load_options_t
static const member_t load_options[] = {ONE(T, path, TEXT),
                                        ONE(T, with_optimizer, CHOICE),
                                        ONE(T, weights_access_token, TEXT)};
#undef T
#define T tnk_list_options_t
static const member_t list_options[] = {ONE(T, limit, U32), ONE(T, scope, I32),
                                        ONE(T, offset, U64),
                                        ONE(T, project_id, TEXT)};
#undef T
#define T tnk_copy_options_t
static const member_t copy_options[] = {
    ONE(T, path, TEXT), ONE(T, project_id, TEXT), ONE(T, ttl_seconds, I64),
    ONE(T, weights_access_token, TEXT)};
#undef T
#define T tnk_search_options_t
static const member_t search_options[] = {
    ONE(T, session_id, TEXT),    ONE(T, display_name, TEXT),
    MANY(T, project_ids, TEXTS), MANY(T, user_metadata, PAIRS),
    MANY(T, owner_urns, TEXTS),  ONE(T, owner, I32),
    ONE(T, states, U32),         ONE(T, limit, U32)};
#undef T
#define T tnk_ledger_options_t
static const member_t ledger_options[] = {
    ONE(T, run, TEXT), ONE(T, every_steps, U64), ONE(T, every_seconds, U64),
    ONE(T, ttl_seconds, U64), ONE(T, n_rolling, U64)};
#undef T
#define T tnk_ledger_save_t
static const member_t ledger_save[] = {
    ONE(T, name, TEXT),       ONE(T, cursor, TEXT),
    ONE(T, batch, U64),       ONE(T, epoch, U64),
    ONE(T, ttl_seconds, U64), ONE(T, with_sampler, CHOICE),
    ONE(T, is_final, CHOICE), ONE(T, is_rolling, CHOICE)};
#undef T
#define T tnk_ledger_resume_t
static const member_t ledger_resume[] = {ONE(T, with_optimizer, CHOICE)};
#undef T
#define T tnk_ledger_entry_t
static const member_t ledger_entry[] = {
    ONE(T, name, TEXT),    ONE(T, state_path, TEXT), ONE(T, sampler_path, TEXT),
    ONE(T, cursor, TEXT),  ONE(T, batch, I64),       ONE(T, epoch, I64),
    ONE(T, n_steps, U64),  ONE(T, n_passes, U64),    ONE(T, time_s, I64),
    ONE(T, is_final, FLAG)};
#undef T
#define T tnk_budget_t
static const member_t budget[] = {ONE(T, max_tokens, U64), ONE(T, max_usd, F64),
                                  ROWS(T, prices, "tnk_price_t"),
                                  ONE(T, prices_file, TEXT)};
#undef T
#define T tnk_price_t
static const member_t price[] = {ONE(T, model, TEXT), ONE(T, prompt, F64),
                                 ONE(T, cached, F64), ONE(T, sampled, F64),
                                 ONE(T, trained, F64)};
#undef T
#define T tnk_loss_argument_t
static const member_t loss_argument[] = {ONE(T, name, TEXT),
                                         ONE(T, n_dims, U32)};
#undef T
#define T tnk_loss_options_t
static const member_t loss_options[] = {
    ONE(T, name, TEXT), ROWS(T, arguments, "tnk_loss_argument_t"),
    ONE(T, graph, TEXT)};
#undef T
#define T tnk_model_t
static const member_t model[] = {
    ONE(T, name, TEXT), ONE(T, max_context_length, I64),
    ONE(T, trainable, CHOICE), ONE(T, sampleable, CHOICE)};
#undef T
#define T tnk_training_info_t
static const member_t training_info[] = {
    ONE(T, model_id, TEXT),  ONE(T, base_model, TEXT),
    ONE(T, arch, TEXT),      ONE(T, tokenizer_id, TEXT),
    ONE(T, optimizer, TEXT), ONE(T, lora_rank, U32)};
#undef T
#define T tnk_checkpoint_t
static const member_t checkpoint[] = {
    ONE(T, path, TEXT),      ONE(T, id, TEXT),
    ONE(T, type, TEXT),      ONE(T, is_public, FLAG),
    ONE(T, time_us, I64),    ONE(T, expires_us, I64),
    ONE(T, size_bytes, I64), MANY(T, user_metadata, PAIRS)};
#undef T
#define T tnk_run_t
static const member_t run[] = {
    ONE(T, id, TEXT),
    ONE(T, base_model, TEXT),
    ONE(T, owner, TEXT),
    ONE(T, is_lora, FLAG),
    ONE(T, is_corrupted, FLAG),
    ONE(T, lora_rank, I64),
    ONE(T, last_request_us, I64),
    INNER(T, last_checkpoint, "tnk_checkpoint_t"),
    INNER(T, last_sampler_checkpoint, "tnk_checkpoint_t"),
    MANY(T, user_metadata, PAIRS)};
#undef T
#define T tnk_weights_info_t
static const member_t weights_info[] = {
    ONE(T, base_model, TEXT),    ONE(T, is_lora, FLAG),
    ONE(T, lora_rank, I64),      ONE(T, train_mlp, CHOICE),
    ONE(T, train_attn, CHOICE),  ONE(T, train_unembed, CHOICE),
    ONE(T, optimizer_json, TEXT)};
#undef T
#define T tnk_external_files_t
static const member_t external_files[] = {MANY(T, files, PAIRS),
                                          ONE(T, expires_us, I64)};
#undef T
#define T tnk_session_status_t
static const member_t session_status[] = {
    ONE(T, type, TEXT), ONE(T, detail, TEXT), ONE(T, category, TEXT),
    ONE(T, message, TEXT), ONE(T, reason, TEXT)};
#undef T
#define T tnk_session_t
static const member_t session[] = {ONE(T, id, TEXT),
                                   ONE(T, display_name, TEXT),
                                   ONE(T, owner, TEXT),
                                   ONE(T, project_id, TEXT),
                                   ONE(T, created_us, I64),
                                   ONE(T, n_checkpoints, I64),
                                   ONE(T, checkpoint_bytes, I64),
                                   INNER(T, status, "tnk_session_status_t"),
                                   MANY(T, user_metadata, PAIRS),
                                   MANY(T, run_ids, TEXTS),
                                   MANY(T, sampler_ids, TEXTS)};
#undef T
#define T tnk_sampler_t
static const member_t sampler[] = {ONE(T, id, TEXT), ONE(T, base_model, TEXT),
                                   ONE(T, model_path, TEXT)};
#undef T
#define T tnk_identity_t
static const member_t identity[] = {ONE(T, user_urn, TEXT),
                                    ONE(T, org_urn, TEXT), ONE(T, email, TEXT)};
#undef T
#define T tnk_usage_event_t
static const member_t usage_event[] = {ONE(T, type, TEXT), ONE(T, json, TEXT)};
#undef T
#define T tnk_usage_t
static const member_t usage[] = {ONE(T, start_us, I64),
                                 ONE(T, end_us, I64),
                                 ONE(T, base_model, TEXT),
                                 ONE(T, user_id, TEXT),
                                 ONE(T, user_name, TEXT),
                                 ONE(T, session_id, TEXT),
                                 ONE(T, project_id, TEXT),
                                 INNER(T, event, "tnk_usage_event_t"),
                                 ONE(T, cost_usd, F64),
                                 ONE(T, usd_per_million_tokens, F64),
                                 ONE(T, usd_per_gigabyte_month, F64),
                                 MANY(T, user_metadata, PAIRS)};
#undef T
#define T tnk_storage_t
static const member_t storage[] = {
    ONE(T, project_id, TEXT),    ONE(T, user_urn, TEXT),
    ONE(T, user_email, TEXT),    ONE(T, user_name, TEXT),
    ONE(T, n_checkpoints, I64),  ONE(T, size_bytes, I64),
    ONE(T, size_gigabytes, F64), ONE(T, usd_per_month, F64)};
#undef T
#define T tnk_audit_entry_t
static const member_t audit_entry[] = {
    ONE(T, time_us, I64),   ONE(T, event, TEXT),       ONE(T, details, TEXT),
    ONE(T, model_id, TEXT), ONE(T, tinker_path, TEXT), ONE(T, purpose, TEXT)};
#undef T
#define T tnk_totals_t
static const member_t totals[] = {
    ONE(T, n_prompt_tokens, U64),   ONE(T, n_cached_tokens, U64),
    ONE(T, n_sampled_tokens, U64),  ONE(T, n_trained_tokens, U64),
    ONE(T, n_doubtful_tokens, U64), ONE(T, n_requests, U64),
    ONE(T, n_bytes_sent, U64),      ONE(T, n_bytes_received, U64),
    ONE(T, cost_usd, F64),          ONE(T, doubtful_usd, F64)};
#undef T

#define T tnk_gateway_options_t
static const member_t gateway_options[] = {ONE(T, host, TEXT),
                                           ONE(T, key, TEXT),
                                           ONE(T, model, TEXT),
                                           ONE(T, record, TEXT),
                                           MANY(T, variables, PAIRS),
                                           ONE(T, family, I32),
                                           ONE(T, port, I32),
                                           ONE(T, max_requests, U32),
                                           ONE(T, max_tokens, I32),
                                           ONE(T, max_memory, U64),
                                           ONE(T, max_body, U64),
                                           ONE(T, max_connections, U32),
                                           ONE(T, keep_alive_ms, U32),
                                           ONE(T, tls_cert, TEXT),
                                           ONE(T, tls_key, TEXT),
                                           ONE(T, record_sync, CHOICE),
                                           ONE(T, keep_control_tokens, CHOICE),
                                           ONE(T, admin_key, TEXT),
                                           ONE(T, usd_prompt, F64),
                                           ONE(T, usd_sampled, F64),
                                           ONE(T, usd_cached, F64),
                                           ONE(T, formats, I32),
                                           ONE(T, max_attempts, U32),
                                           ONE(T, repeat_ms, U32),
                                           ONE(T, keep_unexported, CHOICE),
                                           ONE(T, keep_sessions, U64),
                                           ONE(T, keep_age_ms, U64),
                                           ONE(T, client_ca_file, TEXT),
                                           ONE(T, client_crl_file, TEXT),
                                           ONE(T, client_optional, CHOICE)};
#undef T
#define T tnk_gateway_key_options_t
static const member_t gateway_key_options[] = {
    ONE(T, session, TEXT),       ONE(T, expires_in_s, U64),
    ONE(T, max_requests, U64),   ONE(T, max_tokens, U64),
    ONE(T, max_turns, U64),      ONE(T, max_usd, F64),
    ONE(T, max_body, U64),       ONE(T, max_concurrent, U32),
    ONE(T, max_per_minute, U32), ONE(T, may_reward, CHOICE),
    ONE(T, certificate, TEXT)};
#undef T
#define T tnk_gateway_stats_t
static const member_t gateway_stats[] = {
    ONE(T, n_requests, U64),  ONE(T, n_answered, U64),
    ONE(T, n_failed, U64),    ONE(T, n_gone, U64),
    ONE(T, n_tokens, U64),    ONE(T, n_continued, U64),
    ONE(T, n_under_way, U32), ONE(T, n_connections, U32),
    ONE(T, version, U32),     ONE(T, n_old_samplers, U32)};
#undef T

#define TABLE(type, members)                                                   \
  { #type, sizeof(type), members, sizeof(members) / sizeof(*(members)) }
static const record_t records[] = {
    TABLE(tnk_service_options_t, service_options),
    TABLE(tnk_lora_options_t, lora_options),
    TABLE(tnk_restore_options_t, restore_options),
    TABLE(tnk_sampling_options_t, sampling_options),
    TABLE(tnk_sample_options_t, sample_options),
    TABLE(tnk_logprobs_options_t, logprobs_options),
    TABLE(tnk_pass_options_t, pass_options),
    TABLE(tnk_optim_t, optim),
    TABLE(tnk_save_options_t, save_options),
    TABLE(tnk_load_options_t, load_options),
    TABLE(tnk_list_options_t, list_options),
    TABLE(tnk_copy_options_t, copy_options),
    TABLE(tnk_search_options_t, search_options),
    TABLE(tnk_ledger_options_t, ledger_options),
    TABLE(tnk_ledger_save_t, ledger_save),
    TABLE(tnk_ledger_resume_t, ledger_resume),
    TABLE(tnk_ledger_entry_t, ledger_entry),
    TABLE(tnk_budget_t, budget),
    TABLE(tnk_price_t, price),
    TABLE(tnk_loss_argument_t, loss_argument),
    TABLE(tnk_loss_options_t, loss_options),
    TABLE(tnk_model_t, model),
    TABLE(tnk_training_info_t, training_info),
    TABLE(tnk_checkpoint_t, checkpoint),
    TABLE(tnk_run_t, run),
    TABLE(tnk_weights_info_t, weights_info),
    TABLE(tnk_external_files_t, external_files),
    TABLE(tnk_session_status_t, session_status),
    TABLE(tnk_session_t, session),
    TABLE(tnk_sampler_t, sampler),
    TABLE(tnk_identity_t, identity),
    TABLE(tnk_usage_event_t, usage_event),
    TABLE(tnk_usage_t, usage),
    TABLE(tnk_storage_t, storage),
    TABLE(tnk_audit_entry_t, audit_entry),
    TABLE(tnk_totals_t, totals),
    TABLE(tnk_gateway_options_t, gateway_options),
    TABLE(tnk_gateway_key_options_t, gateway_key_options),
    TABLE(tnk_gateway_stats_t, gateway_stats)};

static const record_t *find_record(const char *name) {
  size_t i;

  for (i = 0; i < sizeof(records) / sizeof(*records); i++)
    if (strcmp(records[i].name, name) == 0)
      return &records[i];
  PyErr_Format(PyExc_ValueError, "no struct %s", name);
  return NULL;
}

static const member_t *find_member(const record_t *record, PyObject *name) {
  size_t i;

  for (i = 0; i < record->n_members; i++)
    if (PyUnicode_CompareWithASCIIString(name, record->members[i].name) == 0)
      return &record->members[i];
  PyErr_Format(PyExc_TypeError, "%s has no member %S", record->name, name);
  return NULL;
}

/* ---- From Python ---- */

/* A copy as UTF-8; a NUL inside is refused. */
const char *op_string(op_t *op, PyObject *text) {
  PyObject *bytes;
  char *copy = NULL;
  char *data;

  if (!PyUnicode_Check(text)) {
    PyErr_Format(PyExc_TypeError, "expected a string, not %R", text);
    return NULL;
  }
  bytes = PyUnicode_AsUTF8String(text);
  if (bytes == NULL)
    return NULL;
  if (PyBytes_AsStringAndSize(bytes, &data, NULL) == 0)
    copy = op_alloc(op, strlen(data) + 1, 1);
  if (copy != NULL)
    memcpy(copy, data, strlen(data) + 1);
  Py_DECREF(bytes);
  return copy;
}

int pack_pairs(op_t *op, const void **out, size_t *n, PyObject *dict) {
  tnk_pair_t *pairs;
  Py_ssize_t position = 0;
  PyObject *name;
  PyObject *value;

  if (!PyDict_Check(dict)) {
    PyErr_Format(PyExc_TypeError, "expected a dict of strings, not %R", dict);
    return -1;
  }
  pairs = op_alloc(op, (size_t)PyDict_Size(dict) + 1, sizeof(*pairs));
  *out = pairs;
  while (pairs != NULL && PyDict_Next(dict, &position, &name, &value)) {
    pairs->name = op_string(op, name);
    pairs->value = pairs->name != NULL ? op_string(op, value) : NULL;
    if (pairs->value == NULL)
      return -1;
    pairs++;
    (*n)++;
  }
  return pairs != NULL ? 0 : -1;
}

static int pack_settings(op_t *op, const void **out, size_t *n,
                         PyObject *dict) {
  tnk_loss_setting_t *rows;
  Py_ssize_t position = 0;
  PyObject *name;
  PyObject *value;

  if (!PyDict_Check(dict)) {
    PyErr_Format(PyExc_TypeError, "expected a dict, not %R", dict);
    return -1;
  }
  rows = op_alloc(op, (size_t)PyDict_Size(dict) + 1, sizeof(*rows));
  *out = rows;
  while (rows != NULL && PyDict_Next(dict, &position, &name, &value)) {
    rows->name = op_string(op, name);
    if (rows->name != NULL && PyUnicode_Check(value))
      rows->text = op_string(op, value);
    else if (rows->name != NULL)
      rows->number = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
      return -1;
    rows++;
    (*n)++;
  }
  return rows != NULL ? 0 : -1;
}

int pack_texts(op_t *op, const void **out, size_t *n, PyObject *list) {
  const Py_ssize_t length = PyList_Check(list) ? PyList_Size(list) : -1;
  const char **texts;
  Py_ssize_t i;

  if (length < 0) {
    PyErr_Format(PyExc_TypeError, "expected a list of strings, not %R", list);
    return -1;
  }
  texts = op_alloc(op, (size_t)length + 1, sizeof(*texts));
  for (i = 0; texts != NULL && i < length; i++) {
    texts[i] = op_string(op, PyList_GetItem(list, i));
    if (texts[i] == NULL)
      return -1;
  }
  *out = texts;
  *n = (size_t)length;
  return texts != NULL ? 0 : -1;
}

static int pack_records(op_t *op, const char *type, const void **out, size_t *n,
                        PyObject *list) {
  const Py_ssize_t length = PyList_Check(list) ? PyList_Size(list) : -1;
  const record_t *record = find_record(type);
  char *rows;
  Py_ssize_t i;

  if (length < 0)
    PyErr_Format(PyExc_TypeError, "expected a list of dicts, not %R", list);
  if (length < 0 || record == NULL)
    return -1;
  rows = op_alloc(op, (size_t)length + 1, record->size);
  for (i = 0; rows != NULL && i < length; i++) {
    PyObject *item = PyList_GetItem(list, i);
    const void *row = NULL;
    if (PyDict_Check(item))
      row = pack_record(op, type, item);
    else
      PyErr_Format(PyExc_TypeError, "expected a dict, not %R", item);
    if (row == NULL)
      return -1;
    memcpy(rows + (size_t)i * record->size, row, record->size);
  }
  *out = rows;
  *n = (size_t)length;
  return rows != NULL ? 0 : -1;
}

static int pack_many(op_t *op, const member_t *member, char *record,
                     PyObject *value) {
  const void **out = (const void **)(void *)(record + member->offset);
  size_t *n = (size_t *)(void *)(record + member->count);

  switch (member->kind) {
  case PAIRS:
    return pack_pairs(op, out, n, value);
  case TEXTS:
    return pack_texts(op, out, n, value);
  case SETTINGS:
    return pack_settings(op, out, n, value);
  default:
    return pack_records(op, member->type, out, n, value);
  }
}

static int out_of_range(const member_t *member, PyObject *value) {
  PyErr_Format(PyExc_ValueError, "%s is out of range: %R", member->name, value);
  return -1;
}

static int pack_integer(const member_t *member, void *out, PyObject *value) {
  PyObject *index = PyNumber_Index(value);
  long long number;

  if (index == NULL)
    return -1;
  number = PyLong_AsLongLong(index);
  if (member->kind == U64 && PyErr_Occurred()) {
    PyErr_Clear();
    *(uint64_t *)out = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    return PyErr_Occurred() ? -1 : 0;
  }
  Py_DECREF(index);
  if (number == -1 && PyErr_Occurred())
    return -1;
  if ((member->kind == U64 || member->kind == U32) && number < 0)
    return out_of_range(member, value);
  if (member->kind == I64 || member->kind == U64)
    *(int64_t *)out = number;
  else if (member->kind == U32 && number <= UINT32_MAX)
    *(uint32_t *)out = (uint32_t)number;
  else if (number >= INT32_MIN && number <= INT32_MAX)
    *(int32_t *)out = (int32_t)number;
  else
    return out_of_range(member, value);
  return 0;
}

static int pack_member(op_t *op, const member_t *member, char *record,
                       PyObject *value) {
  void *out = record + member->offset;

  switch (member->kind) {
  case TEXT:
    *(const char **)out = op_string(op, value);
    return *(const char **)out != NULL ? 0 : -1;
  case F64:
    *(double *)out = PyFloat_AsDouble(value);
    return PyErr_Occurred() ? -1 : 0;
  case CHOICE:
    *(tnk_choice_t *)out = PyObject_IsTrue(value) ? TNK_YES : TNK_NO;
    return 0;
  case I32:
  case U32:
  case I64:
  case U64:
    return pack_integer(member, out, value);
  default:
    return pack_many(op, member, record, value);
  }
}

/* A struct with its defaults and the values that are not None. */
void *pack_record(op_t *op, const char *type, PyObject *values) {
  const record_t *record = find_record(type);
  void *out = record != NULL ? op_alloc(op, 1, record->size) : NULL;
  Py_ssize_t position = 0;
  PyObject *name;
  PyObject *value;

  if (out == NULL)
    return NULL;
  /* Structs of other libraries than libtnk are zero, but for their size. */
  if (tnk_init(type, out, record->size) != TNK_OK)
    memcpy(out, &record->size, sizeof(record->size));
  while (PyDict_Next(values, &position, &name, &value)) {
    const member_t *member;
    if (value == Py_None)
      continue;
    member = find_member(record, name);
    if (member == NULL || pack_member(op, member, out, value) != 0)
      return NULL;
  }
  return out;
}

/* ("struct", dict) */
static int read_struct(op_t *op, tnk_value_t *out, PyObject *value) {
  const char *type;
  PyObject *values;
  int err = -1;

  if (PyArg_ParseTuple(value, "sO!", &type, &PyDict_Type, &values)) {
    out->pointer = pack_record(op, type, values);
    err = out->pointer != NULL ? 0 : -1;
  }
  return err;
}

int read_argument(op_t *op, tnk_value_t *out, PyObject *value) {
  if (value == Py_None)
    return 0;
  if (PyUnicode_Check(value)) {
    out->pointer = (void *)op_string(op, value);
    return out->pointer != NULL ? 0 : -1;
  }
  if (PyFloat_Check(value)) {
    out->number = PyFloat_AsDouble(value);
    return 0;
  }
  if (PyTuple_Check(value))
    return read_struct(op, out, value);
  if (promise_of(value) != NULL) {
    out->pointer = promise_of(value);
    return 0;
  }
  out->integer = PyLong_AsLongLong(value);
  return PyErr_Occurred() ? -1 : 0;
}

/* ---- To Python ---- */

static PyObject *text_of(const char *text) {
  if (text == NULL)
    Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *pairs_of(const tnk_pair_t *pairs, size_t n) {
  PyObject *dict;
  size_t i;

  if (pairs == NULL)
    Py_RETURN_NONE;
  dict = PyDict_New();
  for (i = 0; dict != NULL && i < n; i++) {
    PyObject *value = text_of(pairs[i].value);
    if (value == NULL || PyDict_SetItemString(dict, pairs[i].name, value) != 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

static PyObject *texts_of(const char *const *texts, size_t n) {
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *item = text_of(texts[i]);
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *many_of(const member_t *member, const char *record) {
  const void *const *data = (const void *)(record + member->offset);
  const size_t n = *(const size_t *)(const void *)(record + member->count);

  return member->kind == PAIRS ? pairs_of(*data, n) : texts_of(*data, n);
}

static PyObject *member_of(const member_t *member, const char *record) {
  const void *data = record + member->offset;

  switch (member->kind) {
  case TEXT:
    return text_of(*(const char *const *)data);
  case F64:
    return PyFloat_FromDouble(*(const double *)data);
  case CHOICE:
    if (*(const tnk_choice_t *)data == TNK_DEFAULT)
      Py_RETURN_NONE;
    return PyBool_FromLong(*(const tnk_choice_t *)data == TNK_YES);
  case FLAG:
    return PyBool_FromLong(*(const int *)data);
  case I32:
    return PyLong_FromLong(*(const int32_t *)data);
  case U32:
    return PyLong_FromUnsignedLong(*(const uint32_t *)data);
  case I64:
    return PyLong_FromLongLong(*(const int64_t *)data);
  case U64:
    return PyLong_FromUnsignedLongLong(*(const uint64_t *)data);
  case RECORD:
    return unpack_record(member->type, *(const void *const *)data);
  default:
    return many_of(member, record);
  }
}

/* A dict of all members; None for NULL. */
PyObject *unpack_record(const char *type, const void *data) {
  const record_t *record = find_record(type);
  PyObject *dict;
  size_t i;

  if (record == NULL)
    return NULL;
  if (data == NULL)
    Py_RETURN_NONE;
  dict = PyDict_New();
  for (i = 0; dict != NULL && i < record->n_members; i++) {
    PyObject *value = member_of(&record->members[i], data);
    if (value == NULL ||
        PyDict_SetItemString(dict, record->members[i].name, value) != 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}
