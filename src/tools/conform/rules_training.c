/* SPDX-License-Identifier: MIT */
/* Rules about passes and steps: their results, and invalid requests.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/optim_wire.h"
#include "lib/wire/message/pass_result.h"
#include "tnk/result.h"
#include "tools/conform/state.h"

/* ---- Invalid bodies ---- */

typedef struct {
  const char *body;
  size_t n;
  const char *path;
  const char *type;
} raw_t;

#define PROTO "application/x-protobuf"

static conform_call_t *bad_body(conform_t *c) {
  const raw_t *raw = c->about;
  const conform_ask_t ask = {.method = "POST",
                             .path = raw->path,
                             .body = raw->body,
                             .n_body = raw->n,
                             .type = raw->type};

  return conform_ask(c, &ask);
}

/* The request format before protobuf. A server that can parse it answers that
 * the model is unknown. */
static conform_call_t *json_pass(conform_t *c) {
  const raw_t *raw = c->about;

  return conform_post(
      c, raw->path,
      "{s:s,s:i,s:{s:[{s:{s:{s:[i,i],s:s,s:[i]}},s:{s:[{s:[i,i],s:s}]}}],s:s}}",
      "model_id", CONFORM_NONE, "seq_id", 1, raw->body, "data",
      "loss_fn_inputs", "target_tokens", "data", 1, 2, "dtype", "int64",
      "shape", 2, "model_input", "chunks", "tokens", 1, 2, "type",
      "encoded_text", "loss_fn", "cross_entropy");
}

static conform_verdict_t json_read(conform_t *c) {
  const conform_call_t *call = c->call;

  if (call->status == 404 && !conform_is_absent(c, call))
    return conform_tell(c, CONFORM_HOLDS, "it is accepted");
  if (conform_is_absent(c, call) || conform_is_refusal(call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  return conform_other(c, call, "404, because there is no such model");
}

/* ---- A pass, and its result ---- */

/* Run a pass of the shared model. Returns NULL if the finding is recorded
 * already. */
static const tnk_pass_t *run_pass(conform_t *c, const conform_pass_t *pass) {
  tnk_pass_t **read = &c->passes[c->passes[0] != NULL];
  const conform_call_t *call;

  if (!conform_needs_shared_model(c))
    return NULL;
  call = conform_pass(c, c->model->id, c->model->seq, pass);
  if (conform_is_ok(call))
    c->model->seq++;
  if (!conform_succeeds(c, call, 1)) {
    conform_spoil(c);
    return NULL;
  }
  if (tnk__pass_result_read(read, tnk__allocator_default(),
                            c->end.last->body.data, c->end.last->body.len,
                            c->end.is_proto) == TNK_OK)
    return *read;
  conform_tell(c, CONFORM_DIFFERS, "the result cannot be parsed");
  return NULL;
}

/* The result of the pass in `about`; NULL: the default pass. */
static int passed(conform_t *c) {
  return run_pass(c, c->about) != NULL;
}

/* The log-probabilities of an example, or NULL. */
static const float *logprobs(const tnk_pass_t *pass, size_t i, size_t *n) {
  const tnk_tensor_t *tensor = tnk_pass_tensor(pass, i, "logprobs");

  if (tensor == NULL || tensor->dtype != TNK_F32)
    return NULL;
  *n = tensor->n_values;
  return tensor->data;
}

static const int32_t three[] = {104, 101, 108};
static const int64_t next_three[] = {101, 108, 111};
static const int32_t one[] = {104};
static const int64_t next_one[] = {101};
static const tnk_datum_t ragged[] = {
    {.input = {.tokens = three, .n_tokens = 3}, .targets = next_three},
    {.input = {.tokens = one, .n_tokens = 1}, .targets = next_one}};
static const float zeros[] = {0, 0, 0};
static const tnk_datum_t unweighted[] = {
    {.input = {.tokens = three, .n_tokens = 3},
     .targets = next_three,
     .weights = zeros}};

/* A pass returns one number for each token of each example. */
static conform_verdict_t pass_result(conform_t *c) {
  const tnk_pass_t *read = c->passes[0];
  size_t n[2] = {0, 0};

  if (tnk_pass_count(read) != 2)
    return conform_tell(c, CONFORM_DIFFERS, "%zu outputs for 2 examples",
                        tnk_pass_count(read));
  if (logprobs(read, 0, &n[0]) == NULL || logprobs(read, 1, &n[1]) == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no \"logprobs\"");
  if (n[0] != 3 || n[1] != 1)
    return conform_tell(c, CONFORM_DIFFERS,
                        "%zu and %zu logprobs for 3 and 1 tokens", n[0], n[1]);
  return conform_tell(c, CONFORM_HOLDS, "3 and 1");
}

static conform_verdict_t loss_sum(conform_t *c) {
  const tnk_metrics_t *metrics = tnk_pass_metrics(c->passes[0]);

  if (isnan(tnk_metrics_get(metrics, "loss:sum")))
    return conform_tell(c, CONFORM_ALLOWED, "not among %zu metrics",
                        tnk_metrics_count(metrics));
  return conform_holds(c);
}

/* The official client rejects a whole result if a key has no colon. */
static conform_verdict_t metric_keys(conform_t *c) {
  const tnk_metrics_t *metrics = tnk_pass_metrics(c->passes[0]);

  for (size_t i = 0; i < tnk_metrics_count(metrics); i++) {
    const char *key = tnk_metrics_key(metrics, i);
    const char *colon = strchr(key, ':');

    if (colon == NULL || strchr(colon + 1, ':') != NULL)
      return conform_tell(c, CONFORM_DIFFERS, "\"%.60s\"", key);
  }
  return conform_tell(c, CONFORM_HOLDS, "%zu", tnk_metrics_count(metrics));
}

static conform_verdict_t zero_weights(conform_t *c) {
  const tnk_metrics_t *metrics = tnk_pass_metrics(c->passes[0]);
  const double loss = tnk_metrics_get(metrics, "loss:sum");

  if (isnan(loss))
    return conform_tell(c, CONFORM_SKIPPED, "the metrics have no loss");
  if (loss != 0)
    return conform_tell(c, CONFORM_DIFFERS, "a loss of %g", loss);
  return conform_tell(c, CONFORM_HOLDS, "0");
}

/* Two forms of a request give the same numbers: the default pass, and the pass
 * in `about`. */
static conform_verdict_t same_numbers(conform_t *c) {
  const float *values[2];
  size_t n[2] = {0, 0};

  if (run_pass(c, NULL) == NULL || run_pass(c, c->about) == NULL)
    return conform_told(c);
  for (size_t i = 0; i < 2; i++)
    values[i] = logprobs(c->passes[i], 0, &n[i]);
  if (values[0] == NULL || values[1] == NULL || n[0] != n[1])
    return conform_tell(c, CONFORM_DIFFERS, "results of another form");
  for (size_t i = 0; i < n[0]; i++)
    if (!(fabsf(values[0][i] - values[1][i]) < 0.05F))
      return conform_tell(c, CONFORM_DIFFERS, "other numbers");
  return conform_holds(c);
}

/* If the server does not offer compression, a refusal is expected. */
static int compression(conform_t *c) {
  const conform_call_t *call;

  if (conform_flag(c, "proto_compress_fwdbwd"))
    return 1;
  if (!conform_needs_any_model(c))
    return 0;
  call = conform_pass(c, c->model->id, c->model->seq++, c->about);
  if (!conform_is_refusal(call))
    return 1;
  conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  return 0;
}

/* A row of targets, most of which are absent. */
static conform_call_t *sparse_pass(conform_t *c) {
  static const float values[] = {1};
  static const int64_t crow[] = {0, 1, 1, 1};
  static const int64_t col[] = {0};
  static const int64_t dense[] = {101, 108, 111};
  static const tnk_loss_input_t inputs[] = {{"target_tokens",
                                             {.dtype = TNK_I64,
                                              .n_dims = 2,
                                              .shape = {3, 1},
                                              .data = dense,
                                              .n_values = 3}},
                                            {"weights",
                                             {.dtype = TNK_F32,
                                              .n_dims = 2,
                                              .shape = {3, 1},
                                              .data = values,
                                              .n_values = 1,
                                              .crow = crow,
                                              .col = col}}};
  static const tnk_datum_t datum = {.input = {.tokens = three, .n_tokens = 3},
                                    .loss_inputs = inputs,
                                    .n_loss_inputs = 2};
  const conform_pass_t pass = {.data = &datum, .n_data = 1};

  return conform_pass(c, c->model->id, c->model->seq++, &pass);
}

static conform_verdict_t sparse(conform_t *c) {
  conform_follow(c, c->call, 1);
  if (c->end.fate == CONFORM_RESULT)
    return conform_holds(c);
  return conform_tell(
      c, c->end.fate == CONFORM_FAILED ? CONFORM_ALLOWED : CONFORM_DIFFERS,
      "%s", c->end.how);
}

/* ---- Refused passes ---- */

static const tnk_datum_t no_targets = {
    .input = {.tokens = three, .n_tokens = 3}};
static const int32_t big[] = {2147483647, 1, 1};
static const tnk_datum_t big_token = {.input = {.tokens = big, .n_tokens = 3},
                                      .targets = next_three};
static const tnk_datum_t short_targets = {
    .input = {.tokens = three, .n_tokens = 3},
    .loss_inputs =
        &(const tnk_loss_input_t){
            "target_tokens",
            {.dtype = TNK_I64, .data = next_three, .n_values = 2}},
    .n_loss_inputs = 1};

static conform_call_t *bad_pass(conform_t *c) {
  return conform_pass(c, c->model->id, c->model->seq++, c->about);
}

static conform_verdict_t refused_pass(conform_t *c) {
  conform_follow(c, c->call, 1);
  return conform_rejected(c, CONFORM_ALLOWED, "it runs");
}

/* ---- Steps ---- */

static conform_verdict_t step(conform_t *c) {
  tnk_metrics_t *read = NULL;
  conform_call_t *call = conform_pass(c, c->model->id, c->model->seq++, NULL);

  if (conform_follow(c, call, 1) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "no pass before it: %s",
                        c->end.how);
  call = conform_step(c, c->model->id, c->model->seq++);
  if (!conform_succeeds(c, call, 0))
    return conform_told(c);
  if (c->end.is_proto ||
      tnk__optim_read(&read, tnk__allocator_default(), c->end.last->body.data,
                      c->end.last->body.len) != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "the result cannot be parsed");
  conform_tell(c, CONFORM_HOLDS, "%zu metrics", tnk_metrics_count(read));
  tnk__metrics_free(tnk__allocator_default(), read);
  return conform_told(c);
}

/* A step with a member out of range, or without required members. `about` is
 * the JSON of adam_params; NULL: none. */
static conform_call_t *bad_step(conform_t *c) {
  json_t *body = conform_step_body(c->model->id, c->model->seq++);

  json_object_del(body, "adam_params");
  if (c->about != NULL)
    json_object_set_new(body, "adam_params", json_loads(c->about, 0, NULL));
  return conform_post_json(c, "optim_step", body);
}

static conform_verdict_t refused_step(conform_t *c) {
  conform_follow(c, c->call, 0);
  return conform_rejected(c, CONFORM_ALLOWED, "it runs");
}

#define RAW(text, path, type)                                                  \
  &(const raw_t) {                                                             \
    text, sizeof(text) - 1, path, type                                         \
  }
#define PASS(...)                                                              \
  &(const conform_pass_t) {                                                    \
    __VA_ARGS__                                                                \
  }

static const conform_rule_t rules[] = {
    {"pass-garbage", "a body that is not protobuf is rejected", "training 5.1",
     CONFORM_FREE, NULL, bad_body, conform_refused,
     RAW("\xff\xff\xff\xff garbage", "forward_backward", PROTO)},
    {"pass-json", "forward_backward accepts JSON", "reference 12.1",
     CONFORM_FREE, NULL, json_pass, json_read,
     RAW("forward_backward_input", "forward_backward", NULL)},
    {"pass-json-forward", "forward accepts JSON", "reference 12.1",
     CONFORM_FREE, NULL, json_pass, json_read,
     RAW("forward_input", "forward", NULL)},
    {"pass-type", "a body with another content type is rejected",
     "training 5.1", CONFORM_FREE, NULL, bad_body, conform_refused,
     RAW("x", "forward_backward", "text/plain")},
    {"pass-result", "each example has an output, each token a logprob",
     "protobuf 6.4", CONFORM_SPENDS, passed, NULL, pass_result,
     PASS(.data = ragged, .n_data = 2)},
    {"pass-loss", "the metrics contain loss:sum", "training 5.5",
     CONFORM_SPENDS, passed, NULL, loss_sum, NULL},
    {"pass-metrics", "each metric's key has one colon", "training 5.4",
     CONFORM_SPENDS, passed, NULL, metric_keys, NULL},
    {"pass-weights", "the loss is 0 if all weights are 0", "reference 13.2",
     CONFORM_SPENDS, passed, NULL, zero_weights,
     PASS(.data = unweighted, .n_data = 1)},
    {"pass-forward", "a forward pass returns the same numbers", "training 5.1",
     CONFORM_SPENDS, NULL, NULL, same_numbers, PASS(.forward_only = 1)},
    {"pass-zstd", "a pass in zstd returns the same numbers", "training 5.1",
     CONFORM_SPENDS, compression, NULL, same_numbers, PASS(.is_zstd = 1)},
    {"pass-sparse", "sparse tensors are accepted", "protobuf 6.2",
     CONFORM_SPENDS, conform_needs_any_model, sparse_pass, sparse, NULL},
    {"pass-no-loss", "an unknown loss is rejected", "reference 13.2",
     CONFORM_SPENDS, conform_needs_any_model, bad_pass, refused_pass,
     PASS(.loss = "tnk_conform_no_loss")},
    {"pass-no-setting", "an unknown setting of a loss is rejected",
     "reference 13.2", CONFORM_SPENDS, conform_needs_any_model, bad_pass,
     refused_pass, PASS(.setting = "tnk_conform_no_setting")},
    {"pass-no-targets", "an example without targets is rejected",
     "reference 13.2", CONFORM_SPENDS, conform_needs_any_model, bad_pass,
     refused_pass, PASS(.data = &no_targets, .n_data = 1)},
    {"pass-short-targets", "an example with too few targets is rejected",
     "reference 13.2", CONFORM_SPENDS, conform_needs_any_model, bad_pass,
     refused_pass, PASS(.data = &short_targets, .n_data = 1)},
    {"pass-big-token", "a token outside the vocabulary is rejected",
     "protobuf 6.2", CONFORM_SPENDS, conform_needs_any_model, bad_pass,
     refused_pass, PASS(.data = &big_token, .n_data = 1)},
    {"pass-empty", "a pass without examples is rejected", "training 5.2",
     CONFORM_SPENDS, conform_needs_any_model, bad_pass, refused_pass,
     PASS(.data = &conform_datum, .n_data = 0)},
    {"step-result", "a step returns metrics", "training 5.6", CONFORM_SPENDS,
     conform_needs_any_model, NULL, step, NULL},
    {"step-rate", "a negative learning rate is rejected", "training 5.6.1",
     CONFORM_SPENDS, conform_needs_any_model, bad_step, refused_step,
     "{\"learning_rate\":-1}"},
    {"step-beta", "a beta above 1 is rejected", "training 5.6.1",
     CONFORM_SPENDS, conform_needs_any_model, bad_step, refused_step,
     "{\"learning_rate\":0.1,\"beta1\":2}"},
    {"step-text", "a learning rate that is a string is rejected",
     "training 5.6.1", CONFORM_SPENDS, conform_needs_any_model, bad_step,
     refused_step, "{\"learning_rate\":\"high\"}"},
    {"step-no-params", "a step without parameters is rejected",
     "training 5.6.1", CONFORM_SPENDS, conform_needs_any_model, bad_step,
     refused_step, NULL},
};

const conform_group_t conform_training = {"passes and steps", rules,
                                          sizeof(rules) / sizeof(*rules)};
