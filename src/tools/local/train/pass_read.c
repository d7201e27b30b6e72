#include "tools/local/train/pass_read.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tools/local/call/prompt.h"
#include "tools/local/lm/check.h"
#include "tools/local/train/provenance.h"

/* Far above the 1,024 examples per request that clients send. */
enum { MAX_DATUMS = 65536, MAX_SETTINGS = 64 };

/* ---- Loss inputs ---- */

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

/* ---- Common ---- */

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

/* ---- Protobuf ---- */

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
             ? local_origin_read(op, &op->u.pass.origins[at], from)
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

/* ---- JSON ---- */

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
