/* SPDX-License-Identifier: MIT */
/* Rules about sampling sessions and samples: their results, and invalid
 * requests. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/sample_wire.h"
#include "tnk/result.h"
#include "tools/conform/state.h"

/* ---- Sessions ---- */

static conform_verdict_t create(conform_t *c) {
  if (conform_needs_sampler(c))
    return conform_holds(c);
  if (c->session == NULL || c->base_model == NULL)
    return conform_told(c);
  return conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
}

/* A session of nothing, of an invalid path, or of weights that do not exist. */
static conform_call_t *bad_session(conform_t *c) {
  return conform_new_sampler(c, c->session, "model_path", c->about,
                             conform_next_sampler(c));
}

static conform_verdict_t not_created(conform_t *c) {
  return conform_refusal(c, "it is created anyway", "a 4xx");
}

static conform_call_t *no_session(conform_t *c) {
  return conform_new_sampler(c, CONFORM_NONE, "base_model", c->base_model,
                             conform_next_sampler(c));
}

static conform_verdict_t session_unknown(conform_t *c) {
  return conform_refusal(c, "it is ignored", "404");
}

static conform_verdict_t repeat_session(conform_t *c) {
  const int64_t number = conform_next_sampler(c);
  const char *ids[2];

  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call =
        conform_new_sampler(c, c->session, "base_model", c->base_model, number);

    ids[i] = conform_text(call, "sampling_session_id");
    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "rejected with %d", call->status);
    if (!conform_is_ok(call) || ids[i] == NULL)
      return conform_other(c, call, "a sampling_session_id");
  }
  return conform_same(c, strcmp(ids[0], ids[1]) == 0, "session");
}

static conform_verdict_t join(conform_t *c) {
  json_int_t counters[2];

  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call = conform_post(
        c, "join_sampling_session", "{s:s,s:s}", "sampling_session_id",
        c->sampler, "type", "join_sampling_session");
    const json_t *counter = json_object_get(call->json, "client_counter");

    if (!conform_announced(c, call, "sample_join_sampling_session"))
      return conform_told(c);
    if (!json_is_integer(counter))
      return conform_tell(c, CONFORM_DIFFERS, "no \"client_counter\"");
    counters[i] = json_integer_value(counter);
  }
  return conform_tell(
      c,
      counters[0] < 1 || counters[0] == counters[1] ? CONFORM_DIFFERS
                                                    : CONFORM_HOLDS,
      "%lld, then %lld", (long long)counters[0], (long long)counters[1]);
}

static conform_call_t *get_sampler(conform_t *c) {
  return conform_of(c, "GET", "samplers", c->sampler, "", NULL);
}

static conform_verdict_t info(conform_t *c) {
  const char *base = conform_text(c->call, "base_model");

  if (!conform_offered(c, c->call, "200"))
    return conform_told(c);
  if (base == NULL || strcmp(base, c->base_model) != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its base_model is another one");
  return conform_holds(c);
}

/* ---- Refused samples ---- */

static conform_call_t *unknown_sampler(conform_t *c) {
  return conform_sample(c, CONFORM_NONE, 0, NULL, NULL);
}

static conform_call_t *no_weights(conform_t *c) {
  return conform_sample(c, NULL, 0, NULL, NULL);
}

static conform_call_t *no_number(conform_t *c) {
  return conform_sample(c, c->sampler, CONFORM_NO_NUMBER, NULL, NULL);
}

static conform_verdict_t not_asked_for(conform_t *c) {
  return conform_refusal(c, "it is not required", "a 4xx");
}

/* `about` is JSON that replaces sampling parameters. The server must refuse it;
 * otherwise it costs a few tokens. */
static conform_call_t *draw(conform_t *c) {
  return conform_sample(c, c->sampler, conform_next_sample(c), c->about, NULL);
}

static conform_verdict_t bad_params(conform_t *c) {
  conform_follow(c, c->call, 1);
  return conform_rejected(c, CONFORM_ALLOWED, "it is accepted");
}

/* ---- Samples ---- */

/* Sample with JSON merged into the parameters and into the request. Returns
 * NULL if the finding is recorded already. */
static const tnk_samples_t *sample(conform_t *c, const char *params,
                                   const char *more) {
  tnk_samples_t **read = &c->samples[c->samples[0] != NULL];

  c->call = conform_sample(c, c->sampler, conform_next_sample(c), params, more);
  if (!conform_succeeds(c, c->call, 1))
    return NULL;
  if (tnk__samples_read(read, tnk__allocator_default(), c->end.last->body.data,
                        c->end.last->body.len, c->end.is_proto) == TNK_OK)
    return *read;
  conform_tell(c, CONFORM_DIFFERS, "the result cannot be parsed");
  return NULL;
}

static conform_verdict_t result(conform_t *c) {
  const tnk_samples_t *read =
      sample(c, "{\"max_tokens\":2,\"stop\":[]}", "{\"num_samples\":3}");
  size_t n = 0;
  size_t n_logprobs = 0;

  if (read == NULL)
    return conform_told(c);
  conform_tell(c, CONFORM_HOLDS, "3 of 2 tokens");
  if (tnk_samples_count(read) != 3)
    conform_tell(c, CONFORM_DIFFERS, "%zu samples instead of 3",
                 tnk_samples_count(read));
  for (size_t i = 0; i < tnk_samples_count(read); i++) {
    tnk_samples_tokens(read, i, &n);
    tnk_samples_logprobs(read, i, &n_logprobs);
    if (n != 2 || tnk_samples_stop_reason(read, i) != TNK_STOP_LENGTH)
      conform_tell(c, CONFORM_DIFFERS, "%zu tokens without a stop instead of 2",
                   n);
    else if (n_logprobs != n)
      conform_tell(c, CONFORM_DIFFERS, "%zu logprobs for %zu tokens",
                   n_logprobs, n);
  }
  return conform_told(c);
}

static conform_verdict_t ids(conform_t *c) {
  const json_t *list;

  if (sample(c, NULL, "{\"num_samples\":2}") == NULL)
    return conform_told(c);
  list = tnk__json_arr(c->call->json, "sample_sequence_ids");
  if (list == NULL)
    return conform_tell(c, CONFORM_ALLOWED, "there are none");
  if (json_array_size(list) != 2 || !json_is_string(json_array_get(list, 0)) ||
      json_equal(json_array_get(list, 0), json_array_get(list, 1)))
    return conform_tell(c, CONFORM_DIFFERS, "%zu for 2 samples",
                        json_array_size(list));
  return conform_tell(c, CONFORM_HOLDS, "2 for 2");
}

static conform_verdict_t repeat(conform_t *c) {
  const int64_t number = conform_next_sample(c);
  const char *seen[2];

  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call =
        conform_sample(c, c->sampler, number, NULL, NULL);

    seen[i] = conform_text(call, "request_id");
    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "rejected with %d", call->status);
    if (!conform_is_ok(call) || seen[i] == NULL)
      return conform_other(c, call, "a request_id");
  }
  if (strcmp(seen[0], seen[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  return conform_tell(c, CONFORM_ALLOWED, "a second sample");
}

/* Returns whether two samples have the same tokens. */
static int same_tokens(const tnk_samples_t *a, const tnk_samples_t *b) {
  size_t n[2];
  const int32_t *tokens[2] = {tnk_samples_tokens(a, 0, &n[0]),
                              tnk_samples_tokens(b, 0, &n[1])};

  return n[0] == n[1] &&
         (n[0] == 0 || memcmp(tokens[0], tokens[1], n[0] * 4) == 0);
}

/* The same parameters give the same result twice. */
static conform_verdict_t reproducible(conform_t *c) {
  if (sample(c, c->about, NULL) == NULL || sample(c, c->about, NULL) == NULL)
    return conform_told(c);
  if (same_tokens(c->samples[0], c->samples[1]))
    return conform_tell(c, CONFORM_HOLDS, "the same tokens");
  return conform_tell(c, CONFORM_ALLOWED, "other tokens");
}

/* The first sample finds the likeliest token; the second one uses it as the
 * stop token. */
static conform_verdict_t stop_token(conform_t *c) {
  const tnk_samples_t *read =
      sample(c, "{\"max_tokens\":1,\"temperature\":0,\"stop\":[]}", NULL);
  const int32_t *tokens;
  char params[80];
  size_t n = 0;
  int is_stop;

  if (read == NULL)
    return conform_told(c);
  tokens = tnk_samples_tokens(read, 0, &n);
  snprintf(params, sizeof(params),
           "{\"max_tokens\":4,\"temperature\":0,\"stop\":[%d]}",
           n > 0 ? (int)tokens[0] : 0);
  read = sample(c, params, NULL);
  if (read == NULL)
    return conform_told(c);
  tnk_samples_tokens(read, 0, &n);
  is_stop = tnk_samples_stop_reason(read, 0) == TNK_STOP_SEQUENCE;
  if (n == 1 && is_stop)
    return conform_tell(c, CONFORM_HOLDS, "the stop token is the last one");
  return conform_tell(c, CONFORM_DIFFERS, "%zu tokens, reason %s", n,
                      is_stop ? "stop" : "length");
}

static conform_verdict_t stop_text(conform_t *c) {
  conform_follow(c, c->call, 1);
  if (c->end.fate == CONFORM_RESULT)
    return conform_holds(c);
  if (c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_ALLOWED, "%s",
                        c->end.last == NULL ? "rejected" : c->end.how);
  return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
}

/* ---- Further outputs ---- */

static conform_verdict_t prompt_logprobs(conform_t *c) {
  const tnk_samples_t *read = sample(c, "{\"max_tokens\":1}", c->about);
  const float *values;
  size_t n = 0;

  if (read == NULL)
    return conform_told(c);
  values = tnk_samples_prompt_logprobs(read, &n);
  if (c->about == NULL)
    return values == NULL
               ? conform_holds(c)
               : conform_tell(c, CONFORM_ALLOWED, "%zu without a request", n);
  if (values == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "there are none");
  return conform_tell(c, n == 3 ? CONFORM_HOLDS : CONFORM_DIFFERS,
                      "%zu for 3 tokens", n);
}

/* An output that older servers silently omit. */
typedef struct {
  const char *more;
  const void *(*get)(const tnk_samples_t *samples);
} output_t;

static const void *get_topk(const tnk_samples_t *samples) {
  return tnk_samples_topk(samples, 0);
}

static const void *get_prompt_topk(const tnk_samples_t *samples) {
  return tnk_samples_prompt_topk(samples);
}

static const void *get_alternatives(const tnk_samples_t *samples) {
  return tnk_samples_alt_tokens(samples);
}

static const void *get_targets(const tnk_samples_t *samples) {
  return tnk_samples_target_logprobs(samples);
}

static conform_verdict_t output(conform_t *c) {
  const output_t *about = c->about;
  const tnk_samples_t *read = sample(c, "{\"max_tokens\":1}", about->more);

  if (read == NULL && c->end.fate == CONFORM_FAILED && c->end.last == NULL)
    return conform_tell(c, CONFORM_ABSENT, "%s", c->end.how);
  if (read == NULL)
    return conform_told(c);
  if (about->get(read) != NULL)
    return conform_holds(c);
  return conform_tell(c, CONFORM_ABSENT, "silently omitted");
}

static conform_verdict_t as_json(conform_t *c) {
  if (!conform_succeeds(c, c->call, 0))
    return conform_told(c);
  if (c->end.is_proto)
    return conform_tell(c, CONFORM_ALLOWED, "protobuf anyway");
  if (tnk__samples_read(&c->samples[0], tnk__allocator_default(),
                        c->end.last->body.data, c->end.last->body.len,
                        0) != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "JSON that cannot be parsed");
  return conform_tell(c, CONFORM_HOLDS, "JSON");
}

/* ---- Batched polls and cancellation ---- */

static conform_verdict_t batch(conform_t *c) {
  const conform_call_t *call;
  const json_t *list;
  const char *id;

  if (sample(c, NULL, NULL) == NULL)
    return conform_told(c);
  id = conform_text(c->call, "request_id");
  call = conform_batch(c, c->sampler);
  if (!conform_offered(c, call, "200"))
    return conform_told(c);
  list = tnk__json_arr(call->json, "completions");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i);
    const char *state = tnk__json_str(item, "state");
    const char *other = tnk__json_str(item, "request_id");

    if (other != NULL && strcmp(other, id) == 0)
      return state != NULL && strcmp(state, "finished") == 0
                 ? conform_tell(c, CONFORM_HOLDS, "finished")
                 : conform_tell(c, CONFORM_DIFFERS, "not \"finished\"");
  }
  return conform_tell(c, CONFORM_DIFFERS, "not among %zu",
                      json_array_size(list));
}

static conform_verdict_t cancel(conform_t *c) {
  const char *id = conform_text(c->call, "request_id");

  if (!conform_is_ok(c->call) || id == NULL)
    return conform_other(c, c->call, "a request_id");
  if (!conform_offered(
          c, conform_post(c, "cancel_future", "{s:s}", "request_id", id),
          "a 2xx"))
    return conform_told(c);
  conform_follow(c, c->call, 1);
  if (c->end.fate == CONFORM_RESULT || c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "it ends");
  return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
}

static conform_call_t *save_unnamed(conform_t *c) {
  return conform_save_unnamed(c, c->model->seq++);
}

static conform_verdict_t saved_sampler(conform_t *c) {
  const char *id = NULL;

  if (conform_follow(c, c->call, 0) == CONFORM_RESULT)
    id = conform_text(c->end.last, "sampling_session_id");
  if (id == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no sampler: %s", c->end.how);
  if (!conform_succeeds(c, conform_sample(c, id, 0, NULL, NULL), 1))
    return conform_told(c);
  return conform_holds(c);
}

#define OUTPUT(json, function)                                                 \
  &(const output_t) {                                                          \
    json, function                                                             \
  }
#define TARGETS                                                                \
  "{\"target_prompt_logprobs\":{\"data\":[101,108],\"dtype\":\"int64\","       \
  "\"shape\":[2,1]}}"

static const conform_rule_t sessions[] = {
    {"sampler-create", "a sampler of the base model can be created",
     "session 4.1", CONFORM_FREE, NULL, NULL, create, NULL},
    {"sampler-no-session", "a sampler in an unknown session is rejected",
     "session 4.1", CONFORM_FREE, conform_needs_base, no_session,
     session_unknown, NULL},
    {"sampler-no-model", "a sampler without a model is rejected", "session 4.5",
     CONFORM_FREE, conform_needs_session, bad_session, not_created, NULL},
    {"sampler-no-weights", "a sampler of unknown weights is rejected",
     "session 4.5", CONFORM_FREE, conform_needs_session, bad_session,
     not_created, "tinker://tnk-conform-none/sampler_weights/none"},
    {"sampler-odd-path", "a sampler of an invalid path is rejected",
     "session 4.5", CONFORM_FREE, conform_needs_session, bad_session,
     not_created, "file:///etc/passwd"},
    {"sampler-repeat", "a repeated creation creates no second sampler",
     "session 4.5", CONFORM_FREE, conform_needs_base, NULL, repeat_session,
     NULL},
    {"sampler-join", "each client that joins gets another number",
     "session 4.9", CONFORM_FREE, conform_needs_sampler, NULL, join, NULL},
    {"sampler-info", "a sampler names its base model", "rest 9", CONFORM_FREE,
     conform_needs_sampler, get_sampler, info, NULL},
    {"sample-unknown", "a sample of an unknown sampler is rejected",
     "sampling 7.1", CONFORM_FREE, NULL, unknown_sampler, conform_refused_404,
     NULL},
    {"sample-nothing", "a sample without a model is rejected", "sampling 7.1",
     CONFORM_FREE, NULL, no_weights, conform_refused, NULL},
};

const conform_group_t conform_sampler = {"samplers", sessions,
                                         sizeof(sessions) / sizeof(*sessions)};

static const conform_rule_t samples[] = {
    {"sample-result", "samples have the requested number and length",
     "protobuf 6.3", CONFORM_SPENDS, conform_needs_sampler, NULL, result, NULL},
    {"sample-ids", "samples have ids", "sampling 7.3", CONFORM_SPENDS,
     conform_needs_sampler, NULL, ids, NULL},
    {"sample-repeat", "a repeat with the same number is the same request",
     "sampling 7.3", CONFORM_SPENDS, conform_needs_sampler, NULL, repeat, NULL},
    {"sample-no-number", "a sample without a number is rejected",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, no_number,
     not_asked_for, NULL},
    {"sample-seed", "a seed makes samples repeatable", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, NULL, reproducible,
     "{\"max_tokens\":8,\"seed\":7}"},
    {"sample-greedy", "a temperature of 0 makes samples repeatable",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, NULL, reproducible,
     "{\"max_tokens\":8,\"temperature\":0}"},
    {"sample-top-k", "a top_k of 1 makes samples repeatable", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, NULL, reproducible,
     "{\"max_tokens\":8,\"top_k\":1}"},
    {"sample-stop-token", "a stop token ends a sample and is part of it",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, NULL, stop_token,
     NULL},
    {"sample-stop-texts", "stop can be a list of strings", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, draw, stop_text,
     "{\"stop\":[\"a\",\"b\"]}"},
    {"sample-stop-text", "stop can be one string", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, draw, stop_text,
     "{\"stop\":\"a\"}"},
    {"sample-stop-mixed", "a stop list of strings and tokens is rejected",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, draw, bad_params,
     "{\"stop\":[\"a\",1]}"},
    {"sample-tokens", "max_tokens of 0 is rejected", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, draw, bad_params,
     "{\"max_tokens\":0}"},
    {"sample-temperature", "a negative temperature is rejected", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, draw, bad_params,
     "{\"temperature\":-1}"},
    {"sample-top-p", "a top_p above 1 is rejected", "sampling 7.1",
     CONFORM_SPENDS, conform_needs_sampler, draw, bad_params, "{\"top_p\":2}"},
    {"sample-text", "a temperature that is a string is rejected",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, draw, bad_params,
     "{\"temperature\":\"hot\"}"},
    {"sample-prompt", "logprobs of the prompt are returned on request",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, NULL,
     prompt_logprobs, "{\"prompt_logprobs\":true}"},
    {"sample-no-prompt", "logprobs of the prompt are not returned otherwise",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, NULL,
     prompt_logprobs, NULL},
    {"sample-prompt-top-k", "the top k tokens of the prompt are returned",
     "sampling 7.1", CONFORM_SPENDS, conform_needs_sampler, NULL, output,
     OUTPUT("{\"prompt_logprobs\":true,\"topk_prompt_logprobs\":2}",
            get_prompt_topk)},
    {"sample-k-likeliest", "the top k tokens of the sample are returned",
     "sampling 7.1.1", CONFORM_SPENDS, conform_needs_sampler, NULL, output,
     OUTPUT("{\"topk_sample_logprobs\":2}", get_topk)},
    {"sample-alternatives", "alternative tokens of the prompt are returned",
     "sampling 7.1.1", CONFORM_SPENDS, conform_needs_sampler, NULL, output,
     OUTPUT("{\"prompt_alt_tokens_k\":2}", get_alternatives)},
    {"sample-targets", "logprobs of given prompt tokens are returned",
     "sampling 7.1.1", CONFORM_SPENDS, conform_needs_sampler, NULL, output,
     OUTPUT(TARGETS, get_targets)},
    {"sample-json", "samples are JSON if the client accepts only JSON",
     "reference 12.1", CONFORM_SPENDS, conform_needs_sampler, draw, as_json,
     NULL},
    {"sample-batch", "a batched poll reports finished samples", "futures 8.6",
     CONFORM_SPENDS, conform_needs_sampler, NULL, batch, NULL},
    {"sample-cancel", "a sample can be canceled", "futures 8.7", CONFORM_SPENDS,
     conform_needs_sampler, draw, cancel, NULL},
    {"sample-saved", "saved weights can be sampled", "training 5.6",
     CONFORM_SPENDS, conform_needs_any_model, save_unnamed, saved_sampler,
     NULL},
};

const conform_group_t conform_sampling = {"samples", samples,
                                          sizeof(samples) / sizeof(*samples)};
