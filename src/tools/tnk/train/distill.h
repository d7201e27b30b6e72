/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_DISTILL_H
#define TNK_TOOLS_TNK_TRAIN_DISTILL_H

#include "tools/tnk/learn/sampler.h"
#include "tools/tnk/train/pass.h"
#include "tools/tnk/train/prompts.h"
#include "tools/tnk/train/teacher.h"

typedef struct train_answer train_answer_t;

/*
 * On-policy distillation. A step samples answers from the weights that it
 * trains. The teacher scores their tokens, and the difference of the logprobs
 * becomes the advantages (learn/kl.h).
 *
 * The caller sets the members up to `n_batch`.
 */
typedef struct {
  const train_prompts_t *prompts; /* for the stop strings */
  train_teacher_t teacher;
  size_t n_batch; /* prompts of a step, at most */
  learn_sampler_t sampler;
  train_answer_t *answers; /* of the current step */
  size_t n_answers;
  tnk_promise_t **sampled; /* [n_batch] */
  uint64_t n_tries;        /* steps of this process, for names of weights */
  uint64_t n_teacher_lost; /* steps in a row whose scores were lost */
  int is_empty;            /* a step has no answers, which ends the run */
} train_distill_t;

/* Replace the prompts in the pass of a step by the sampled examples, in memory
 * of its arena. The pass has room for them. A signal or the --timeout ends it
 * early. Returns an outcome (learn/sampler.h). */
int train_distill_step(train_distill_t *distill, cli_ask_t *ask,
                       tnk_training_t *model, train_pass_t *pass,
                       train_step_t *step);
void train_distill_free(train_distill_t *distill);

#endif
