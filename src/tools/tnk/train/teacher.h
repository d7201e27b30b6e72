/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_TEACHER_H
#define TNK_TOOLS_TNK_TRAIN_TEACHER_H

#include "tnk/sampling.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/train/data.h"

/* The model of --teacher, which scores the tokens of the student. */
typedef struct {
  const char *name; /* as given */
  char *path;       /* of its weights; NULL: a base model */
  tnk_sampling_t *client;
} train_teacher_t;

/* Find the weights if --teacher is the folder of a run. `served` is the folder
 * of --local, to which they are copied; or NULL. Returns the exit status;
 * errors have been reported. Free the teacher in any case. */
int train_teacher_find(train_teacher_t *teacher, const cli_t *cli,
                       const char *served);
/* Create its client. Returns the exit status; errors have been reported. */
int train_teacher_create(train_teacher_t *teacher, cli_ask_t *ask);
/* Check with a prompt and the last token id of the student that it accepts the
 * student's tokens, and that they are text to it. Returns the exit status, or
 * LEARN_BROKE. */
int train_teacher_check(train_teacher_t *teacher, cli_ask_t *ask,
                        const train_data_t *data);
/* Begin to score tokens: a promise of their logprobs. */
tnk_promise_t *train_teacher_score(const train_teacher_t *teacher,
                                   const int32_t *ids, size_t n);
/* Get the logprobs of `n` tokens from a promise that has settled, if those from
 * `first` are numbers. NULL: *status receives the outcome (learn/sampler.h). */
const float *train_teacher_logprobs(const train_teacher_t *teacher,
                                    cli_ask_t *ask, tnk_promise_t *scored,
                                    size_t first, size_t n, int *status);
/* Its base model, which has the price; NULL if it is unknown. The base model of
 * weights is unknown without a client. `teacher` may be NULL. */
const char *train_teacher_model(const train_teacher_t *teacher);
void train_teacher_free(train_teacher_t *teacher);

#endif
