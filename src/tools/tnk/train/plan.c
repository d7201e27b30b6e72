/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/plan.h"

#include "tnk/error.h"

/* ---- Permutation ---- */

/* The finalizer of splitmix64: each bit of the input changes each bit of the
 * result with a probability of about one half. */
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

enum { N_ROUNDS = 6 };

/* A Feistel network is a permutation of the numbers with 2 * half bits. */
static uint64_t permute(uint64_t key, unsigned half, uint64_t x) {
  const uint64_t mask = ((uint64_t)1 << half) - 1;
  uint64_t left = x >> half;
  uint64_t right = x & mask;

  for (uint64_t round = 0; round < N_ROUNDS; round++) {
    const uint64_t next = left ^ (mix(key ^ mix(right ^ (round << 56))) & mask);

    left = right;
    right = next;
  }
  return left << half | right;
}

uint64_t train_shuffle(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i) {
  const uint64_t key = mix(mix(seed) ^ epoch);
  unsigned half = 1;

  while (half < 31 && ((uint64_t)1 << (2 * half)) < n)
    half++;
  /* The network permutes at most 4 * n numbers. Following its cycle from a
   * number below n to the next one below n permutes those below n. */
  do
    i = permute(key, half, i);
  while (i >= n);
  return i;
}

/* ---- Plan ---- */

static int is_in_range(uint64_t n, uint64_t max) {
  return n > 0 && n <= max;
}

static int begin(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                 uint64_t n_batch) {
  *plan = (train_plan_t){
      .seed = seed, .n_examples = n_examples, .n_batch = n_batch};
  return is_in_range(n_examples, TRAIN_MAX_EXAMPLES) &&
         is_in_range(n_batch, TRAIN_MAX_BATCH);
}

int train_plan_epochs(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                      uint64_t n_batch, uint64_t n_epochs) {
  if (!begin(plan, seed, n_examples, n_batch) ||
      !is_in_range(n_epochs, TRAIN_MAX_EPOCHS))
    return TNK_EINVAL;
  plan->n_total = n_examples * n_epochs;
  plan->n_steps = (plan->n_total - 1) / n_batch + 1;
  return TNK_OK;
}

int train_plan_steps(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                     uint64_t n_batch, uint64_t n_steps) {
  if (!begin(plan, seed, n_examples, n_batch) ||
      !is_in_range(n_steps, TRAIN_MAX_STEPS))
    return TNK_EINVAL;
  plan->n_total = n_batch * n_steps;
  plan->n_steps = n_steps;
  return TNK_OK;
}

uint64_t train_plan_count(const train_plan_t *plan, uint64_t step) {
  if (step >= plan->n_steps)
    return 0;
  return step + 1 < plan->n_steps ? plan->n_batch
                                  : plan->n_total - step * plan->n_batch;
}

uint64_t train_plan_example(const train_plan_t *plan, uint64_t step,
                            uint64_t i) {
  const uint64_t at = step * plan->n_batch + i;

  return train_shuffle(plan->seed, at / plan->n_examples, plan->n_examples,
                       at % plan->n_examples);
}

double train_plan_epoch(const train_plan_t *plan, uint64_t n_steps) {
  const uint64_t done =
      n_steps < plan->n_steps ? n_steps * plan->n_batch : plan->n_total;

  return (double)done / (double)plan->n_examples;
}
