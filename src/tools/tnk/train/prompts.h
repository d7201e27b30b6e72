/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_PROMPTS_H
#define TNK_TOOLS_TNK_TRAIN_PROMPTS_H

#include "tnk/training.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/learn/sampler.h"
#include "tools/tnk/text/chats.h"
#include "tools/tnk/train/use.h"

/* The prompts of --sample, as tokens. Each is sampled with the seed of the run,
 * so the answers differ only by the weights. */
typedef struct {
  cli_chats_t chats;
  const char *path; /* of samples.jsonl */
  int32_t **ids;    /* of each prompt, in the order of the options */
  size_t *n_ids;
  size_t n;
  learn_sampler_t weights; /* that are sampled from */
  uint64_t n_begun;        /* weights of this process, for their names */
} train_prompts_t;

/* Open the tokenizer and encode the prompts. Without --sample there are none,
 * and nothing is open unless the method is distill, which needs the stops.
 * Returns the exit status; errors have been reported. Free them in any case. */
int train_prompts_open(train_prompts_t *prompts, const cli_t *cli,
                       const char *path, int64_t now_s);
void train_prompts_free(train_prompts_t *prompts);

/* The most that the samples of a step can use. */
train_use_t train_prompts_use(const train_prompts_t *prompts);
/* Call for the weights of step `number`. They have a path, so they can still be
 * sampled from after the server has lost the model. */
tnk_promise_t *train_prompts_begin(train_prompts_t *prompts,
                                   tnk_training_t *model, uint64_t number);
/*
 * Sample from the weights in `saved`, a settled promise of
 * train_prompts_begin(), and append the answers of step `number` to the file.
 * Then the weights are deleted. A failed request causes only a warning, because
 * the training does not depend on it. Returns the exit status; errors of the
 * file have been reported.
 */
int train_prompts_sample(train_prompts_t *prompts, cli_ask_t *ask,
                         tnk_promise_t *saved, uint64_t number);

#endif
