/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_PLAN_H
#define TNK_TOOLS_TNK_TRAIN_PLAN_H

#include <stdint.h>

/*
 * The order in which examples are trained. Everything is computed from these
 * numbers (and the lengths of the examples, for batches by tokens), so a
 * resumed run needs no other state than its step.
 *
 * Each epoch has all examples once, in its own order. The epochs follow each
 * other without a gap: if the number of examples is not a multiple of the
 * batch, a step has the end of one epoch and the start of the next one. Only
 * the last step may be smaller.
 */
typedef struct {
  uint64_t seed;
  uint64_t n_examples;
  uint64_t n_batch; /* examples of a step, at most */
  uint64_t n_steps;
  uint64_t n_total; /* examples of all steps; an example counts per epoch */
  /* [n_steps + 1], for batches by tokens: the position of each step's first
   * example in the sequence of all. NULL: a multiple of n_batch. */
  uint64_t *starts;
} train_plan_t;

/* Limits of each number, so that no product overflows. */
#define TRAIN_MAX_EXAMPLES ((uint64_t)1 << 40)
#define TRAIN_MAX_BATCH ((uint64_t)1 << 20)
#define TRAIN_MAX_STEPS ((uint64_t)1 << 40)
/* The limit of batches by tokens, whose steps need memory. */
#define TRAIN_MAX_STARTS ((uint64_t)1 << 26)
#define TRAIN_MAX_EPOCHS ((uint64_t)1 << 20)

/* Plan a number of epochs. Returns TNK_OK, or TNK_EINVAL for a number that is 0
 * or above its limit. */
int train_plan_epochs(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                      uint64_t n_batch, uint64_t n_epochs);
/* Plan a number of steps, each with a whole batch. Returns the same as
 * above. */
int train_plan_steps(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                     uint64_t n_batch, uint64_t n_steps);
/* Plan steps of at most `max_tokens` tokens, but at least one example each: all
 * of `n_epochs`, or `n_steps` if it is not 0. `tokens` has the number of tokens
 * of each example. Also returns TNK_ENOMEM. */
int train_plan_tokens(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                      uint64_t n_epochs, uint64_t n_steps, uint64_t max_tokens,
                      const uint64_t *tokens);
/* Allowed for a plan of zeros too. */
void train_plan_free(train_plan_t *plan);
/* The number of examples in a step; the first step is 0. 0 after the last. */
uint64_t train_plan_count(const train_plan_t *plan, uint64_t step);
/* The index of example `i` of a step. */
uint64_t train_plan_example(const train_plan_t *plan, uint64_t step,
                            uint64_t i);
/* The epochs that are complete after `n_steps` steps, with their fraction. */
double train_plan_epoch(const train_plan_t *plan, uint64_t n_steps);

/* Element `i` of a permutation of 0 to n - 1 that `seed` and `epoch` select, in
 * constant memory. */
uint64_t train_shuffle(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#endif
