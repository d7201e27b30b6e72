/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_LM_HELP_H
#define TNK_TEST_LOCAL_LM_HELP_H

#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"

/* A base and a model, and examples made of a sentence. */

#define LM_TEXT                                                                \
  "the quick brown fox jumps over the lazy dog; the dog sleeps. pack my "      \
  "box with five dozen liquor jugs. how vexingly quick daft zebras jump! "

enum { LM_MAX_TEST = 360 };

typedef struct {
  int32_t tokens[LM_MAX_TEST];
  int64_t targets[LM_MAX_TEST];
  float logprobs[LM_MAX_TEST];
  float advantages[LM_MAX_TEST];
  float weights[LM_MAX_TEST];
} lm_example_t;

static inline tnk__lm_loss_t lm_loss(const char *name) {
  tnk__lm_loss_t loss;

  CHECK_INT(tnk__lm_loss_init(&loss, name, NULL, 0, NULL), TNK_OK);
  return loss;
}

/* n tokens of the sentence from `start`, with varied reinforcement inputs. */
static inline tnk__lm_datum_t lm_datum(lm_example_t *ex, size_t start,
                                       size_t n) {
  static const char text[] = LM_TEXT;
  tnk__lm_datum_t d = {.tokens = ex->tokens,
                       .n_tokens = n,
                       .targets = ex->targets,
                       .n_targets = 1,
                       .weights = ex->weights,
                       .logprobs = ex->logprobs,
                       .advantages = ex->advantages};
  size_t i;

  CHECK(n <= LM_MAX_TEST);
  for (i = 0; i < n; i++) {
    ex->tokens[i] = (unsigned char)text[(start + i) % (sizeof(text) - 1)];
    ex->targets[i] = (unsigned char)text[(start + i + 1) % (sizeof(text) - 1)];
    ex->logprobs[i] = -5.5f + 0.1f * (float)(i % 7);
    ex->advantages[i] = (float)(i % 5) - 1.5f;
    ex->weights[i] = i % 4 == 3 ? 0.0f : 0.5f * (float)(1 + i % 3);
  }
  return d;
}

static inline tnk__lm_t *lm_model(const tnk__lm_base_t *base, uint32_t rank,
                                  uint64_t seed) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  tnk__lm_t *lm;

  config.rank = rank;
  config.seed = seed;
  CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), NULL), TNK_OK);
  return lm;
}

/* Steps of Adam on the sentence; returns the loss before the last. */
static inline double lm_learn(tnk__lm_t *lm, int n_steps, size_t n_tokens) {
  tnk__lm_loss_t loss = lm_loss(NULL);
  tnk__adam_t adam = TNK__ADAM_INIT;
  lm_example_t ex;
  float logprobs[LM_MAX_TEST];
  tnk__lm_step_t step;
  double sum = 0;
  int i;

  adam.learning_rate = 0.01;
  for (i = 0; i < n_steps; i++) {
    tnk__lm_datum_t d = lm_datum(&ex, (size_t)i * 5, n_tokens);
    d.weights = NULL;
    sum = 0;
    CHECK_INT(tnk__lm_run(lm, &loss, &d, 1, logprobs, &sum), TNK_OK);
    CHECK_INT(tnk__lm_step_adamw(lm, &adam, &step, NULL), TNK_OK);
  }
  return sum / (double)n_tokens;
}

#endif
