/* SPDX-License-Identifier: MIT */
#include "tools/local/train/pass.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/format/pb.h"
#include "tools/local/lm/lm.h"
#include "tools/local/sample/record.h"

/* ---- Provenance ---- */

/* ---- Provenance: reading ---- */

static int read_runs(local_op_t *op, const local_run_t **out,
                     TinkerPublic__ProvenanceSpan **spans, size_t n) {
  local_run_t *runs = tnk__arena_calloc(&op->arena, n, sizeof(*runs));

  if (runs == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const TinkerPublic__ProvenanceSpan *span = spans[i];
    const char *id = "";

    if (span->span_case == TINKER_PUBLIC__PROVENANCE_SPAN__SPAN_PROMPT_TOKENS) {
      id = span->prompt_tokens->sequence_id;
      runs[i].offset = span->prompt_tokens->offset;
      runs[i].length = span->prompt_tokens->length;
    } else if (span->span_case ==
               TINKER_PUBLIC__PROVENANCE_SPAN__SPAN_SAMPLED_TOKENS) {
      runs[i].is_sampled = 1;
      id = span->sampled_tokens->sequence_id;
      runs[i].offset = span->sampled_tokens->offset;
      runs[i].length = span->sampled_tokens->length;
    }
    runs[i].sequence_id = tnk__arena_strdup(&op->arena, id);
    if (runs[i].sequence_id == NULL)
      return TNK_ENOMEM;
  }
  *out = runs;
  return TNK_OK;
}

/* Copy the runs of an example. Returns TNK_OK or TNK_ENOMEM. */
static int origin_read(local_op_t *op, local_origin_t *out,
                       const TinkerPublic__Datum *from) {
  int err = read_runs(op, &out->input, from->model_input_spans,
                      from->n_model_input_spans);

  out->n_input = from->n_model_input_spans;
  out->n_targets = from->n_loss_fn_input_spans;
  return err == TNK_OK ? read_runs(op, &out->targets, from->loss_fn_input_spans,
                                   from->n_loss_fn_input_spans)
                       : err;
}

/* ---- Provenance: looking up ---- */

/* An example, with the state of the walk through its runs. */
typedef struct {
  local_server_t *server;
  const char *session;
  const tnk__lm_datum_t *datum;
  float *logprobs; /* NULL while the input is checked */
  float *weights;
  tnk__lm_why_t *why;
} trace_t;

static int64_t token_at(const trace_t *t, size_t i) {
  return t->logprobs != NULL ? t->datum->targets[i]
                             : (int64_t)t->datum->tokens[i];
}

/* Targets in a prompt run have no weight, and programs use padding there. */
static int is_compared(const trace_t *t, const local_run_t *run) {
  return t->logprobs == NULL || run->is_sampled;
}

/* Process the tokens of one run, which begins at position `at`. */
static int follow(const trace_t *t, const local_run_t *run, size_t at) {
  const char *what = t->logprobs != NULL ? "target" : "input";
  const local_record_t *record =
      local_records_find(t->server, t->session, run->sequence_id);
  const int32_t *tokens;
  size_t n;

  if (record == NULL)
    return tnk__lm_refuse(
        t->why, TNK_EINVAL,
        "no record of sequence \"%.60s\": it was not sampled in this session "
        "with record_stability_info, or too long ago",
        run->sequence_id);
  tokens = run->is_sampled ? record->tokens : record->prompt;
  n = run->is_sampled ? record->n_tokens : record->n_prompt;
  if ((uint64_t)run->offset + (uint64_t)run->length > n)
    return tnk__lm_refuse(t->why, TNK_EINVAL,
                          "a %s span of sequence \"%.60s\" ends after its "
                          "%zu %s tokens",
                          what, run->sequence_id, n,
                          run->is_sampled ? "sampled" : "prompt");
  for (size_t k = 0; k < (size_t)run->length; k++) {
    size_t from = (size_t)run->offset + k;

    if (is_compared(t, run) && tokens[from] != token_at(t, at + k))
      return tnk__lm_refuse(t->why, TNK_EINVAL,
                            "%s token %zu is %lld, but its origin, sequence "
                            "\"%.60s\", has %d there",
                            what, at + k, (long long)token_at(t, at + k),
                            run->sequence_id, (int)tokens[from]);
    if (t->logprobs != NULL) {
      t->logprobs[at + k] = run->is_sampled ? record->logprobs[from] : 0;
      if (!run->is_sampled)
        t->weights[at + k] = 0;
    }
  }
  return TNK_OK;
}

static int follow_all(const trace_t *t, const local_run_t *runs, size_t n) {
  const char *what = t->logprobs != NULL ? "loss_fn_input" : "model_input";
  size_t at = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    if (runs[i].offset < 0 || runs[i].length < 0 ||
        runs[i].length > (int64_t)(t->datum->n_tokens - at) ||
        runs[i].offset > INT32_MAX)
      return tnk__lm_refuse(t->why, TNK_EINVAL,
                            "%s_spans do not fit the %zu tokens", what,
                            t->datum->n_tokens);
    err = follow(t, &runs[i], at);
    at += (size_t)runs[i].length;
  }
  if (err == TNK_OK && at != t->datum->n_tokens)
    return tnk__lm_refuse(t->why, TNK_EINVAL,
                          "%s_spans cover %zu of %zu tokens", what, at,
                          t->datum->n_tokens);
  return err;
}

static int trace(local_op_t *op, const local_session_t *session, size_t i,
                 tnk__lm_why_t *why) {
  const local_origin_t *origin = &op->u.pass.origins[i];
  tnk__lm_datum_t *datum = &op->u.pass.data[i];
  size_t n = datum->n_tokens;
  trace_t t = {session->server, session->id, datum, NULL, NULL, why};
  int err;

  if (datum->n_targets != 1)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"target_tokens\" has %zu targets a position",
                          datum->n_targets);
  if (origin->n_input == 0 || origin->n_targets == 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "stable_reinforce needs the provenance of every "
                          "token: model_input_spans and loss_fn_input_spans");
  err = follow_all(&t, origin->input, origin->n_input);
  if (err != TNK_OK)
    return err;
  t.logprobs = tnk__arena_calloc(&op->arena, n, sizeof(float));
  t.weights = tnk__arena_calloc(&op->arena, n, sizeof(float));
  if (t.logprobs == NULL || t.weights == NULL)
    return TNK_ENOMEM;
  for (size_t k = 0; k < n; k++)
    t.weights[k] = datum->weights != NULL ? datum->weights[k] : 1;
  err = follow_all(&t, origin->targets, origin->n_targets);
  datum->logprobs = t.logprobs;
  datum->weights = t.weights;
  return err == TNK_OK ? tnk__lm_datum_check(datum, &op->u.pass.loss, why)
                       : err;
}

int local_pass_trace(local_op_t *op, const local_session_t *session) {
  const local_pass_t *pass = &op->u.pass;
  tnk__lm_why_t why = {{0}};

  if (pass->loss.kind != TNK__LM_STABLE_REINFORCE)
    return TNK_OK;
  for (size_t i = 0; i < pass->n && op->err == TNK_OK; i++) {
    int err = trace(op, session, i, &why);

    if (err == TNK_ENOMEM)
      return err;
    if (err != TNK_OK)
      local_pass_note(op, i, &why);
  }
  return TNK_OK;
}

/* ---- Parsing ---- */

/* Far above the 1,024 examples per request that clients send. */
enum { MAX_DATUMS = 65536, MAX_SETTINGS = 64 };

/* ---- Parsing: loss inputs ---- */

static int need_floats(const local_tensor_t *t, const char *name, size_t n,
                       const float **out, tnk__lm_why_t *why) {
  if (t->floats == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "\"%s\" must be float32", name);
  if (t->n != n)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"%s\" has %zu values, expected %zu", name, t->n, n);
  *out = t->floats;
  return TNK_OK;
}

static int set_targets(tnk__lm_datum_t *datum, const local_tensor_t *t,
                       tnk__lm_why_t *why) {
  size_t n = datum->n_tokens;

  if (t->ints == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "\"target_tokens\" must be int64");
  datum->n_targets = 1;
  if (t->n_dims == 2 && t->shape[1] > 0)
    datum->n_targets = (size_t)t->shape[1];
  if (t->n != n * datum->n_targets)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"target_tokens\" has %zu values, expected %zu",
                          t->n, n * datum->n_targets);
  datum->targets = t->ints;
  return TNK_OK;
}

/* Unknown names are ignored, as by the service. Weights are set after the
 * targets, which determine their size. */
static int set_input(tnk__lm_datum_t *datum, const char *name,
                     const local_tensor_t *t, tnk__lm_why_t *why) {
  size_t n = datum->n_tokens;

  if (strcmp(name, "logprobs") == 0)
    return need_floats(t, name, n, &datum->logprobs, why);
  if (strcmp(name, "advantages") == 0)
    return need_floats(t, name, n, &datum->advantages, why);
  if (strcmp(name, "clip_low_threshold") == 0)
    return need_floats(t, name, n, &datum->clip_low, why);
  if (strcmp(name, "clip_high_threshold") == 0)
    return need_floats(t, name, n, &datum->clip_high, why);
  if (strcmp(name, "sequence_ratio_mask") == 0)
    return need_floats(t, name, n, &datum->mask, why);
  return TNK_OK;
}

/* The inputs may be in any order; they are set in the order targets, weights,
 * others. */
typedef struct {
  const char *name;
  local_tensor_t tensor;
} input_t;

static void apply(local_op_t *op, size_t at, tnk__lm_datum_t *datum,
                  const input_t *inputs, size_t n) {
  tnk__lm_why_t why = {{0}};
  int err = TNK_OK;

  for (size_t i = 0; i < n && err == TNK_OK; i++)
    if (strcmp(inputs[i].name, "target_tokens") == 0)
      err = set_targets(datum, &inputs[i].tensor, &why);
  if (err == TNK_OK && datum->targets == NULL)
    err = tnk__lm_refuse(&why, TNK_EINVAL, "the loss needs \"target_tokens\"");
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    if (strcmp(inputs[i].name, "weights") == 0)
      err = need_floats(&inputs[i].tensor, "weights",
                        datum->n_tokens * datum->n_targets, &datum->weights,
                        &why);
    else
      err = set_input(datum, inputs[i].name, &inputs[i].tensor, &why);
  }
  /* Its missing members are taken from its provenance. */
  if (err == TNK_OK && op->u.pass.loss.kind != TNK__LM_STABLE_REINFORCE)
    err = tnk__lm_datum_check(datum, &op->u.pass.loss, &why);
  if (err != TNK_OK)
    local_pass_note(op, at, &why);
}

static int place_in(tnk__lm_why_t *why, size_t datum, const char *name) {
  tnk__lm_why_t inner = *why;

  return tnk__lm_refuse(why, TNK_EINVAL, "datum %zu: \"%.60s\": %.120s", datum,
                        name, inner.text);
}

/* ---- Parsing: common ---- */

static int begin(local_op_t *op, size_t n, const char *loss,
                 const tnk_loss_setting_t *settings, size_t n_settings,
                 tnk__lm_why_t *why) {
  local_pass_t *pass = &op->u.pass;

  if (n > MAX_DATUMS)
    return tnk__lm_refuse(why, TNK_EINVAL, "more than %d datums", MAX_DATUMS);
  if (loss == NULL || loss[0] == '\0')
    return tnk__lm_refuse(why, TNK_EINVAL, "loss_fn is missing");
  if (tnk__lm_loss_init(&pass->loss, loss, settings, n_settings, why) != TNK_OK)
    return TNK_EINVAL;
  pass->n = n;
  pass->data = tnk__arena_calloc(&op->arena, n, sizeof(*pass->data));
  pass->logprobs = tnk__arena_calloc(&op->arena, n, sizeof(*pass->logprobs));
  for (size_t i = 0; i < n && pass->data != NULL; i++)
    pass->data[i].n_vocab = pass->n_vocab;
  if (pass->loss.kind == TNK__LM_STABLE_REINFORCE) {
    pass->origins = tnk__arena_calloc(&op->arena, n, sizeof(*pass->origins));
    if (pass->origins == NULL)
      return TNK_ENOMEM;
  }
  return pass->data != NULL && pass->logprobs != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Allocate the results after all input was parsed. */
static int finish(local_op_t *op) {
  local_pass_t *pass = &op->u.pass;

  for (size_t i = 0; i < pass->n && op->err == TNK_OK; i++) {
    pass->logprobs[i] = tnk__arena_calloc(
        &op->arena, pass->data[i].n_tokens * pass->data[i].n_targets,
        sizeof(float));
    if (pass->logprobs[i] == NULL)
      return TNK_ENOMEM;
  }
  return TNK_OK;
}

/* ---- Parsing: protobuf ---- */

static int chunks_proto(local_op_t *op, size_t at,
                        const TinkerPublic__Datum *from, tnk__lm_datum_t *datum,
                        tnk__lm_why_t *why) {
  int32_t *tokens;
  size_t n = 0;

  for (size_t i = 0; i < from->n_model_input; i++) {
    const TinkerPublic__Chunk *chunk = from->model_input[i];

    if (chunk->chunk_case != TINKER_PUBLIC__CHUNK__CHUNK_ENCODED_TEXT)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "datum %zu: %s reads text chunks only", at,
                            TNK__LM_NAME);
    if (chunk->encoded_text->tokens.len % 4 != 0)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "datum %zu: tokens of %zu bytes are not whole", at,
                            chunk->encoded_text->tokens.len);
    n += chunk->encoded_text->tokens.len / 4;
  }
  tokens = tnk__arena_calloc(&op->arena, n, sizeof(*tokens));
  if (tokens == NULL)
    return TNK_ENOMEM;
  datum->tokens = tokens;
  datum->n_tokens = n;
  for (size_t i = 0; i < from->n_model_input; i++) {
    const ProtobufCBinaryData *bytes =
        &from->model_input[i]->encoded_text->tokens;

    if (bytes->len > 0)
      memcpy(tokens, bytes->data, bytes->len);
    tokens += bytes->len / 4;
  }
  return TNK_OK;
}

static int datum_proto(local_op_t *op, size_t at,
                       const TinkerPublic__Datum *from, tnk__lm_why_t *why) {
  tnk__lm_datum_t *datum = &op->u.pass.data[at];
  int err = chunks_proto(op, at, from, datum, why);
  input_t *inputs;

  if (err != TNK_OK)
    return err;
  inputs =
      tnk__arena_calloc(&op->arena, from->n_loss_fn_inputs, sizeof(*inputs));
  if (inputs == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < from->n_loss_fn_inputs; i++) {
    inputs[i].name = from->loss_fn_inputs[i]->key;
    err = local_tensor_proto(&inputs[i].tensor, &op->arena,
                             from->loss_fn_inputs[i]->value, 0, why);
    if (err == TNK_EINVAL)
      return place_in(why, at, inputs[i].name);
    if (err != TNK_OK)
      return err;
  }
  apply(op, at, datum, inputs, from->n_loss_fn_inputs);
  return op->u.pass.origins != NULL
             ? origin_read(op, &op->u.pass.origins[at], from)
             : TNK_OK;
}

/* Field 7 has priority if it is present, because only it can hold strings. */
static int settings_proto(const TinkerPublic__ForwardBackwardRequest *request,
                          tnk_loss_setting_t *out, size_t *n,
                          tnk__lm_why_t *why) {
  size_t n_old = request->n_loss_fn_config;
  size_t n_new = request->n_loss_fn_config_v2;

  *n = n_new > 0 ? n_new : n_old;
  if (*n > MAX_SETTINGS)
    return tnk__lm_refuse(why, TNK_EINVAL, "loss_fn_config is too large");
  for (size_t i = 0; i < *n; i++) {
    const TinkerPublic__LossConfigValue *value;

    if (n_new == 0) {
      out[i] =
          (tnk_loss_setting_t){.name = request->loss_fn_config[i]->key,
                               .number = request->loss_fn_config[i]->value};
      continue;
    }
    value = request->loss_fn_config_v2[i]->value;
    out[i] = (tnk_loss_setting_t){.name = request->loss_fn_config_v2[i]->key};
    if (value != NULL &&
        value->value_case == TINKER_PUBLIC__LOSS_CONFIG_VALUE__VALUE_TEXT)
      out[i].text = value->text;
    else if (value != NULL)
      out[i].number = value->number;
  }
  return TNK_OK;
}

int local_pass_proto(local_op_t *op,
                     const TinkerPublic__ForwardBackwardRequest *request,
                     tnk__lm_why_t *why) {
  tnk_loss_setting_t settings[MAX_SETTINGS];
  size_t n_settings = 0;
  int err = settings_proto(request, settings, &n_settings, why);

  op->u.pass.backward = !request->forward_only;
  if (err == TNK_OK)
    err =
        begin(op, request->n_data, request->loss_fn, settings, n_settings, why);
  for (size_t i = 0; i < request->n_data && err == TNK_OK; i++)
    err = datum_proto(op, i, request->data[i], why);
  return err == TNK_OK ? finish(op) : err;
}

/* ---- Parsing: JSON ---- */

static int datum_json(local_op_t *op, size_t at, const json_t *from,
                      tnk__lm_why_t *why) {
  tnk__lm_datum_t *datum = &op->u.pass.data[at];
  const json_t *list = tnk__json_obj(from, "loss_fn_inputs");
  size_t n = json_object_size(list);
  input_t *inputs;
  const char *key;
  json_t *value;
  int err = local_tokens_json(&op->arena, tnk__json_obj(from, "model_input"),
                              &datum->tokens, &datum->n_tokens, why);

  if (err != TNK_OK)
    return err;
  if (list == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "datum %zu: loss_fn_inputs is missing", at);
  inputs = tnk__arena_calloc(&op->arena, n, sizeof(*inputs));
  if (inputs == NULL)
    return TNK_ENOMEM;
  n = 0;
  json_object_foreach((json_t *)list, key, value) {
    inputs[n].name = key;
    err = local_tensor_json(&inputs[n++].tensor, &op->arena, value, 0, why);
    if (err == TNK_EINVAL)
      return place_in(why, at, key);
    if (err != TNK_OK)
      return err;
  }
  apply(op, at, datum, inputs, n);
  return TNK_OK;
}

static int settings_json(const json_t *input, tnk_loss_setting_t *out,
                         size_t *n, tnk__lm_why_t *why) {
  const json_t *config = NULL;
  const char *key;
  json_t *value;

  if (tnk__json_get_object(input, "loss_fn_config", &config) ==
          TNK__JSON_WRONG ||
      json_object_size(config) > MAX_SETTINGS)
    return tnk__lm_refuse(why, TNK_EINVAL, "loss_fn_config is not an object");
  *n = 0;
  json_object_foreach((json_t *)config, key, value) {
    out[*n] = (tnk_loss_setting_t){.name = key};
    if (json_is_string(value))
      out[*n].text = json_string_value(value);
    else if (json_is_number(value))
      out[*n].number = json_number_value(value);
    else
      return tnk__lm_refuse(why, TNK_EINVAL, "\"%.60s\" is not a number", key);
    ++*n;
  }
  return TNK_OK;
}

int local_pass_json(local_op_t *op, const json_t *input, int backward,
                    tnk__lm_why_t *why) {
  tnk_loss_setting_t settings[MAX_SETTINGS];
  size_t n_settings = 0;
  const json_t *data = tnk__json_arr(input, "data");
  int err = settings_json(input, settings, &n_settings, why);

  op->u.pass.backward = backward;
  if (err == TNK_OK && data == NULL)
    err = tnk__lm_refuse(why, TNK_EINVAL, "\"data\" is missing");
  if (err == TNK_OK)
    err = begin(op, json_array_size(data), tnk__json_str(input, "loss_fn"),
                settings, n_settings, why);
  for (size_t i = 0; i < json_array_size(data) && err == TNK_OK; i++)
    err = datum_json(op, i, json_array_get(data, i), why);
  return err == TNK_OK ? finish(op) : err;
}

/* ---- Results ---- */

/*
 * Every example has one output, "logprobs". A record holds consecutive examples
 * with the same number of targets, because the record has the trailing shape.
 */

typedef struct {
  const local_pass_t *pass;
  size_t first;
  size_t n;
} run_t;

static size_t n_values(const local_pass_t *pass, size_t i) {
  return pass->data[i].n_tokens * pass->data[i].n_targets;
}

static void put_data(tnk__pb_t *pb, const run_t *run) {
  size_t n = 0;
  uint8_t *at;

  for (size_t i = 0; i < run->n; i++)
    n += n_values(run->pass, run->first + i);
  at = tnk__pb_open(pb, 1, n * sizeof(float));
  for (size_t i = 0; at != NULL && i < run->n; i++) {
    size_t size = n_values(run->pass, run->first + i) * sizeof(float);

    memcpy(at, run->pass->logprobs[run->first + i], size);
    at += size;
  }
}

static void put_offsets(tnk__pb_t *pb, const run_t *run) {
  uint8_t *at = tnk__pb_open(pb, 2, (run->n + 1) * sizeof(int64_t));
  int64_t offset = 0;

  for (size_t i = 0; at != NULL && i <= run->n; i++) {
    memcpy(at, &offset, sizeof(offset));
    at += sizeof(offset);
    if (i < run->n)
      offset += (int64_t)(n_values(run->pass, run->first + i) * sizeof(float));
  }
}

static void batched(tnk__pb_t *pb, const void *message) {
  const run_t *run = message;
  int64_t n_targets = (int64_t)run->pass->data[run->first].n_targets;

  put_data(pb, run);
  put_offsets(pb, run);
  tnk__pb_varint(pb, 3, 1); /* float32 */
  if (n_targets > 1)
    tnk__pb_packed(pb, 4, &n_targets, 1);
}

static void entry(tnk__pb_t *pb, const void *message) {
  tnk__pb_text(pb, 1, "logprobs");
  tnk__pb_message(pb, 2, batched, message);
}

static void record(tnk__pb_t *pb, const void *message) {
  const run_t *run = message;

  tnk__pb_message(pb, 2, entry, run);
  tnk__pb_varint(pb, 3, run->n);
}

static void metric(tnk__pb_t *pb, const void *message) {
  const local_pass_t *pass = message;

  tnk__pb_text(pb, 1, "loss:sum");
  tnk__pb_double(pb, 2, pass->loss_sum);
}

static void output(tnk__pb_t *pb, const local_pass_t *pass) {
  run_t run = {pass, 0, 0};

  tnk__pb_text(pb, 1, "scalar");
  /* Usually one record: the examples of a pass are alike. */
  while (run.first < pass->n) {
    run.n = 1;
    while (run.first + run.n < pass->n &&
           pass->data[run.first + run.n].n_targets ==
               pass->data[run.first].n_targets)
      run.n++;
    tnk__pb_message(pb, 2, record, &run);
    run.first += run.n;
  }
  tnk__pb_message(pb, 3, metric, pass);
}

void local_pass_write(tnk__buf_t *out, const local_pass_t *pass) {
  tnk__pb_t pb = {0};

  output(&pb, pass);
  pb = tnk__pb_whole(tnk__buf_reserve(out, pb.n));
  if (pb.at == NULL)
    return;
  output(&pb, pass);
  out->len += pb.n;
}
