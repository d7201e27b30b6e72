/* SPDX-License-Identifier: MIT */
/* A vocabulary that is wider than the model's. */
#include <math.h>

#include "lm_help.h"
#include "tools/local/lm/draw.h"
#include "tools/local/lm/state.h"
#include "tools/local/lm/vocab.h"

enum { WIDE = 1000 };

/* Uneven logits, the same in each run. */
static void fill(float *logits) {
  uint64_t random = 5;

  memset(logits, 0, TNK__LM_LOGITS * sizeof(*logits));
  for (size_t i = 0; i < TNK__LM_VOCAB; i++)
    logits[i] = (float)(test_random(&random) % 1000) / 100;
}

TEST(the_probabilities_of_a_wide_vocabulary_add_up_to_1) {
  static const int32_t widths[] = {0, 258, 259, 515, 516, 517, WIDE, 151936};
  float logits[TNK__LM_LOGITS];

  fill(logits);
  for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
    double sum = 0;

    for (int32_t id = 0; id < tnk__lm_width(widths[i]); id++)
      sum += exp((double)tnk__lm_logprob(logits, widths[i], id));
    CHECK_NEAR(sum, 1, 1e-4);
  }
}

TEST(members_of_a_class_are_drawn_alike) {
  tnk__lm_pick_t how = {1, 0, 1, WIDE};
  tnk__lm_rng_t rng = tnk__lm_rng(3, 0);
  float logits[TNK__LM_LOGITS] = {0};
  int seen[WIDE] = {0};

  /* Two classes that matter: 0 with four members, 250 with three. */
  for (size_t i = 0; i < TNK__LM_VOCAB; i++)
    logits[i] = -100;
  logits[0] = logits[250] = 0;
  for (int i = 0; i < 6000; i++)
    seen[tnk__lm_pick(logits, &how, &rng)]++;
  for (int32_t id = 0; id < WIDE; id++) {
    const int32_t of = tnk__lm_class(id);
    const int wanted = of == 0 ? 750 : of == 250 ? 1000 : 0;

    if (seen[id] < wanted * 17 / 20 || seen[id] > wanted * 23 / 20)
      test_fail(__FILE__, __LINE__, "id %d: %d times, and not %d", (int)id,
                seen[id], wanted);
  }
}

static size_t n_drawn(const float *logits, tnk__lm_pick_t how) {
  tnk__lm_rng_t rng = tnk__lm_rng(9, 0);
  int seen[WIDE] = {0};
  size_t n = 0;

  for (int i = 0; i < 2000; i++)
    n += seen[tnk__lm_pick(logits, &how, &rng)]++ == 0;
  return n;
}

TEST(cuts_count_members) {
  float logits[TNK__LM_LOGITS] = {0};
  float real[TNK__LM_LOGITS];

  for (int64_t k = 1; k < 12; k++)
    CHECK_INT(n_drawn(logits, (tnk__lm_pick_t){1, k, 1, WIDE}), k);
  /* Of what is the same for all ids, a tenth has a tenth of the mass. */
  for (size_t i = 0; i < TNK__LM_VOCAB; i++)
    logits[i] = logf((float)tnk__lm_members((int32_t)i, WIDE));
  CHECK_INT(n_drawn(logits, (tnk__lm_pick_t){1, 0, 0.1, WIDE}), 100);
  fill(real);
  CHECK_INT(n_drawn(real, (tnk__lm_pick_t){0, 0, 1, WIDE}), 1);
  CHECK_INT(n_drawn(real, (tnk__lm_pick_t){1, 0, 1e-9, WIDE}), 1);
}

TEST(the_best_ids_are_members_too) {
  float logits[TNK__LM_LOGITS];
  float logprobs[TNK__LM_MAX_TOPK];
  int32_t ids[TNK__LM_MAX_TOPK];
  int seen[WIDE] = {0};

  fill(logits);
  tnk__lm_best(logits, WIDE, TNK__LM_MAX_TOPK, ids, logprobs);
  for (size_t i = 0; i < TNK__LM_MAX_TOPK; i++) {
    CHECK(ids[i] >= 0 && ids[i] < WIDE);
    CHECK_INT(seen[ids[i]]++, 0);
    CHECK(logprobs[i] == tnk__lm_logprob(logits, WIDE, ids[i]));
    CHECK(i == 0 || logprobs[i] <= logprobs[i - 1]);
  }
}

static tnk__lm_draw_t *draw_all(const tnk__lm_weights_t *weights,
                                const tnk__lm_draw_options_t *o) {
  tnk__lm_draw_t *draw;
  int done = 0;

  CHECK_INT(tnk__lm_draw_new(&draw, weights, o, test_allocator(), NULL),
            TNK_OK);
  while (!done)
    CHECK_INT(tnk__lm_draw_step(draw, 64, &done), TNK_OK);
  return draw;
}

/* What sampling reports of wide ids is what a pass reports, and passes learn.
 */
TEST_LIMIT(wide_ids_are_sampled_scored_and_trained, 60) {
  static const int32_t prompt[] = {999, 700, 3, 258};
  tnk__lm_base_t *base = tnk__lm_base_new(test_allocator());
  tnk__lm_t *lm = lm_model(base, 8, 1);
  tnk__lm_loss_t loss = lm_loss(NULL);
  tnk__lm_weights_t *weights;
  tnk__lm_draw_t *draw;
  tnk__lm_draw_options_t o = {.prompt = prompt,
                              .n_prompt = 4,
                              .n_samples = 1,
                              .max_tokens = 12,
                              .seed = 42,
                              .temperature = 1,
                              .top_p = 1,
                              .stop_kind = TNK__LM_STOP_LISTED,
                              .n_vocab = WIDE};
  tnk__lm_sample_t sample;
  int32_t tokens[16];
  int64_t targets[15];
  float logprobs[15];
  tnk__lm_datum_t datum = {.tokens = tokens,
                           .n_tokens = 15,
                           .targets = targets,
                           .n_targets = 1,
                           .n_vocab = WIDE};
  double first = 0;
  double last = 0;
  int n_wide = 0;

  weights = tnk__lm_snapshot(lm);
  draw = draw_all(weights, &o);
  sample = tnk__lm_draw_sample(draw, 0);
  CHECK_INT(sample.n_tokens, 12);
  memcpy(tokens, prompt, sizeof(prompt));
  memcpy(tokens + 4, sample.tokens, 12 * sizeof(*tokens));
  for (size_t i = 0; i < 15; i++) {
    targets[i] = tokens[i + 1];
    n_wide += tokens[i + 1] >= TNK__LM_VOCAB;
  }
  CHECK(n_wide > 4);
  CHECK_INT(tnk__lm_datum_check(&datum, &loss, NULL), TNK_OK);
  CHECK_INT(tnk__lm_run(lm, &loss, &datum, 1, logprobs, &first), TNK_OK);
  for (size_t i = 0; i < 12; i++)
    CHECK(logprobs[i + 3] == sample.logprobs[i]);
  for (int i = 0; i < 8; i++) {
    tnk__adam_t adam = TNK__ADAM_INIT;
    tnk__lm_step_t step;

    adam.learning_rate = 0.01;
    CHECK_INT(tnk__lm_step_adamw(lm, &adam, &step, NULL), TNK_OK);
    last = 0;
    CHECK_INT(tnk__lm_run(lm, &loss, &datum, 1, logprobs, &last), TNK_OK);
  }
  CHECK(last < first * 0.9);
  tnk__lm_draw_free(draw);
  tnk__lm_weights_free(weights);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

TEST(ids_beyond_the_width_are_refused) {
  static const int32_t ids[] = {WIDE - 1, WIDE};
  static const tnk__lm_text_t text = {"a", 1};
  tnk__lm_base_t *base = tnk__lm_base_new(test_allocator());
  tnk__lm_weights_t *weights = tnk__lm_base_weights(base, test_allocator());
  tnk__lm_draw_options_t o = {.prompt = ids,
                              .n_prompt = 1,
                              .n_samples = 1,
                              .max_tokens = 1,
                              .top_p = 1,
                              .n_vocab = WIDE};
  tnk__lm_why_t why = {{0}};
  tnk__lm_draw_t *draw;

  CHECK_INT(tnk__lm_tokens_check(ids, 1, WIDE, "x", &why), TNK_OK);
  CHECK_INT(tnk__lm_tokens_check(ids, 2, WIDE, "x", &why), TNK_EINVAL);
  CHECK_STR(why.text, "x[1] is 1000, the vocabulary has ids 0 to 999");
  o.stop_kind = TNK__LM_STOP_LISTED;
  o.stop_texts = &text;
  o.n_stop_texts = 1;
  CHECK_INT(tnk__lm_draw_new(&draw, weights, &o, test_allocator(), &why),
            TNK_EINVAL);
  CHECK(strstr(why.text, "token ids") != NULL);
  tnk__lm_weights_free(weights);
  tnk__lm_base_free(base);
}
