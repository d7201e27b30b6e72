/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_ARGS_H
#define TNK_TOOLS_TNK_TRAIN_ARGS_H

#include <stdint.h>

#include "tools/tnk/learn/log_to.h"
#include "tools/tnk/learn/loss.h"
#include "tools/tnk/learn/model.h"
#include "tools/tnk/learn/optimizer.h"
#include "tools/tnk/text/chats.h"

typedef enum {
  TRAIN_SFT = 0,    /* conversations, with cross entropy */
  TRAIN_DPO = 1,    /* preference pairs */
  TRAIN_RL = 2,     /* examples with logprobs and advantages */
  TRAIN_DISTILL = 3 /* prompts, with a teacher */
} train_method_t;

typedef enum {
  TRAIN_SUM = 0, /* each trained token counts the same */
  TRAIN_MEAN = 1 /* each example counts the same */
} train_reduction_t;

/* The most passes of a step. */
#define TRAIN_MAX_PASSES 1024

/* The options of tnk train. */
typedef struct {
  cli_chats_args_t chats;
  const char *config; /* file; NULL: none */
  const char *model;
  const char *run;
  cli_texts_t log_to;
  const char *eval;    /* file; NULL: none */
  const char *prices;  /* file; NULL: unknown */
  double eval_split;   /* share of the examples */
  double rate;         /* 0: tnk_default_rate() */
  double beta;         /* of DPO; 0: not given */
  int method;          /* train_method_t */
  const char *teacher; /* of distillation, as the members up to `discount` */
  int64_t group_size;
  int64_t answer_tokens;
  double kl_coefficient; /* below 0: not given */
  double discount;
  /* Of RL and distillation. Its name and the next number are below 0 if not
   * given, until train_check() sets the default. */
  learn_loss_t loss;
  int advantages; /* of RL: learn_advantages_t */
  learn_optimizer_t optimizer;
  int schedule;  /* tnk_decay_t */
  int reduction; /* train_reduction_t */
  int64_t warm_up;
  int64_t n_epochs; /* 0: not given, as for n_steps */
  int64_t n_steps;
  int64_t n_batch;
  int64_t n_batch_tokens; /* 0: n_batch examples */
  int64_t n_passes;       /* of a step, whose gradients are added */
  int64_t max_length;     /* tokens of an example; 0: no limit */
  int64_t rank;
  int64_t seed;
  int64_t eval_every; /* 0: only after the last step */
  int64_t save_every;
  cli_texts_t samples; /* messages that are answered while it trains */
  int64_t sample_every;
  int64_t max_tokens; /* 0: no limit, as for max_usd */
  double max_usd;
  int is_local;
  int is_dry;
} train_args_t;

extern train_args_t train_args;
extern const cli_option_t train_options[];
/* Names of tnk_decay_t, train_method_t, train_reduction_t and
 * learn_advantages_t. */
extern const char *const train_reductions[];
extern const char *const train_schedules[];
extern const char *const train_methods[];
extern const char *const train_advantages[];

/* Returns the error in the combination of options, or NULL. */
const char *train_check(const cli_t *cli);

#endif
