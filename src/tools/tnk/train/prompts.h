/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_PROMPTS_H
#define TNK_TOOLS_TNK_TRAIN_PROMPTS_H

#include "tnk/training.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/text/chats.h"

/* The prompts of --sample, as tokens. Each is sampled with the seed of the run,
 * so the answers differ only by the weights. */
typedef struct {
  cli_chats_t chats;
  const char *path; /* of samples.jsonl */
  int32_t **ids;    /* of each prompt, in the order of the options */
  size_t *n_ids;
  size_t n;
} train_prompts_t;

/* Open the tokenizer and encode the prompts. Without --sample there are none.
 * Returns the exit status; errors have been reported. Free them in any case. */
int train_prompts_open(train_prompts_t *prompts, const cli_t *cli,
                       const char *path, int64_t now_s);
void train_prompts_free(train_prompts_t *prompts);

/*
 * Sample from the client in the promise `made`, and append the answers of step
 * `number` to the file. `made` is a promise of
 * tnk_training_save_weights_and_get_sampling(). A failed request causes only a
 * warning, because the training does not depend on it. Returns the exit status;
 * errors of the file have been reported.
 */
int train_prompts_sample(train_prompts_t *prompts, cli_ask_t *ask,
                         tnk_promise_t *made, uint64_t number);

#endif
