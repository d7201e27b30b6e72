/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/args.h"

#include "tnk/train.h"
#include "tools/tnk/learn/model.h"

const char *const rl_advantages[] = {
    [TNK_ADVANTAGE_CENTERED] = "centered",
    [TNK_ADVANTAGE_NORMALIZED] = "normalized",
    [TNK_ADVANTAGE_LEAVE_ONE_OUT] = "leave-one-out",
    NULL,
};

rl_args_t rl_args = {
    .n_groups = 8,
    .group_size = 8,
    .n_parallel = 64,
    .timeout_s = 600,
    .max_failed = -1,
    .answer_tokens = 1024,
    .save_every = 10,
    .rank = 32,
    .optimizer = LEARN_OPTIMIZER_INIT,
};

const cli_option_t rl_options[] = {
    {.name = "environment",
     .value = "COMMAND",
     .text = &rl_args.environment,
     .help = "Command of an environment, for sh -c. It talks to the model, "
             "tells its reward and exits with status 0."},
    {.name = "url",
     .value = "URL",
     .text = &rl_args.url,
     .help = "Instead of --environment: listen at http://ADDRESS:PORT for "
             "agents that connect by themselves. Port 0 selects a free one."},
    {.name = "admin-key",
     .value = "KEY",
     .text = &rl_args.admin_key,
     .help = "With --url: key that creates sessions. Default: "
             "TNK_GATEWAY_ADMIN_KEY, else the key in DIR/admin.key, which is "
             "made if it is missing."},
    {.name = "admin-key-file",
     .value = "FILE",
     .text = &rl_args.admin_file,
     .offer = CLI_OFFER_FILES,
     .help = "Read that key from the first line of this file."},
    {.name = "model",
     .letter = 'm',
     .value = "NAME",
     .text = &rl_args.words.model,
     .help = "Base model. Default with --local: " LEARN_BYTE_MODEL "."},
    {.name = "config",
     .value = "FILE",
     .text = &rl_args.config,
     .offer = CLI_OFFER_FILES,
     .help = "Options in JSON, by their names here. The command line overrides "
             "them. The config.json of a run can be given too."},
    {.name = "run",
     .value = "DIR",
     .text = &rl_args.run,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Folder of the run: configuration, metrics and the ledger of its "
             "checkpoints. It is created if missing. The same command resumes "
             "an interrupted run."},
    LEARN_LOG_OPTION(rl_args.log_to),
    {.name = "local",
     .flag = &rl_args.is_local,
     .help = "Train on a local server in this process. Its checkpoints are in "
             "DIR/served."},
    {.name = "steps",
     .value = "N",
     .number = &rl_args.n_steps,
     .min = 1,
     .max = (int64_t)1 << 40,
     .help = "Number of optimizer steps."},
    {.name = "groups",
     .value = "N",
     .number = &rl_args.n_groups,
     .min = 1,
     .max = RL_MAX_ENVIRONMENTS,
     .help = "Groups of a step. The environments of a group have the same "
             "task, TNK_RL_TASK (8)."},
    {.name = "group-size",
     .value = "N",
     .number = &rl_args.group_size,
     .min = 1,
     .max = RL_MAX_ENVIRONMENTS,
     .help = "Environments of a group, whose rewards are compared (8)."},
    {.name = "parallel",
     .value = "N",
     .number = &rl_args.n_parallel,
     .min = 1,
     .max = RL_MAX_ENVIRONMENTS,
     .help = "Environments that run at once, or sessions that are open, at "
             "most (64)."},
    {.name = "max-off-policy",
     .value = "N",
     .number = &rl_args.max_age,
     .min = 0,
     .max = RL_MAX_AGE,
     .help = "Let environments run while a step trains. A step trains groups "
             "whose samples come from weights that are at most N steps old. "
             "Older groups are left out and run again. A resumed run is then "
             "not identical. 0: environments wait for the step (0)."},
    {.name = "environment-timeout",
     .value = "SECONDS",
     .number = &rl_args.timeout_s,
     .min = 1,
     .max = 604800,
     .help = "Time of an environment. Then it gets SIGTERM, and 5 seconds "
             "later SIGKILL (600). With --url: time of a session."},
    {.name = "max-failed",
     .value = "N",
     .number = &rl_args.max_failed,
     .min = 0,
     .max = RL_MAX_ENVIRONMENTS,
     .help = "Environments of a step that may fail. If more fail, the command "
             "ends. Default: a quarter of them. An evaluation has the same "
             "share."},
    {.name = "evaluate",
     .value = "COMMAND",
     .text = &rl_args.evaluate,
     .help = "A second environment, which is not trained on. Its mean reward "
             "after the last step, and after each --every steps, is the metric "
             "eval/reward."},
    {.name = "every",
     .value = "N",
     .number = &rl_args.every,
     .min = 0,
     .max = INT64_MAX,
     .help = "Steps between evaluations. 0 means only after the last step "
             "(0)."},
    {.name = "evaluate-tasks",
     .value = "N",
     .number = &rl_args.n_evaluated,
     .min = 1,
     .max = RL_MAX_ENVIRONMENTS,
     .help = "Environments of an evaluation. Each has its own TNK_RL_TASK, and "
             "all evaluations have the same. Default: as many as a step has."},
    {.name = "learning-rate",
     .value = "X",
     .real = &rl_args.rate,
     .max_real = 1,
     .is_positive = 1,
     .help = "Learning rate. Default: as tnk train --method rl."},
    {.name = "loss",
     .value = "NAME",
     .choice = &rl_args.loss.name,
     .choices = learn_losses,
     .help = "importance_sampling, ppo, cispo, gspo, dro "
             "(importance_sampling)."},
    LEARN_LOSS_SETTING_OPTION(rl_args.loss),
    LEARN_OPTIMIZER_OPTIONS(rl_args.optimizer),
    {.name = "advantages",
     .value = "NAME",
     .choice = &rl_args.advantages,
     .choices = rl_advantages,
     .help = "How they are computed from the rewards of a group: centered, "
             "normalized, leave-one-out (centered)."},
    {.name = "rank",
     .value = "N",
     .number = &rl_args.rank,
     .min = 1,
     .max = 4096,
     .help = "Rank of the LoRA adapter (32)."},
    {.name = "seed",
     .value = "N",
     .number = &rl_args.seed,
     .min = 0,
     .max = INT32_MAX,
     .help = "Seed of the adapter and of TNK_RL_SEED (0)."},
    {.name = "answer-tokens",
     .value = "N",
     .number = &rl_args.answer_tokens,
     .min = 1,
     .max = INT32_MAX,
     .help = "Tokens of an answer, for environments that set no limit (1024)."},
    {.name = "max-tokens",
     .value = "N",
     .number = &rl_args.max_tokens,
     .min = 1,
     .max = INT64_MAX,
     .help = "Limit for all tokens of the run, sampled and trained, including "
             "earlier processes. When it is reached, the state of the last "
             "complete step is saved and the command ends."},
    {.name = "max-usd",
     .value = "X",
     .real = &rl_args.max_usd,
     .max_real = 1e9,
     .is_positive = 1,
     .help = "The same for the cost of the run, with --prices."},
    {.name = "prices",
     .value = "FILE",
     .text = &rl_args.prices,
     .offer = CLI_OFFER_FILES,
     .help = "Prices per million tokens in USD, as for tnk train."},
    {.name = "save-every",
     .value = "N",
     .number = &rl_args.save_every,
     .min = 1,
     .max = INT64_MAX,
     .help = "Steps between checkpoints. The last two are kept until the run "
             "ends (10)."},
    CLI_WORDS_OPTIONS(rl_args.words),
    {.name = NULL}};

static const char *check_learning(void) {
  const char *wrong = learn_loss_check(&rl_args.loss);

  if (wrong == NULL)
    wrong = learn_optimizer_check(&rl_args.optimizer);
  return wrong != NULL ? wrong : learn_log_check(&rl_args.log_to);
}

/* What plays: an environment, or agents that connect. */
static const char *check_agents(void) {
  const int has_key = rl_args.admin_key != NULL || rl_args.admin_file != NULL;

  if (rl_args.url == NULL && rl_args.environment == NULL)
    return "--environment is the command to learn from; --url waits for agents "
           "that connect by themselves";
  if (rl_args.url == NULL)
    return has_key ? "--admin-key and --admin-key-file need --url" : NULL;
  if (rl_args.environment != NULL)
    return "either --environment or --url";
  if (rl_address_read(&rl_args.address, rl_args.url) != 0)
    return "--url takes http://ADDRESS:PORT with a numeric address, such as "
           "http://127.0.0.1:8000";
  return rl_args.admin_key != NULL && rl_args.admin_file != NULL
             ? "--admin-key and --admin-key-file exclude each other"
             : NULL;
}

const char *rl_check(const cli_t *cli) {
  const int64_t n = rl_args.n_groups * rl_args.group_size;
  const char *wrong = check_learning();

  if (wrong == NULL)
    wrong = check_agents();
  if (wrong != NULL)
    return wrong;
  if (rl_args.run == NULL)
    return "--run names the folder of the run";
  if (rl_args.is_local && cli->base_url != NULL)
    return "either --local or --base-url";
  if (rl_args.words.model == NULL && rl_args.is_local)
    rl_args.words.model = LEARN_BYTE_MODEL;
  if (rl_args.words.model == NULL)
    return "--model says what to train, or --local trains a small model on "
           "this machine";
  if (rl_args.n_steps == 0)
    return "--steps is missing";
  if (rl_args.group_size == 1)
    return "--group-size 1 has no advantages: rewards are compared within a "
           "group";
  if (n > RL_MAX_ENVIRONMENTS)
    return "--groups times --group-size is at most 65536";
  if (n * (rl_args.max_age + 1) > RL_MAX_ENVIRONMENTS)
    return "--groups times --group-size times one more than --max-off-policy "
           "is at most 65536";
  if ((rl_args.every > 0 || rl_args.n_evaluated > 0) &&
      rl_args.evaluate == NULL)
    return "--every and --evaluate-tasks need --evaluate";
  if (rl_args.n_evaluated == 0)
    rl_args.n_evaluated = n;
  if (rl_args.max_usd > 0 && rl_args.prices == NULL)
    return "--max-usd needs --prices";
  if (rl_args.max_failed < 0)
    rl_args.max_failed = n / 4;
  if (rl_args.max_failed >= n)
    return "--max-failed must be less than the environments of a step";
  if (!(rl_args.rate > 0))
    rl_args.rate = tnk_default_rate(rl_args.words.model) / 10;
  return cli_words_check(&rl_args.words);
}
