/* SPDX-License-Identifier: MIT */
/*
 * The order in which examples are trained. Everything is computed from the
 * options (and the lengths of the examples, for batches by tokens), so a
 * resumed run needs no other state than its step. All epochs are one sequence,
 * and a step is a range of positions in it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "tnk/error.h"
#include "tnk/train.h"

/* Limits of each number, so that no product overflows. */
#define MAX_EXAMPLES ((uint64_t)1 << 40)
#define MAX_BATCH ((uint64_t)1 << 20)
#define MAX_STEPS ((uint64_t)1 << 40)
#define MAX_EPOCHS ((uint64_t)1 << 20)
/* Batches by tokens need memory for each step. */
#define MAX_STARTS ((uint64_t)1 << 26)
#define MAX_SHUFFLED ((uint64_t)1 << 62)

struct tnk_plan {
  tnk_allocator_t alloc;
  uint64_t seed;
  uint64_t n_examples;
  uint64_t n_batch; /* examples of a step, at most */
  uint64_t n_steps;
  uint64_t n_total; /* positions in the sequence of all epochs */
  /* [n_steps + 1], for batches by tokens: the position of each step's first
   * example. NULL: a multiple of n_batch. */
  uint64_t *starts;
};

/* ---- Permutation ---- */

/* The finalizer of splitmix64: each bit of the input changes each bit of the
 * result with a probability of about one half. */
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

enum { N_ROUNDS = 6, MAX_HALF = 31 };

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

uint64_t tnk_shuffle(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i) {
  const uint64_t key = mix(mix(seed) ^ epoch);
  unsigned half = 1;

  if (n > MAX_SHUFFLED || i >= n)
    return UINT64_MAX;
  while (half < MAX_HALF && ((uint64_t)1 << (2 * half)) < n)
    half++;
  /* The network permutes at most 4 * n numbers. Following its cycle from a
   * number below n to the next one below n permutes those below n. */
  do
    i = permute(key, half, i);
  while (i >= n);
  return i;
}

/* ---- Options ---- */

/* A place for the sentence that says what is wrong. */
typedef struct {
  char *text;
  size_t size;
} why_t;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
refuse(const why_t *why, const char *format, ...) {
  va_list args;

  va_start(args, format);
  if (why->text != NULL && why->size > 0)
    vsnprintf(why->text, why->size, format, args);
  va_end(args);
  return TNK_EINVAL;
}

static int out_of_memory(const why_t *why) {
  (void)refuse(why, "%s", tnk_strerror(TNK_ENOMEM));
  return TNK_ENOMEM;
}

static int check_most(const char *name, uint64_t n, uint64_t max,
                      const why_t *why) {
  return n <= max
             ? TNK_OK
             : refuse(why,
                      "%s is %" PRIu64 ", at most %" PRIu64 " are possible",
                      name, n, max);
}

/* The batch has one limit: examples or tokens. */
static int check_batch(const tnk_plan_options_t *o, const why_t *why) {
  if (o->n_batch == 0 && o->max_batch_tokens == 0)
    return refuse(why, "n_batch is 0, and max_batch_tokens is not set");
  if (o->n_batch > 0 && o->max_batch_tokens > 0)
    return refuse(why, "n_batch and max_batch_tokens exclude each other");
  if (o->max_batch_tokens > 0 && o->tokens == NULL)
    return refuse(why, "max_batch_tokens needs tokens, which is NULL");
  if (o->max_batch_tokens == 0 && o->tokens != NULL)
    return refuse(why, "tokens is set without max_batch_tokens");
  return check_most("n_batch", o->n_batch, MAX_BATCH, why);
}

static int check_options(const tnk_plan_options_t *o, const why_t *why) {
  const uint64_t most = o->max_batch_tokens > 0 ? MAX_STARTS : MAX_STEPS;
  int err;

  if (o->n_examples == 0)
    return refuse(why, "n_examples is 0");
  err = check_most("n_examples", o->n_examples, MAX_EXAMPLES, why);
  if (err == TNK_OK)
    err = check_batch(o, why);
  if (err == TNK_OK && o->n_epochs > 0 && o->n_steps > 0)
    err = refuse(why, "n_epochs and n_steps exclude each other");
  if (err == TNK_OK)
    err = check_most("n_epochs", o->n_epochs, MAX_EPOCHS, why);
  if (err == TNK_OK)
    err = check_most("n_steps", o->n_steps, most, why);
  return err;
}

/* ---- Steps ---- */

static uint64_t example_at(const tnk_plan_t *plan, uint64_t at) {
  return tnk_shuffle(plan->seed, at / plan->n_examples, plan->n_examples,
                     at % plan->n_examples);
}

/* Returns the position after the step that begins at `at`. */
static uint64_t end_of_step(const tnk_plan_t *plan, uint64_t at, uint64_t end,
                            const tnk_plan_options_t *o) {
  const uint64_t first = at;
  uint64_t left = o->max_batch_tokens;

  while (at < end && at - first < MAX_BATCH) {
    const uint64_t n = o->tokens[example_at(plan, at)];

    if (n > left && at > first)
      break;
    left -= n < left ? n : left;
    at++;
  }
  return at;
}

/* Make room for the start of step `n`. */
static int make_room(tnk_plan_t *plan, uint64_t *room, uint64_t n) {
  uint64_t *starts;

  if (n < *room)
    return TNK_OK;
  *room = *room > 0 ? *room * 2 : 64;
  if (*room > SIZE_MAX / sizeof(*starts))
    return TNK_ENOMEM;
  starts =
      tnk__realloc(&plan->alloc, plan->starts, (size_t)*room * sizeof(*starts));
  if (starts == NULL)
    return TNK_ENOMEM;
  plan->starts = starts;
  return TNK_OK;
}

static int plan_by_tokens(tnk_plan_t *plan, const tnk_plan_options_t *o,
                          uint64_t end, const why_t *why) {
  const uint64_t most = o->n_steps > 0 ? o->n_steps : MAX_STARTS;
  uint64_t room = 0;

  while (plan->n_steps < most && plan->n_total < end) {
    const uint64_t first = plan->n_total;

    if (make_room(plan, &room, plan->n_steps + 1) != TNK_OK)
      return out_of_memory(why);
    plan->starts[plan->n_steps++] = first;
    plan->n_total = end_of_step(plan, first, end, o);
    plan->starts[plan->n_steps] = plan->n_total;
    if (plan->n_total - first > plan->n_batch)
      plan->n_batch = plan->n_total - first;
  }
  if (o->n_steps == 0 && plan->n_total < end)
    return refuse(why,
                  "max_batch_tokens is too small: n_epochs have more than "
                  "%" PRIu64 " steps",
                  MAX_STARTS);
  return TNK_OK;
}

/* Divide the sequence into steps. The options have passed their checks. */
static int divide(tnk_plan_t *plan, const tnk_plan_options_t *o,
                  const why_t *why) {
  const uint64_t n_epochs = o->n_epochs > 0 ? o->n_epochs : 1;
  const uint64_t end = plan->n_examples * n_epochs;

  if (o->max_batch_tokens > 0)
    return plan_by_tokens(plan, o, o->n_steps > 0 ? UINT64_MAX : end, why);
  plan->n_batch = o->n_batch;
  plan->n_total = o->n_steps > 0 ? o->n_batch * o->n_steps : end;
  plan->n_steps = (plan->n_total - 1) / o->n_batch + 1;
  return TNK_OK;
}

int tnk_plan_new(tnk_plan_t **out, const tnk_plan_options_t *options, char *why,
                 size_t why_size) {
  const why_t whys = {why, why_size};
  tnk_plan_options_t own = TNK_PLAN_OPTIONS_INIT;
  const tnk_allocator_t *alloc;
  tnk_plan_t *plan;
  int err;

  if (out == NULL)
    return refuse(&whys, "out is NULL");
  *out = NULL;
  err = TNK__LOAD(tnk_plan_options_t, &own, options, why, why_size);
  if (err == TNK_OK)
    err = check_options(&own, &whys);
  if (err != TNK_OK)
    return err;
  alloc = own.allocator != NULL ? own.allocator : tnk__allocator_default();
  plan = tnk__calloc(alloc, 1, sizeof(*plan));
  if (plan == NULL)
    return out_of_memory(&whys);
  plan->alloc = *alloc;
  plan->seed = own.seed;
  plan->n_examples = own.n_examples;
  err = divide(plan, &own, &whys);
  if (err == TNK_OK)
    *out = plan;
  else
    tnk_plan_free(plan);
  return err;
}

void tnk_plan_free(tnk_plan_t *plan) {
  tnk_allocator_t alloc;

  if (plan == NULL)
    return;
  alloc = plan->alloc;
  tnk__free(&alloc, plan->starts);
  tnk__free(&alloc, plan);
}

/* ---- Reading ---- */

static uint64_t start_of(const tnk_plan_t *plan, uint64_t step) {
  return plan->starts != NULL ? plan->starts[step] : step * plan->n_batch;
}

uint64_t tnk_plan_steps(const tnk_plan_t *plan) {
  return plan != NULL ? plan->n_steps : 0;
}

uint64_t tnk_plan_total(const tnk_plan_t *plan) {
  return plan != NULL ? plan->n_total : 0;
}

uint64_t tnk_plan_max_count(const tnk_plan_t *plan) {
  if (plan == NULL)
    return 0;
  return plan->n_batch < plan->n_total ? plan->n_batch : plan->n_total;
}

uint64_t tnk_plan_count(const tnk_plan_t *plan, uint64_t step) {
  if (plan == NULL || step >= plan->n_steps)
    return 0;
  return (step + 1 < plan->n_steps ? start_of(plan, step + 1) : plan->n_total) -
         start_of(plan, step);
}

uint64_t tnk_plan_example(const tnk_plan_t *plan, uint64_t step, uint64_t i) {
  return i < tnk_plan_count(plan, step)
             ? example_at(plan, start_of(plan, step) + i)
             : UINT64_MAX;
}

double tnk_plan_epoch(const tnk_plan_t *plan, uint64_t n_steps) {
  if (plan == NULL)
    return 0;
  return (double)(n_steps < plan->n_steps ? start_of(plan, n_steps)
                                          : plan->n_total) /
         (double)plan->n_examples;
}
