/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

#include <math.h>

#include "lib/base/alloc.h"
#include "tools/local/sample/record.h"

/* Training with stable_reinforce on what was sampled: the server remembers the
 * sampler's logprobs, and the data name where each of their tokens is from. */

enum { PROMPT = 4, SAMPLED = 8, N = PROMPT + SAMPLED - 1 };

typedef struct {
  tnk_promise_t *promise;
  const char *id;
  int32_t tokens[PROMPT + SAMPLED];
  const float *logprobs;
  int64_t targets[N];
  float advantages[N];
  tnk_chunk_t chunk;
  tnk_loss_input_t inputs[2];
  tnk_span_t input_spans[2];
  tnk_span_t target_spans[2];
  tnk_datum_t datum;
} rollout_t;

static tnk_sampling_t *sampler(e2e_t *e2e, tnk_choice_t record) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *promise;
  tnk_sampling_t *sampling;

  options.record_stability_info = record;
  promise = e2e_ok(tnk_training_save_weights_and_get_sampling(
      e2e->training, TNK_SAMPLING_SNAPSHOT, &options));
  sampling = tnk_promise_sampling(promise);
  tnk_promise_unref(promise);
  return sampling;
}

/* Sample, and make an example of it in which every sampled token was good. */
static void roll(rollout_t *r, tnk_sampling_t *sampling) {
  static const int32_t prompt[PROMPT] = {'t', 'h', 'e', ' '};
  const tnk_samples_t *samples;
  size_t n;

  r->promise = e2e_ok(e2e_sample(sampling, SAMPLED, 5, NULL));
  samples = tnk_promise_samples(r->promise);
  r->id = tnk_samples_sequence_id(samples, 0);
  memcpy(r->tokens, prompt, sizeof(prompt));
  memcpy(r->tokens + PROMPT, tnk_samples_tokens(samples, 0, &n),
         SAMPLED * sizeof(int32_t));
  CHECK_INT(n, SAMPLED);
  r->logprobs = tnk_samples_logprobs(samples, 0, &n);
  for (size_t i = 0; i < N; i++) {
    r->targets[i] = r->tokens[i + 1];
    r->advantages[i] = 1;
  }
  r->chunk = tnk_chunk_text(r->tokens, N);
  r->inputs[0] =
      (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(r->targets, N)};
  r->inputs[1] =
      (tnk_loss_input_t){"advantages", tnk_tensor_f32(r->advantages, N)};
  r->input_spans[0] = (tnk_span_t){TNK_SPAN_PROMPT, r->id, 0, PROMPT};
  r->input_spans[1] = (tnk_span_t){TNK_SPAN_SAMPLED, r->id, 0, SAMPLED - 1};
  r->target_spans[0] = (tnk_span_t){TNK_SPAN_PROMPT, r->id, 1, PROMPT - 1};
  r->target_spans[1] = (tnk_span_t){TNK_SPAN_SAMPLED, r->id, 0, SAMPLED};
  r->datum = (tnk_datum_t){.input = {.chunks = &r->chunk, .n_chunks = 1}};
  r->datum.loss_inputs = r->inputs;
  r->datum.n_loss_inputs = 2;
  r->datum.input_spans = r->input_spans;
  r->datum.n_input_spans = 2;
  r->datum.loss_input_spans = r->target_spans;
  r->datum.n_loss_input_spans = 2;
}

static tnk_promise_t *pass(e2e_t *e2e, const rollout_t *r) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;

  options.loss_fn = "stable_reinforce";
  return tnk_training_forward_backward(e2e->training, &r->datum, 1, &options);
}

static void check_refused(e2e_t *e2e, const rollout_t *r, const char *why) {
  tnk_promise_t *promise = pass(e2e, r);

  CHECK(tnk_wait(promise) != TNK_OK);
  if (strstr(tnk_promise_text(promise), why) == NULL)
    test_fail(__FILE__, __LINE__, "%s", tnk_promise_text(promise));
  tnk_promise_unref(promise);
}

TEST_LIMIT(what_was_sampled_and_found_good_becomes_likelier, 60) {
  double expected = 0;
  double first;
  double last = 0;
  rollout_t r;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  roll(&r, sampler(&e2e, TNK_YES));
  for (size_t i = 0; i < SAMPLED; i++)
    expected -= (double)r.logprobs[i];
  /* The weights are those that sampled: each ratio is 1, and the tokens of the
   * prompt do not count. */
  first = e2e_loss(pass(&e2e, &r));
  CHECK_NEAR(first, expected, 1e-4);
  for (int i = 0; i < 6; i++) {
    e2e_done(e2e_step(&e2e));
    last = e2e_loss(pass(&e2e, &r));
  }
  CHECK(isfinite(last) && last < 0.9 * first);
  tnk_promise_unref(r.promise);
  e2e_close(&e2e);
}

/* Training loops fill the targets before the first sampled token with a padding
 * id, because those positions have no weight. */
TEST_LIMIT(targets_of_the_prompt_may_be_padding, 60) {
  static const int64_t padding[] = {0, 1, 255, 257};
  e2e_t e2e;
  rollout_t r;
  double plain;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  roll(&r, sampler(&e2e, TNK_YES));
  plain = e2e_loss(pass(&e2e, &r));
  for (size_t k = 0; k < sizeof(padding) / sizeof(*padding); k++) {
    for (size_t i = 0; i < PROMPT - 1; i++)
      r.targets[i] = padding[k];
    CHECK_NEAR(e2e_loss(pass(&e2e, &r)), plain, 1e-6);
  }
  r.targets[PROMPT - 1] ^= 1;
  check_refused(&e2e, &r, "target token 3 is");
  tnk_promise_unref(r.promise);
  e2e_close(&e2e);
}

TEST_LIMIT(provenance_that_does_not_fit_is_told, 60) {
  rollout_t r;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  roll(&r, sampler(&e2e, TNK_YES));
  r.targets[PROMPT] ^= 1;
  check_refused(&e2e, &r, "target token 4 is");
  r.targets[PROMPT] ^= 1;
  r.tokens[1] ^= 1;
  check_refused(&e2e, &r, "input token 1 is");
  r.tokens[1] ^= 1;
  r.input_spans[1].offset = 2;
  check_refused(&e2e, &r, "ends after its 8 sampled tokens");
  r.input_spans[1].offset = 0;
  r.target_spans[0].sequence_id = "nobody";
  check_refused(&e2e, &r, "no record of sequence \"nobody\"");
  r.datum.n_input_spans = r.datum.n_loss_input_spans = 0;
  check_refused(&e2e, &r, "needs the provenance of every token");
  tnk_promise_unref(r.promise);
  e2e_close(&e2e);
}

TEST_LIMIT(a_sequence_is_recorded_where_it_was_asked_for, 60) {
  rollout_t r;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  roll(&r, sampler(&e2e, TNK_NO));
  check_refused(&e2e, &r, "no record of sequence");
  tnk_promise_unref(r.promise);
  e2e_close(&e2e);
}

TEST_LIMIT(a_record_is_the_session_s_own_and_goes_with_it, 60) {
  char id[96];
  rollout_t r;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  roll(&r, sampler(&e2e, TNK_YES));
  e2e_done(pass(&e2e, &r));
  snprintf(id, sizeof(id), "%s", r.id);
  tnk_promise_unref(r.promise);
  e2e_stop_client(&e2e);
  e2e_start_client(&e2e);
  e2e_train(&e2e, 2);
  for (int i = 0; i < 2; i++)
    r.input_spans[i].sequence_id = r.target_spans[i].sequence_id = id;
  check_refused(&e2e, &r, "no record of sequence");
  e2e_close(&e2e);
}

/* Every record was used so long ago as it is now and `ms` more. */
static void age_records(e2e_t *e2e, uint64_t ms) {
  TNK__LIST_FOREACH (node, &e2e->server->record_list) {
    tnk__container_of(node, local_record_t, link)->used_ms -= ms;
  }
}

TEST_LIMIT(a_record_lives_for_a_day_after_its_last_use, 60) {
  const uint64_t nearly = LOCAL_RECORD_LIFE_MS - 60000;
  rollout_t r;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  roll(&r, sampler(&e2e, TNK_YES));
  for (int i = 0; i < 3; i++) {
    age_records(&e2e, nearly);
    e2e_done(pass(&e2e, &r));
  }
  age_records(&e2e, LOCAL_RECORD_LIFE_MS + 1);
  check_refused(&e2e, &r, "no record of sequence");
  CHECK(tnk__list_empty(&e2e.server->record_list));
  CHECK_INT(e2e.server->n_record_bytes, 0);
  tnk_promise_unref(r.promise);
  e2e_close(&e2e);
}

/* As if there were so many others that these two no longer fit together. */
TEST_LIMIT(the_record_that_was_not_used_for_longest_gives_way, 60) {
  tnk_sampling_t *sampling;
  rollout_t unused;
  rollout_t used;
  size_t others;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 2);
  sampling = sampler(&e2e, TNK_YES);
  roll(&used, sampling);
  roll(&unused, sampling);
  e2e_done(pass(&e2e, &used));
  others = LOCAL_RECORDS_MAX_BYTES + 1 - e2e.server->n_record_bytes;
  e2e.server->n_record_bytes += others;
  e2e_done(pass(&e2e, &used));
  check_refused(&e2e, &unused, "no record of sequence");
  e2e.server->n_record_bytes -= others;
  tnk_promise_unref(used.promise);
  tnk_promise_unref(unused.promise);
  e2e_close(&e2e);
}
