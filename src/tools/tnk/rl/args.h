/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_ARGS_H
#define TNK_TOOLS_TNK_RL_ARGS_H

#include <stdint.h>

#include "tnk/rl.h"
#include "tools/tnk/learn/log_to.h"
#include "tools/tnk/learn/loss.h"
#include "tools/tnk/learn/optimizer.h"
#include "tools/tnk/rl/address.h"
#include "tools/tnk/serve/words.h"

/* Maximum of environments in a step. Each needs some kilobytes. A gateway has
 * at most 65,536 keys. */
#define RL_MAX_ENVIRONMENTS 65536
/* The weights of so many steps are kept on the service. */
#define RL_MAX_AGE 64

/* The options of tnk rl. */
typedef struct {
  cli_words_args_t words;
  const char *config; /* file; NULL: none */
  const char *run;
  cli_texts_t log_to;
  const char *environment;
  const char *url; /* for agents that connect by themselves; NULL: none */
  rl_address_t address;
  const char *admin_key, *admin_file;
  const char *evaluate; /* command; NULL: none */
  int64_t every;        /* steps; 0: only after the last one */
  int64_t n_evaluated;  /* environments of an evaluation */
  int64_t n_steps;
  int64_t n_groups;
  int64_t group_size;
  int64_t n_parallel;
  int64_t max_age;       /* of samples, in steps */
  int64_t timeout_s;     /* of an environment */
  int64_t max_failed;    /* -1: a quarter of the environments of a step */
  int64_t answer_tokens; /* for clients that set no limit */
  int64_t max_tokens;    /* of the run; 0: no limit, as for max_usd */
  double max_usd;
  const char *prices; /* file; NULL: unknown */
  int64_t save_every;
  int64_t rank;
  int64_t seed;
  double rate; /* 0: tnk_default_rate() */
  learn_loss_t loss;
  learn_optimizer_t optimizer;
  int advantages; /* tnk_advantage_t */
  int is_local;
} rl_args_t;

extern rl_args_t rl_args;
extern const cli_option_t rl_options[];
extern const char *const rl_advantages[];

/* Returns the error in the combination of options, or NULL. */
const char *rl_check(const cli_t *cli);

#endif
