/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/use.h"

#include <math.h>

#include "tools/tnk/train/args.h"

/* To score tokens the service generates one, which is discarded. */
train_use_t train_distill_use(uint64_t n) {
  const uint64_t n_group = (uint64_t)train_args.group_size;
  const uint64_t n_answer = (uint64_t)train_args.answer_tokens;

  return (train_use_t){.prompt = n * n_group,
                       .sampled = n_answer * n_group,
                       .trained = (n + n_answer - 1) * n_group,
                       .scored = (n + n_answer + 1) * n_group};
}

void train_use_add(train_use_t *use, train_use_t more) {
  use->prompt += more.prompt;
  use->sampled += more.sampled;
  use->trained += more.trained;
  use->scored += more.scored;
}

uint64_t train_use_tokens(const train_use_t *use) {
  return use->prompt + use->sampled + use->trained + use->scored;
}

double train_use_usd(const train_use_t *use, const tnk_price_t *model,
                     const tnk_price_t *teacher) {
  double usd = (double)use->trained * model->trained;

  if (use->sampled > 0)
    usd += (double)use->prompt * model->prompt +
           (double)use->sampled * model->sampled;
  if (use->scored > 0)
    usd += (double)use->scored * fmax(teacher->prompt, teacher->sampled);
  return usd / 1e6;
}
