/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/args.h"

#include <string.h>

#include "tnk/train.h"
#include "tools/tnk/text/pack.h"
#include "tools/tnk/learn/rewards.h"

/* The limits of tnk_plan_options_t. */
#define MAX_EPOCHS ((int64_t)1 << 20)
#define MAX_STEPS ((int64_t)1 << 40)
#define MAX_BATCH ((int64_t)1 << 20)

const char *const train_schedules[] = {
    [TNK_DECAY_CONSTANT] = "constant",
    [TNK_DECAY_LINEAR] = "linear",
    [TNK_DECAY_COSINE] = "cosine",
    NULL,
};

const char *const train_methods[] = {
    [TRAIN_SFT] = "sft",
    [TRAIN_DPO] = "dpo",
    [TRAIN_RL] = "rl",
    [TRAIN_DISTILL] = "distill",
    NULL,
};
/* The names of the cookbook. */
const char *const train_reductions[] = {
    [TRAIN_SUM] = "none",
    [TRAIN_MEAN] = "mean",
    NULL,
};
const char *const train_advantages[] = {
    [LEARN_ADVANTAGES_AUTO] = "auto",
    [LEARN_ADVANTAGES_GIVEN] = "given",
    [LEARN_ADVANTAGES_CENTERED] = "centered",
    [LEARN_ADVANTAGES_NORMALIZED] = "normalized",
    [LEARN_ADVANTAGES_LEAVE_ONE_OUT] = "leave-one-out",
    NULL,
};

train_args_t train_args = {
    .schedule = TNK_DECAY_LINEAR,
    .rank = 32,
    .save_every = 50,
    .kl_coefficient = -1,
    .loss = {.name = -1},
    .advantages = -1,
    .optimizer = LEARN_OPTIMIZER_INIT,
    .n_passes = 1,
};

const cli_option_t train_options[] = {
    {.name = "model",
     .letter = 'm',
     .value = "NAME",
     .text = &train_args.model,
     .help = "Base model. Default with --local: " LEARN_BYTE_MODEL "."},
    {.name = "config",
     .value = "FILE",
     .text = &train_args.config,
     .offer = CLI_OFFER_FILES,
     .help =
         "Options in JSON, by their names here, and the files as \"data\":\n"
         "  {\"data\": [\"chats.jsonl\"], \"local\": true, \"batch\": 8}\n"
         "The command line overrides them. The config.json of a run can be "
         "given too."},
    {.name = "method",
     .value = "NAME",
     .choice = &train_args.method,
     .choices = train_methods,
     .help = "sft trains on conversations. dpo trains on preference pairs. "
             "rl trains on sampled tokens with rewards or advantages. distill "
             "samples answers to the prompts of conversations, and trains on "
             "how likely a --teacher finds them (sft)."},
    {.name = "teacher",
     .value = "MODEL",
     .text = &train_args.teacher,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Teacher of --method distill: a base model, a path of sampler "
             "weights, or the folder of a run that has ended. It needs the "
             "tokenizer of --model."},
    {.name = "group-size",
     .value = "N",
     .number = &train_args.group_size,
     .min = 1,
     .max = 1024,
     .help = "Answers to each prompt with --method distill (4)."},
    {.name = "answer-tokens",
     .value = "N",
     .number = &train_args.answer_tokens,
     .min = 1,
     .max = INT32_MAX,
     .help = "Longest answer with --method distill (1024)."},
    {.name = "kl-coefficient",
     .value = "X",
     .real = &train_args.kl_coefficient,
     .max_real = 1000,
     .help = "Factor of the advantages of --method distill (1)."},
    {.name = "discount",
     .value = "X",
     .real = &train_args.discount,
     .max_real = 1,
     .help = "With --method distill: how much of the next token's advantage is "
             "added to that of a token (0)."},
    {.name = "run",
     .value = "DIR",
     .text = &train_args.run,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Folder of the run: configuration, metrics and the ledger of its "
             "checkpoints. It is created if missing. The same command resumes "
             "an interrupted run."},
    LEARN_LOG_OPTION(train_args.log_to),
    {.name = "local",
     .flag = &train_args.is_local,
     .help = "Train on a local server in this process. Its checkpoints are in "
             "DIR/served."},
    {.name = "dry-run",
     .flag = &train_args.is_dry,
     .help = "Check the data and show the plan; send nothing."},
    {.name = "tokenizer",
     .value = "PATH",
     .text = &train_args.chats.which.path,
     .offer = CLI_OFFER_FILES,
     .help = "tokenizer.json, tiktoken.model or a SentencePiece model, or the "
             "directory it is in, instead of the model's own."},
    CLI_CHATS_OPTIONS(train_args.chats),
    {.name = "max-length",
     .value = "N",
     .number = &train_args.max_length,
     .min = 0,
     .max = INT32_MAX,
     .help = "Cut examples after N tokens. Examples that then train nothing "
             "are left out, and so are longer prompts of --method distill. 0 "
             "means no limit (0)."},
    {.name = "reduction",
     .value = "NAME",
     .choice = &train_args.reduction,
     .choices = train_reductions,
     .help = "none gives each trained token the same weight. mean divides the "
             "weights of an example by their sum, so that each example has "
             "the same weight (none)."},
    {.name = "epochs",
     .value = "N",
     .number = &train_args.n_epochs,
     .min = 1,
     .max = MAX_EPOCHS,
     .help = "Number of times that each example is trained (1)."},
    {.name = "steps",
     .value = "N",
     .number = &train_args.n_steps,
     .min = 1,
     .max = MAX_STEPS,
     .help = "Number of optimizer steps, instead of --epochs."},
    {.name = "batch",
     .value = "N",
     .number = &train_args.n_batch,
     .min = 1,
     .max = MAX_BATCH,
     .help = "Examples, pairs or prompts of a step, at most all of them "
             "(32)."},
    {.name = "batch-tokens",
     .value = "N",
     .number = &train_args.n_batch_tokens,
     .min = 1,
     .max = INT64_MAX,
     .help = "Instead of --batch: a step has as many examples as fit into N "
             "tokens, and at least one."},
    {.name = "passes",
     .value = "N",
     .number = &train_args.n_passes,
     .min = 1,
     .max = TRAIN_MAX_PASSES,
     .help = "Divide the examples of a step among N passes, whose gradients "
             "the service adds up. The step is the same, with smaller "
             "requests (1)."},
    {.name = "learning-rate",
     .value = "X",
     .real = &train_args.rate,
     .max_real = 1,
     .is_positive = 1,
     .help = "Highest learning rate. Default by the number of parameters in "
             "the model's name: 0.0005 below 2B, 0.0003 below 16B, 0.0002 "
             "below 100B, else 0.0001; 0.01 for " LEARN_BYTE_MODEL
             ". With other methods than sft a tenth of it."},
    {.name = "schedule",
     .value = "NAME",
     .choice = &train_args.schedule,
     .choices = train_schedules,
     .help = "Decay of the learning rate: constant, linear, cosine "
             "(linear)."},
    LEARN_OPTIMIZER_OPTIONS(train_args.optimizer),
    {.name = "beta",
     .value = "X",
     .real = &train_args.beta,
     .max_real = 1000,
     .is_positive = 1,
     .help = "How strongly --method dpo keeps the model near its first "
             "weights (0.1)."},
    {.name = "loss",
     .value = "NAME",
     .choice = &train_args.loss.name,
     .choices = learn_losses,
     .help = "Loss of --method rl and distill: importance_sampling, ppo, "
             "cispo, gspo, dro (importance_sampling)."},
    LEARN_LOSS_SETTING_OPTION(train_args.loss),
    {.name = "advantages",
     .value = "NAME",
     .choice = &train_args.advantages,
     .choices = train_advantages,
     .help =
         "Advantages of --method rl: given uses those in the data. "
         "centered, normalized and leave-one-out compute them from the "
         "rewards of each group. auto is centered if the data have rewards, "
         "else given (auto)."},
    {.name = "warm-up",
     .value = "N",
     .number = &train_args.warm_up,
     .min = 0,
     .max = MAX_STEPS,
     .help = "Steps in which the learning rate rises (0)."},
    {.name = "rank",
     .value = "N",
     .number = &train_args.rank,
     .min = 1,
     .max = 4096,
     .help = "Rank of the LoRA adapter (32)."},
    {.name = "seed",
     .value = "N",
     .number = &train_args.seed,
     .min = 0,
     .max = INT32_MAX,
     .help = "Seed of the adapter, the order of the examples and the "
             "evaluation split (0)."},
    {.name = "eval",
     .value = "FILE",
     .text = &train_args.eval,
     .offer = CLI_OFFER_FILES,
     .help = "Conversations for the evaluation loss."},
    {.name = "eval-split",
     .value = "SHARE",
     .real = &train_args.eval_split,
     .max_real = 0.5,
     .help = "Share of the examples that is not trained and used for the "
             "evaluation loss, such as 0.05."},
    {.name = "eval-every",
     .value = "N",
     .number = &train_args.eval_every,
     .min = 0,
     .max = INT64_MAX,
     .help = "Steps between evaluations. 0 means only after the last step "
             "(0)."},
    {.name = "sample",
     .value = "TEXT",
     .texts = &train_args.samples,
     .help = "Sample an answer to this message before the first step and after "
             "the last one, and write it to samples.jsonl. May be repeated."},
    {.name = "sample-every",
     .value = "N",
     .number = &train_args.sample_every,
     .min = 0,
     .max = INT64_MAX,
     .help = "Steps between these samples. 0 means only before the first and "
             "after the last step (0)."},
    {.name = "save-every",
     .value = "N",
     .number = &train_args.save_every,
     .min = 1,
     .max = INT64_MAX,
     .help = "Steps between checkpoints. The last two are kept until the run "
             "ends, and more of them if N is less than 8 (50)."},
    {.name = "max-tokens",
     .value = "N",
     .number = &train_args.max_tokens,
     .min = 1,
     .max = INT64_MAX,
     .help = "Limit for all tokens of the run, including earlier processes. "
             "Before it would be exceeded, the state is saved and "
             "the command ends."},
    {.name = "max-usd",
     .value = "X",
     .real = &train_args.max_usd,
     .max_real = 1e9,
     .is_positive = 1,
     .help = "The same for the cost of the run, with --prices."},
    {.name = "prices",
     .value = "FILE",
     .text = &train_args.prices,
     .offer = CLI_OFFER_FILES,
     .help = "Prices per million tokens in USD, for --dry-run and --max-usd:\n"
             "  {\"prices\": [{\"prompt\": 0.1, \"sampled\": 0.4, \"trained\": "
             "0.4}]}\nA row may have a \"model\"."},
    {.name = NULL}};

static int has_packed(const cli_t *cli) {
  int has = 0;

  for (size_t i = 0; i < cli->n_words; i++)
    has |= cli_pack_is(cli->words[i]);
  return has;
}

/* The model's own tokenizer is on a hub, whose files have no single place for a
 * template. */
static const char *check_model(const cli_t *cli) {
  /* Packed data are ids already. */
  const int is_packed =
      has_packed(cli) && train_args.samples.n == 0 &&
      (train_args.eval == NULL || cli_pack_is(train_args.eval));
  const int has_text = train_args.method != TRAIN_RL && !is_packed;

  if (train_args.model == NULL && train_args.is_local)
    train_args.model = LEARN_BYTE_MODEL;
  if (train_args.model == NULL)
    return "--model says what to train, or --local trains a small model on "
           "this machine";
  if (!has_text || strcmp(train_args.model, LEARN_BYTE_MODEL) == 0 ||
      train_args.chats.which.path != NULL)
    return NULL;
  if (train_args.chats.template_ == NULL)
    return "the model needs its chat template: --template, or --tokenizer with "
           "a directory that has both";
  train_args.chats.which.model = train_args.model;
  return NULL;
}

/* Options that only distillation has, and those that it has not. */
static const char *check_distill(void) {
  const int is_distill = train_args.method == TRAIN_DISTILL;

  if (!is_distill)
    return train_args.teacher != NULL || train_args.group_size > 0 ||
                   train_args.answer_tokens > 0 ||
                   train_args.kl_coefficient >= 0 || train_args.discount > 0
               ? "--teacher, --group-size, --answer-tokens, --kl-coefficient "
                 "and --discount need --method distill"
               : NULL;
  if (train_args.teacher == NULL)
    return "--method distill needs a --teacher";
  if (strncmp(train_args.teacher, "tinker://", 9) == 0 &&
      strstr(train_args.teacher, "/weights/") != NULL)
    return "--teacher is the state of a training: name sampler weights, "
           "tinker://.../sampler_weights/...";
  if (train_args.eval != NULL || train_args.eval_split > 0)
    return "--method distill has no evaluation: its data are prompts";
  if (train_args.n_batch_tokens > 0)
    return "either --method distill or --batch-tokens";
  if (train_args.chats.each_answer || train_args.chats.train_on > 0)
    return "--method distill trains on answers of the model: --each-answer "
           "and --train-on have no meaning";
  if (train_args.group_size == 0)
    train_args.group_size = 4;
  if (train_args.answer_tokens == 0)
    train_args.answer_tokens = 1024;
  if (train_args.kl_coefficient < 0)
    train_args.kl_coefficient = 1;
  return NULL;
}

/* The same model would give each token the same logprob. */
static const char *check_teacher(void) {
  return train_args.method == TRAIN_DISTILL &&
                 strcmp(train_args.teacher, train_args.model) == 0
             ? "--teacher is the model itself, which it cannot teach anything"
             : NULL;
}

static const char *check_method(void) {
  const int is_dpo = train_args.method == TRAIN_DPO;
  const int is_rl = train_args.method == TRAIN_RL;
  const int is_distill = train_args.method == TRAIN_DISTILL;

  if (train_args.reduction != TRAIN_SUM && train_args.method != TRAIN_SFT)
    return "--reduction needs --method sft";
  if (train_args.beta > 0 && !is_dpo)
    return "--beta needs --method dpo";
  if (train_args.advantages >= 0 && !is_rl)
    return "--advantages needs --method rl";
  if (train_args.loss.name >= 0 && !is_rl && !is_distill)
    return "--loss needs --method rl or distill";
  if (train_args.loss.texts.n > 0 && !is_rl && !is_distill)
    return "--loss-setting needs --method rl or distill";
  if (is_rl && (train_args.eval != NULL || train_args.eval_split > 0))
    return "--method rl has no evaluation: its data are samples of the model";
  if (is_rl && train_args.samples.n > 0)
    return "--method rl has no conversations, which --sample needs";
  if (is_rl && train_args.max_length > 0)
    return "either --method rl or --max-length";
  if (is_dpo && train_args.chats.each_answer)
    return "either --method dpo or --each-answer";
  if (is_dpo && !(train_args.beta > 0))
    train_args.beta = 0.1;
  if (train_args.advantages < 0)
    train_args.advantages = LEARN_ADVANTAGES_AUTO;
  if (train_args.loss.name < 0)
    train_args.loss.name = 0;
  return check_distill();
}

const char *train_check(const cli_t *cli) {
  const char *wrong = learn_log_check(&train_args.log_to);

  if (wrong != NULL)
    return wrong;
  if (train_args.run == NULL && !train_args.is_dry)
    return "--run names the folder of the run, or --dry-run trains nothing";
  if (train_args.is_local && cli->base_url != NULL)
    return "either --local or --base-url";
  if (train_args.n_steps > 0 && train_args.n_epochs > 0)
    return "either --steps or --epochs";
  if (train_args.n_batch > 0 && train_args.n_batch_tokens > 0)
    return "either --batch or --batch-tokens";
  if (train_args.n_batch == 0)
    train_args.n_batch = 32;
  if (train_args.eval != NULL && train_args.eval_split > 0)
    return "either --eval or --eval-split";
  if (train_args.eval_every > 0 && train_args.eval == NULL &&
      !(train_args.eval_split > 0))
    return "--eval-every needs --eval or --eval-split";
  if (train_args.sample_every > 0 && train_args.samples.n == 0)
    return "--sample-every needs --sample";
  if (train_args.max_usd > 0 && train_args.prices == NULL)
    return "--max-usd needs --prices";
  wrong = check_method();
  if (wrong == NULL)
    wrong = learn_loss_check(&train_args.loss);
  if (wrong == NULL)
    wrong = learn_optimizer_check(&train_args.optimizer);
  if (wrong == NULL)
    wrong = check_model(cli);
  if (wrong == NULL)
    wrong = check_teacher();
  return wrong != NULL ? wrong : cli_chats_check(&train_args.chats);
}
