/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_USE_H
#define TNK_TOOLS_TNK_TRAIN_USE_H

#include <stdint.h>

#include "tnk/usage.h"

/* The use of tokens by kind. */
typedef struct {
  uint64_t prompt, sampled, trained; /* of the student */
  uint64_t scored;                   /* by the teacher */
} train_use_t;
void train_use_add(train_use_t *use, train_use_t more);
uint64_t train_use_tokens(const train_use_t *use);
/* Prices may be NaN. Those of samples count only if there are some, and the
 * teacher's only if it has scored tokens. */
double train_use_usd(const train_use_t *use, const tnk_price_t *model,
                     const tnk_price_t *teacher);
/* The most that one prompt of `n` tokens can use in a step. */
train_use_t train_distill_use(uint64_t n);

#endif
