/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_OPTIMIZER_H
#define TNK_TOOLS_TNK_LEARN_OPTIMIZER_H

#include <jansson.h>

#include "tnk/training.h"

/* The options of the optimizer that tnk train and tnk rl share. A number below
 * 0 was not given: the service gets none, and uses its default. */
typedef struct {
  int family; /* tnk_optimizer_t */
  double beta1, beta2;
  double eps;
  double weight_decay;
  double clip_norm;
} learn_optimizer_t;

#define LEARN_OPTIMIZER_INIT                                                   \
  { 0, -1, -1, -1, -1, -1 }

/* Names of the families that the options can select. */
extern const char *const learn_optimizers[];

/* Rows of a table of options. */
#define LEARN_OPTIMIZER_OPTIONS(args)                                          \
  {.name = "optimizer",                                                        \
   .value = "NAME",                                                            \
   .choice = &(args).family,                                                   \
   .choices = learn_optimizers,                                                \
   .help = "adamw or dimuon (adamw)."},                                        \
      {.name = "beta1",                                                        \
       .value = "X",                                                           \
       .real = &(args).beta1,                                                  \
       .max_real = 1,                                                          \
       .help = "Decay of the optimizer's mean of the gradients, below 1 "      \
               "(0.9)."},                                                      \
      {.name = "beta2",                                                        \
       .value = "X",                                                           \
       .real = &(args).beta2,                                                  \
       .max_real = 1,                                                          \
       .help = "Decay of the mean of their squares, below 1; adamw only "      \
               "(0.95)."},                                                     \
      {.name = "eps",                                                          \
       .value = "X",                                                           \
       .real = &(args).eps,                                                    \
       .max_real = 1,                                                          \
       .is_positive = 1,                                                       \
       .help = "Added to the root of these squares; adamw only (1e-12)."},     \
      {.name = "weight-decay",                                                 \
       .value = "X",                                                           \
       .real = &(args).weight_decay,                                           \
       .max_real = 1e3,                                                        \
       .help = "Weight decay; adamw only (0)."},                               \
  {                                                                            \
    .name = "clip-norm", .value = "X", .real = &(args).clip_norm,              \
    .max_real = 1e9,                                                           \
    .help = "Largest norm of the gradients. 0 means no limit (0)."             \
  }

/* Returns the error in the combination of options, or NULL. */
const char *learn_optimizer_check(const learn_optimizer_t *args);
/* The parameters of a step. */
tnk_optim_t learn_optim(const learn_optimizer_t *args, double rate);
/* Add the options to those of config.json, as null if they have their defaults:
 * the folder of an earlier version, which has none of them, then is the same.
 * Takes the reference of `options`, which may be NULL, and returns it or NULL.
 */
json_t *learn_optimizer_add(json_t *options, const learn_optimizer_t *args);

#endif
