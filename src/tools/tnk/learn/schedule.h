/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_SCHEDULE_H
#define TNK_TOOLS_TNK_LEARN_SCHEDULE_H

#include <stdint.h>

typedef enum {
  LEARN_CONSTANT = 0,
  LEARN_LINEAR = 1, /* to 0 after the last step */
  LEARN_COSINE = 2  /* half a period, to 0 after the last step */
} learn_decay_t;

/* The learning rate of each step. It rises in equal parts during the warm-up,
 * whose last step has the peak. Then it decays. */
typedef struct {
  learn_decay_t decay;
  double peak;
  uint64_t n_warm_up; /* steps; 0: none */
  uint64_t n_steps;   /* steps of the run, including the warm-up */
} learn_schedule_t;

/* The rate of a step; the first step is 0. Later steps have the rate at the end
 * of the decay. */
double learn_schedule_rate(const learn_schedule_t *schedule, uint64_t step);

/* A peak for LoRA by the number of parameters that a model's name contains,
 * such as 8B. Larger models get smaller rates. */
double learn_default_rate(const char *model);

/* A seed that differs for each `number` of a run, in the range that all clients
 * accept. */
uint64_t learn_seed(uint64_t seed, uint64_t number);

#endif
