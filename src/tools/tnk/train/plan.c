/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/plan.h"

#include <stdlib.h>

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

static uint64_t example_at(const train_plan_t *plan, uint64_t at) {
  return train_shuffle(plan->seed, at / plan->n_examples, plan->n_examples,
                       at % plan->n_examples);
}

/* Returns the position after the step that begins at `at`. */
static uint64_t end_of_step(const train_plan_t *plan, uint64_t at, uint64_t end,
                            uint64_t max_tokens, const uint64_t *tokens) {
  const uint64_t first = at;
  uint64_t left = max_tokens;

  while (at < end && at - first < TRAIN_MAX_BATCH) {
    const uint64_t n = tokens[example_at(plan, at)];

    if (n > left && at > first)
      break;
    left -= n < left ? n : left;
    at++;
  }
  return at;
}

/* Make room for the start of step `n`. */
static int make_room(train_plan_t *plan, uint64_t *room, uint64_t n) {
  uint64_t *starts;

  if (n < *room)
    return TNK_OK;
  *room = *room > 0 ? *room * 2 : 64;
  if (*room > SIZE_MAX / sizeof(*starts))
    return TNK_ENOMEM;
  starts = realloc(plan->starts, (size_t)*room * sizeof(*starts));
  if (starts == NULL)
    return TNK_ENOMEM;
  plan->starts = starts;
  return TNK_OK;
}

int train_plan_tokens(train_plan_t *plan, uint64_t seed, uint64_t n_examples,
                      uint64_t n_epochs, uint64_t n_steps, uint64_t max_tokens,
                      const uint64_t *tokens) {
  const uint64_t most = n_steps > 0 ? n_steps : TRAIN_MAX_STARTS;
  uint64_t room = 0;
  uint64_t end = UINT64_MAX;

  if (!begin(plan, seed, n_examples, 1) || max_tokens == 0 ||
      (n_steps > 0 ? n_steps > TRAIN_MAX_STARTS
                   : !is_in_range(n_epochs, TRAIN_MAX_EPOCHS)))
    return TNK_EINVAL;
  if (n_steps == 0)
    end = n_examples * n_epochs;
  while (plan->n_steps < most && plan->n_total < end) {
    const uint64_t first = plan->n_total;

    if (make_room(plan, &room, plan->n_steps + 1) != TNK_OK)
      return TNK_ENOMEM;
    plan->starts[plan->n_steps++] = first;
    plan->n_total = end_of_step(plan, first, end, max_tokens, tokens);
    plan->starts[plan->n_steps] = plan->n_total;
    if (plan->n_total - first > plan->n_batch)
      plan->n_batch = plan->n_total - first;
  }
  return n_steps > 0 || plan->n_total == end ? TNK_OK : TNK_EINVAL;
}

void train_plan_free(train_plan_t *plan) {
  free(plan->starts);
  plan->starts = NULL;
}

static uint64_t start_of(const train_plan_t *plan, uint64_t step) {
  return plan->starts != NULL ? plan->starts[step] : step * plan->n_batch;
}

uint64_t train_plan_count(const train_plan_t *plan, uint64_t step) {
  if (step >= plan->n_steps)
    return 0;
  return (step + 1 < plan->n_steps ? start_of(plan, step + 1) : plan->n_total) -
         start_of(plan, step);
}

uint64_t train_plan_example(const train_plan_t *plan, uint64_t step,
                            uint64_t i) {
  return example_at(plan, start_of(plan, step) + i);
}

double train_plan_epoch(const train_plan_t *plan, uint64_t n_steps) {
  const uint64_t done =
      n_steps < plan->n_steps ? start_of(plan, n_steps) : plan->n_total;

  return (double)done / (double)plan->n_examples;
}
