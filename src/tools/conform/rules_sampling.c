/* Rules about samples: their results, and invalid requests. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/sample_wire.h"
#include "tnk/result.h"
#include "tools/conform/state.h"

/* ---- Refused samples ---- */

/* `about` is JSON that replaces sampling parameters. The server must refuse it;
 * otherwise it costs a few tokens. */
static conform_verdict_t bad_params(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;
  conform_end_t end = {0};

  if (sampler == NULL)
    return conform_skip(c);
  call = conform_sample(c, sampler, conform_next_sample(c),
                        json_loads(rule->about, 0, NULL), NULL);
  conform_follow(c, call, 1, &end);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        end.last == NULL ? "at once" : "by its result");
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "it is taken");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

/* ---- Samples ---- */

typedef struct {
  const conform_call_t *call;
  conform_end_t end;
  tnk_samples_t *read;
} sampled_t;

static void forget(sampled_t *s) {
  tnk__samples_free(tnk__allocator_default(), s->read);
  s->read = NULL;
}

/* Sample with JSON merged into the parameters and into the request. Returns 0
 * if the finding is recorded already. */
static int sample(conform_t *c, sampled_t *s, const char *params,
                  const char *more, conform_verdict_t *verdict) {
  const char *sampler = conform_sampler_id(c);

  memset(s, 0, sizeof(*s));
  if (sampler == NULL) {
    *verdict = conform_skip(c);
    return 0;
  }
  s->call = conform_sample(c, sampler, conform_next_sample(c),
                           params != NULL ? json_loads(params, 0, NULL) : NULL,
                           more != NULL ? json_loads(more, 0, NULL) : NULL);
  conform_follow(c, s->call, 1, &s->end);
  if (s->end.fate != CONFORM_RESULT) {
    *verdict = conform_tell(c, CONFORM_DIFFERS, "%s", s->end.how);
    return 0;
  }
  if (tnk__samples_read(&s->read, tnk__allocator_default(),
                        s->end.last->body.data, s->end.last->body.len,
                        s->end.is_proto) == TNK_OK)
    return 1;
  *verdict = conform_tell(c, CONFORM_DIFFERS, "the result cannot be read");
  return 0;
}

static conform_verdict_t result(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  sampled_t s;
  size_t n = 0;
  size_t n_logprobs = 0;

  (void)rule;
  if (!sample(c, &s, "{\"max_tokens\":2,\"stop\":[]}", "{\"num_samples\":3}",
              &verdict))
    return verdict;
  verdict = conform_tell(c, CONFORM_HOLDS, "3 of 2 tokens");
  if (tnk_samples_count(s.read) != 3)
    verdict = conform_tell(c, CONFORM_DIFFERS, "%zu samples instead of 3",
                           tnk_samples_count(s.read));
  for (size_t i = 0; i < tnk_samples_count(s.read); i++) {
    tnk_samples_tokens(s.read, i, &n);
    tnk_samples_logprobs(s.read, i, &n_logprobs);
    if (n != 2 || tnk_samples_stop_reason(s.read, i) != TNK_STOP_LENGTH)
      verdict = conform_tell(c, CONFORM_DIFFERS,
                             "%zu tokens without a stop instead of 2", n);
    else if (n_logprobs != n)
      verdict = conform_tell(c, CONFORM_DIFFERS, "%zu logprobs for %zu tokens",
                             n_logprobs, n);
  }
  forget(&s);
  return verdict;
}

static conform_verdict_t ids(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const json_t *list;
  sampled_t s;

  (void)rule;
  if (!sample(c, &s, NULL, "{\"num_samples\":2}", &verdict))
    return verdict;
  forget(&s);
  list = tnk__json_arr(s.call->json, "sample_sequence_ids");
  if (list == NULL)
    return conform_tell(c, CONFORM_ALLOWED, "there are none");
  if (json_array_size(list) != 2 || !json_is_string(json_array_get(list, 0)) ||
      json_equal(json_array_get(list, 0), json_array_get(list, 1)))
    return conform_tell(c, CONFORM_DIFFERS, "%zu for 2 samples",
                        json_array_size(list));
  return conform_tell(c, CONFORM_HOLDS, "2 for 2");
}

static conform_verdict_t repeat(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const int64_t number = conform_next_sample(c);
  const char *seen[2];

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call = conform_sample(c, sampler, number, NULL, NULL);

    seen[i] = conform_text(call, "request_id");
    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "refused with %d", call->status);
    if (!conform_is_ok(call) || seen[i] == NULL)
      return conform_other(c, call, "a request_id");
  }
  if (strcmp(seen[0], seen[1]) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  return conform_tell(c, CONFORM_ALLOWED, "a second sample");
}

static conform_verdict_t no_number(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;
  json_t *more;

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  /* Without a sampling session there is no number either. */
  more = json_pack("{s:s}", "sampling_session_id", sampler);
  call = conform_sample(c, NULL, 0, NULL, more);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "it is not asked for");
  return conform_other(c, call, "a 4xx");
}

/* Whether two samples have the same tokens. */
static int same_tokens(const sampled_t *a, const sampled_t *b) {
  size_t n[2];
  const int32_t *tokens[2] = {tnk_samples_tokens(a->read, 0, &n[0]),
                              tnk_samples_tokens(b->read, 0, &n[1])};

  return n[0] == n[1] &&
         (n[0] == 0 || memcmp(tokens[0], tokens[1], n[0] * 4) == 0);
}

/* The same parameters give the same result twice. */
static conform_verdict_t reproducible(conform_t *c,
                                      const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  sampled_t s[2];

  if (!sample(c, &s[0], rule->about, NULL, &verdict))
    return verdict;
  if (!sample(c, &s[1], rule->about, NULL, &verdict)) {
    forget(&s[0]);
    return verdict;
  }
  verdict = same_tokens(&s[0], &s[1])
                ? conform_tell(c, CONFORM_HOLDS, "the same tokens")
                : conform_tell(c, CONFORM_ALLOWED, "other tokens");
  forget(&s[0]);
  forget(&s[1]);
  return verdict;
}

static conform_verdict_t stop_token(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  char params[80];
  sampled_t s;
  const int32_t *tokens;
  size_t n = 0;

  (void)rule;
  /* The first sample finds the likeliest token; the second one uses it as the
   * stop token. */
  if (!sample(c, &s, "{\"max_tokens\":1,\"temperature\":0,\"stop\":[]}", NULL,
              &verdict))
    return verdict;
  tokens = tnk_samples_tokens(s.read, 0, &n);
  snprintf(params, sizeof(params),
           "{\"max_tokens\":4,\"temperature\":0,\"stop\":[%d]}",
           n > 0 ? (int)tokens[0] : 0);
  forget(&s);
  if (!sample(c, &s, params, NULL, &verdict))
    return verdict;
  tnk_samples_tokens(s.read, 0, &n);
  verdict =
      n == 1 && tnk_samples_stop_reason(s.read, 0) == TNK_STOP_SEQUENCE
          ? conform_tell(c, CONFORM_HOLDS, "it is the last one")
          : conform_tell(c, CONFORM_DIFFERS, "%zu tokens, reason %s", n,
                         tnk_samples_stop_reason(s.read, 0) == TNK_STOP_SEQUENCE
                             ? "stop"
                             : "length");
  forget(&s);
  return verdict;
}

static conform_verdict_t stop_text(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;
  conform_end_t end = {0};

  if (sampler == NULL)
    return conform_skip(c);
  call = conform_sample(c, sampler, conform_next_sample(c),
                        json_loads(rule->about, 0, NULL), NULL);
  conform_follow(c, call, 1, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_ALLOWED, "%s",
                        end.last == NULL ? "refused" : end.how);
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

/* ---- Further outputs ---- */

static conform_verdict_t prompt_logprobs(conform_t *c,
                                         const conform_rule_t *rule) {
  const char *more = rule->about;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  sampled_t s;
  size_t n = 0;
  const float *values;

  if (!sample(c, &s, "{\"max_tokens\":1}", more, &verdict))
    return verdict;
  values = tnk_samples_prompt_logprobs(s.read, &n);
  if (more == NULL)
    verdict = values == NULL ? conform_tell(c, CONFORM_HOLDS, "%s", "")
                             : conform_tell(c, CONFORM_ALLOWED,
                                            "%zu that nobody asked for", n);
  else if (values == NULL)
    verdict = conform_tell(c, CONFORM_DIFFERS, "there are none");
  else
    verdict = conform_tell(c, n == 3 ? CONFORM_HOLDS : CONFORM_DIFFERS,
                           "%zu for 3 tokens", n);
  forget(&s);
  return verdict;
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

static conform_verdict_t output(conform_t *c, const conform_rule_t *rule) {
  const output_t *about = rule->about;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  sampled_t s;

  if (!sample(c, &s, "{\"max_tokens\":1}", about->more, &verdict))
    return s.end.fate == CONFORM_FAILED && s.end.last == NULL
               ? conform_tell(c, CONFORM_ABSENT, "%s", s.end.how)
               : verdict;
  verdict = about->get(s.read) != NULL
                ? conform_tell(c, CONFORM_HOLDS, "%s", "")
                : conform_tell(c, CONFORM_ABSENT, "left out in silence");
  forget(&s);
  return verdict;
}

static conform_verdict_t as_json(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  tnk_samples_t *read = NULL;
  const conform_call_t *call;
  conform_end_t end = {0};

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  call = conform_sample(c, sampler, conform_next_sample(c), NULL, NULL);
  conform_follow(c, call, 0, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  if (end.is_proto)
    return conform_tell(c, CONFORM_ALLOWED, "protobuf all the same");
  if (tnk__samples_read(&read, tnk__allocator_default(), end.last->body.data,
                        end.last->body.len, 0) != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "JSON that cannot be read");
  tnk__samples_free(tnk__allocator_default(), read);
  return conform_tell(c, CONFORM_HOLDS, "JSON");
}

/* ---- Batched polls and cancellation ---- */

static conform_verdict_t batch(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *id;
  sampled_t s;
  const conform_call_t *call;
  const json_t *list;

  (void)rule;
  if (!sample(c, &s, NULL, NULL, &verdict))
    return verdict;
  forget(&s);
  id = conform_text(s.call, "request_id");
  call =
      conform_post(c, "retrieve_futures",
                   json_pack("{s:{s:s,s:s,s:i},s:i,s:f,s:[]}", "target", "type",
                             "sampling_session", "sampling_session_id", sampler,
                             "cloned_sampler_id", 0, "prev_cursor", 0,
                             "timeout", 0.0, "retrieved_request_ids"));
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
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

static conform_verdict_t cancel(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;
  const conform_call_t *cancelled;
  conform_end_t end = {0};

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  call = conform_sample(c, sampler, conform_next_sample(c), NULL, NULL);
  if (!conform_is_ok(call) || conform_text(call, "request_id") == NULL)
    return conform_other(c, call, "a request_id");
  cancelled = conform_post(
      c, "cancel_future",
      json_pack("{s:s}", "request_id", conform_text(call, "request_id")));
  if (conform_is_absent(c, cancelled))
    return conform_tell(c, CONFORM_ABSENT, "%d", cancelled->status);
  if (!conform_is_ok(cancelled))
    return conform_other(c, cancelled, "a 2xx");
  conform_follow(c, call, 1, &end);
  if (end.fate == CONFORM_RESULT || end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "it comes to an end");
  return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
}

static conform_verdict_t saved_sampler(conform_t *c,
                                       const conform_rule_t *rule) {
  conform_made_t *model = conform_any_model(c);
  const char *id;
  conform_end_t end = {0};

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  conform_follow(c,
                 conform_post(c, "save_weights_for_sampler",
                              json_pack("{s:s,s:I,s:i,s:s}", "model_id",
                                        model->id, "sampling_session_seq_id",
                                        (json_int_t)conform_next_sampler(c),
                                        "seq_id", (int)model->seq++, "type",
                                        "save_weights_for_sampler")),
                 0, &end);
  id = end.fate == CONFORM_RESULT
           ? conform_text(end.last, "sampling_session_id")
           : NULL;
  if (id == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "no sampler: %s", end.how);
  conform_follow(c, conform_sample(c, id, 0, NULL, NULL), 1, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

#define OUTPUT(json, function)                                                 \
  &(const output_t) {                                                          \
    json, function                                                             \
  }
#define TARGETS                                                                \
  "{\"target_prompt_logprobs\":{\"data\":[101,108],\"dtype\":\"int64\","       \
  "\"shape\":[2,1]}}"

static const conform_rule_t rules[] = {
    {"sample-result", "samples come in their number and length", "protobuf 6.3",
     CONFORM_SPENDS, result, NULL},
    {"sample-ids", "and have ids", "sampling 7.3", CONFORM_SPENDS, ids, NULL},
    {"sample-repeat", "a repeat with its number is the same request",
     "sampling 7.3", CONFORM_SPENDS, repeat, NULL},
    {"sample-no-number", "a sample without a number is refused", "sampling 7.1",
     CONFORM_SPENDS, no_number, NULL},
    {"sample-seed", "a seed gives the same tokens", "sampling 7.1",
     CONFORM_SPENDS, reproducible, "{\"max_tokens\":8,\"seed\":7}"},
    {"sample-greedy", "so does a temperature of 0", "sampling 7.1",
     CONFORM_SPENDS, reproducible, "{\"max_tokens\":8,\"temperature\":0}"},
    {"sample-top-k", "and the one likeliest token", "sampling 7.1",
     CONFORM_SPENDS, reproducible, "{\"max_tokens\":8,\"top_k\":1}"},
    {"sample-stop-token", "a stop token ends a sample, and is in it",
     "sampling 7.1", CONFORM_SPENDS, stop_token, NULL},
    {"sample-stop-texts", "stops may be texts", "sampling 7.1", CONFORM_SPENDS,
     stop_text, "{\"stop\":[\"a\",\"b\"]}"},
    {"sample-stop-text", "one may stand alone", "sampling 7.1", CONFORM_SPENDS,
     stop_text, "{\"stop\":\"a\"}"},
    {"sample-stop-mixed", "texts and tokens in one list are refused",
     "sampling 7.1", CONFORM_SPENDS, bad_params, "{\"stop\":[\"a\",1]}"},
    {"sample-tokens", "max_tokens of 0 is refused", "sampling 7.1",
     CONFORM_SPENDS, bad_params, "{\"max_tokens\":0}"},
    {"sample-temperature", "so is a temperature below 0", "sampling 7.1",
     CONFORM_SPENDS, bad_params, "{\"temperature\":-1}"},
    {"sample-top-p", "a top_p above 1", "sampling 7.1", CONFORM_SPENDS,
     bad_params, "{\"top_p\":2}"},
    {"sample-text", "and a temperature that is a text", "sampling 7.1",
     CONFORM_SPENDS, bad_params, "{\"temperature\":\"hot\"}"},
    {"sample-prompt", "logprobs of the prompt come when they are asked for",
     "sampling 7.1", CONFORM_SPENDS, prompt_logprobs,
     "{\"prompt_logprobs\":true}"},
    {"sample-no-prompt", "and only then", "sampling 7.1", CONFORM_SPENDS,
     prompt_logprobs, NULL},
    {"sample-prompt-top-k", "so do the k likeliest of the prompt",
     "sampling 7.1", CONFORM_SPENDS, output,
     OUTPUT("{\"prompt_logprobs\":true,\"topk_prompt_logprobs\":2}",
            get_prompt_topk)},
    {"sample-k-likeliest", "those of the sample", "sampling 7.1.1",
     CONFORM_SPENDS, output, OUTPUT("{\"topk_sample_logprobs\":2}", get_topk)},
    {"sample-alternatives", "other tokens in the prompt's places",
     "sampling 7.1.1", CONFORM_SPENDS, output,
     OUTPUT("{\"prompt_alt_tokens_k\":2}", get_alternatives)},
    {"sample-targets", "and logprobs of given tokens there", "sampling 7.1.1",
     CONFORM_SPENDS, output, OUTPUT(TARGETS, get_targets)},
    {"sample-json", "samples come in JSON for who accepts no protobuf",
     "reference 12.1", CONFORM_SPENDS, as_json, NULL},
    {"sample-batch", "one look finds the samples that are done", "futures 8.6",
     CONFORM_SPENDS, batch, NULL},
    {"sample-cancel", "a sample can be cancelled", "futures 8.7",
     CONFORM_SPENDS, cancel, NULL},
    {"sample-saved", "weights that were saved can be sampled from",
     "training 5.6", CONFORM_SPENDS, saved_sampler, NULL},
};

const conform_group_t conform_sampling = {"samples", rules,
                                          sizeof(rules) / sizeof(*rules)};
