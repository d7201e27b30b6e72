/* SPDX-License-Identifier: MIT */
/* tnk train: fine-tuning on conversations, preference pairs, or samples. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/ledger.h"
#include "tnk/train.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/train/folder.h"
#include "tools/tnk/train/loop.h"
#include "tools/tnk/train/prompts.h"
#include "tools/tnk/learn/model.h"
#include "tools/tnk/learn/served.h"
#include "tools/tnk/train/show.h"

typedef struct {
  const cli_t *cli;
  train_folder_t folder;
  train_data_t data;
  train_prompts_t prompts;
  tnk_plan_t *plan;
  tnk_schedule_t schedule;
  learn_served_t served;
  cli_ask_t ask;
  tnk_ledger_t *ledger;
  train_distill_t distill;
  train_loop_t loop;
} work_t;

/* ---- Before the first request ---- */

/* Pairs and rewards need smaller steps than text. */
static double default_rate(void) {
  const double rate = tnk_default_rate(train_args.model);

  return train_args.method != TRAIN_SFT ? rate / 10 : rate;
}

/* The steps of the run. `tokens` has the lengths of the examples for batches by
 * tokens, or is NULL. */
static int plan(work_t *work, const uint64_t *tokens, char *why, size_t size) {
  const uint64_t n = work->data.train.n;
  const uint64_t n_batch = (uint64_t)train_args.n_batch;
  tnk_plan_options_t options = TNK_PLAN_OPTIONS_INIT;

  options.n_examples = n;
  options.seed = (uint64_t)train_args.seed;
  options.n_steps = (uint64_t)train_args.n_steps;
  if (options.n_steps == 0)
    options.n_epochs = (uint64_t)train_args.n_epochs;
  options.tokens = tokens;
  if (tokens != NULL)
    options.max_batch_tokens = (uint64_t)train_args.n_batch_tokens;
  else
    options.n_batch = n_batch < n ? n_batch : n;
  return tnk_plan_new(&work->plan, &options, why, size);
}

static int plan_tokens(work_t *work, char *why, size_t size) {
  uint64_t *tokens = calloc(work->data.train.n, sizeof(*tokens));
  int err = tokens != NULL ? TNK_OK : TNK_ENOMEM;

  if (err == TNK_OK)
    err = train_all_tokens(&work->data.train, tokens);
  if (err == TNK_OK)
    err = plan(work, tokens, why, size);
  free(tokens);
  return err;
}

static int make_plan(work_t *work) {
  char why[256] = "";
  const int err = train_args.n_batch_tokens > 0
                      ? plan_tokens(work, why, sizeof(why))
                      : plan(work, NULL, why, sizeof(why));

  if (err == TNK_ENOMEM)
    return cli_fail(work->cli, CLI_EXIT_FAILED, "out of memory");
  if (err == TNK_EFILE)
    return cli_fail(work->cli, CLI_EXIT_FILE,
                    "the lengths of the packed examples cannot be read");
  if (err != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_USAGE,
                    "the run cannot be divided into steps: %s", why);
  work->schedule = (tnk_schedule_t){
      .size = sizeof(work->schedule),
      .decay = (tnk_decay_t)train_args.schedule,
      .peak = train_args.rate > 0 ? train_args.rate : default_rate(),
      .n_warm_up = (uint64_t)train_args.warm_up,
      .n_steps = tnk_plan_steps(work->plan),
  };
  if (work->schedule.n_warm_up > work->schedule.n_steps)
    return cli_fail(work->cli, CLI_EXIT_USAGE,
                    "--warm-up has %" PRIu64 " steps, and the run has %" PRIu64,
                    work->schedule.n_warm_up, work->schedule.n_steps);
  return CLI_EXIT_OK;
}

static int prepare(work_t *work) {
  int status = train_folder_open(&work->folder, work->cli,
                                 train_args.is_dry ? NULL : train_args.run);

  if (status == CLI_EXIT_OK)
    status = train_data_read(&work->data, work->cli, work->folder.base.now_s);
  if (status == CLI_EXIT_OK)
    status = train_prompts_open(&work->prompts, work->cli, work->folder.samples,
                                work->folder.base.now_s);
  if (status == CLI_EXIT_OK)
    status = make_plan(work);
  if (status != CLI_EXIT_OK || train_args.is_dry)
    return status;
  if (work->data.n_cut > 0)
    cli_note(work->cli,
             "%zu examples are cut after %" PRId64
             " tokens; %zu of them train nothing and are left out",
             work->data.n_cut, train_args.max_length, work->data.n_left_out);
  return train_folder_keep(&work->folder, &work->data, work->plan,
                           &work->schedule);
}

/* ---- The model ---- */

/* Resume the run, or begin it. *first receives the steps in the model. */
static int open_model(work_t *work, tnk_training_t **model, uint64_t *first) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  const char *metrics = work->folder.base.metrics;
  uint64_t n_kept = 0;
  const int err = tnk_numbers_last(metrics, &n_kept);

  if (err != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", metrics,
                    strerror(errno));
  lora.base_model = train_args.model;
  lora.rank = (uint32_t)train_args.rank;
  lora.seed = train_args.seed;
  lora.optimizer = (tnk_optimizer_t)train_args.optimizer.family;
  return learn_model_open(model, &work->ask, work->ledger, train_args.run,
                          &lora, n_kept, first);
}

/* ---- The run ---- */

/* A teacher whose base model is unknown has the price of the student. */
static int set_teacher_price(work_t *work) {
  const char *file = train_args.prices;
  const char *known = train_teacher_model(&work->distill.teacher);
  const char *model = known != NULL ? known : train_args.model;
  int status = learn_read_price(&work->loop.teacher, work->cli, file, model);

  if (status == CLI_EXIT_OK && train_args.max_usd > 0 &&
      isnan(work->loop.teacher.prompt))
    status = cli_fail(work->cli, CLI_EXIT_FILE, "%s has no price for %s", file,
                      model);
  return status;
}

/* Its price must be known before it scores a token. */
static int open_teacher(work_t *work) {
  train_teacher_t *teacher = &work->distill.teacher;
  int status = train_teacher_create(teacher, &work->ask);

  if (status == CLI_EXIT_OK)
    status = set_teacher_price(work);
  if (status == CLI_EXIT_OK)
    status = train_teacher_check(teacher, &work->ask, &work->data);
  return status;
}

static int train(work_t *work) {
  train_loop_t *loop = &work->loop;
  uint64_t first = 0;
  int status = open_model(work, &loop->model, &first);

  /* The examples of rl are tokens already, of which nobody knows the source. */
  if (status == CLI_EXIT_OK && train_args.method != TRAIN_RL &&
      work->data.n_vocab == 0)
    status = learn_model_check_bytes(&work->ask, loop->model, train_args.model);
  if (status == CLI_EXIT_OK && train_args.method == TRAIN_DPO)
    status = train_reference_open(&loop->reference, &work->ask,
                                  work->folder.reference, loop->model,
                                  &work->data, work->plan, first);
  if (status == CLI_EXIT_OK && train_args.method == TRAIN_DISTILL)
    status = open_teacher(work);
  if (status == CLI_EXIT_OK)
    status = train_loop_run(loop, first);
  if (status == LEARN_BROKE) {
    loop->is_broke = LEARN_REFUSED;
    status = CLI_EXIT_OK;
  }
  train_show_times(work->cli, &loop->times);
  if (status != CLI_EXIT_OK || loop->n_done == tnk_plan_steps(work->plan))
    return status;
  if (loop->is_broke)
    return learn_report_broke(work->cli, work->ledger, loop->is_broke,
                              "a higher --max-tokens or --max-usd");
  return learn_report_unfinished(&work->ask, work->ledger);
}

/* The limits count what earlier processes have used, from the ledger. */
static int set_budget(work_t *work) {
  train_loop_t *loop = &work->loop;
  const char *file = train_args.prices;
  int status = learn_set_budget(&work->ask, &loop->budget, train_args.model);

  if (status == CLI_EXIT_OK)
    status = learn_read_price(&loop->price, work->cli, file, train_args.model);
  if (status == CLI_EXIT_OK && train_args.method == TRAIN_DISTILL)
    status = set_teacher_price(work);
  return status;
}

static int run_service(work_t *work) {
  int status;

  work->distill.prompts = &work->prompts;
  work->distill.n_batch = (size_t)tnk_plan_max_count(work->plan);
  work->loop = (train_loop_t){
      .ask = &work->ask,
      .data = &work->data,
      .plan = work->plan,
      .schedule = &work->schedule,
      .distill = train_args.method == TRAIN_DISTILL ? &work->distill : NULL,
      .metrics = work->folder.base.metrics,
      .run = train_args.run,
      .prompts = &work->prompts,
      .budget = {.max_tokens = (uint64_t)train_args.max_tokens,
                 .max_usd = train_args.max_usd,
                 .prices = train_args.prices},
      .save_every = (uint64_t)train_args.save_every,
      .eval_every = (uint64_t)train_args.eval_every,
      .sample_every = (uint64_t)train_args.sample_every,
      .show = {.cli = work->cli, .n_steps = tnk_plan_steps(work->plan)},
      .loss = NAN,
      .eval = NAN,
  };
  work->loop.n_ahead =
      train_loop_ahead(work->loop.save_every, work->loop.distill != NULL);
  status = learn_ledger_open(&work->ledger, &work->ask, train_args.run,
                             work->loop.n_ahead + 1);
  if (status == CLI_EXIT_OK)
    status = set_budget(work);
  work->loop.ledger = work->ledger;
  if (status == CLI_EXIT_OK && !learn_ledger_is_ended(work->ledger))
    status = train(work);
  if (status == CLI_EXIT_OK)
    status = train_show_result(work->cli, tnk_ledger_last(work->ledger),
                               work->folder.base.served, work->loop.loss,
                               work->loop.eval, &work->loop.times);
  if (status == CLI_EXIT_OK)
    learn_ledger_settle(&work->ask, work->ledger);
  return status;
}

static int serve(work_t *work) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  int status = CLI_EXIT_OK;

  if (train_args.method == TRAIN_DISTILL)
    status = train_teacher_find(&work->distill.teacher, work->cli,
                                train_args.is_local ? work->folder.base.served
                                                    : NULL);
  if (status != CLI_EXIT_OK)
    return status;
  status = cli_ask_begin(&work->ask, work->cli);
  options.recovery = TNK_YES;
  options.patience_ms = LEARN_PATIENCE_MS;
  options.max_billing_pause_ms = LEARN_PATIENCE_MS;
  if (status == CLI_EXIT_OK && train_args.is_local)
    status =
        learn_served_open(&work->served, &work->ask, work->folder.base.served,
                          train_args.model, work->data.n_vocab, &options);
  if (status == CLI_EXIT_OK)
    status = cli_ask_serve(&work->ask, &options);
  if (status == CLI_EXIT_OK)
    status = run_service(work);
  status = cli_ask_close(&work->ask, status);
  train_loop_free(&work->loop);
  return status;
}

static int serve_logged(work_t *work) {
  learn_log_t log;
  int status;

  learn_log_open(&log, work->cli, &train_args.log_to, train_args.run);
  status = serve(work);
  learn_log_close(&log);
  return status;
}

static int run_train(cli_t *cli) {
  static work_t work;
  int status;

  work.cli = cli;
  status = prepare(&work);
  if (status == CLI_EXIT_OK)
    status = train_args.is_dry ? train_show_plan(cli, &work.data, &work.prompts,
                                                 work.plan, &work.schedule)
                               : serve_logged(&work);
  train_prompts_free(&work.prompts);
  tnk_plan_free(work.plan);
  train_data_free(&work.data);
  train_folder_free(&work.folder);
  return status;
}

static const cli_item_t examples[] = {
    {"tnk train chats.jsonl --local --run first",
     "train the built-in model on this machine"},
    {"tnk train chats.jsonl --dry-run --local",
     "check the data and count tokens and steps"},
    {"tnk train chats.jsonl -m Qwen/Qwen3-8B --tokenizer DIR --run first",
     "train with the service; DIR has the model's tokenizer"},
    {"tnk train pairs.jsonl --method dpo --local --run first",
     "train on preference pairs"},
    {"tnk train chats.jsonl --method distill --teacher first --local --run "
     "second",
     "train on what the model of another run finds likely"},
    {NULL, NULL}};

static const cli_item_t files[] = {
    {"config.json", "What determines the result."},
    {"metrics.jsonl", "The loss and the learning rate of each step, once."},
    {"samples.jsonl", "The answers to --sample."},
    {"reference.bin", "With --method dpo: the logprobs of the first weights."},
    {"checkpoints.jsonl", "The ledger of the checkpoints."},
    {"served", "The checkpoints of --local."},
    {NULL, NULL}};

static const cli_section_t sections[] = {
    {"Files",
     "A run that was interrupted or killed continues with the same command, "
     "and ends with the same metrics and weights. Other options or other data "
     "are refused in its folder.",
     files},
    {NULL, NULL, NULL}};

const cli_command_t cli_train = {
    .name = "train",
    .brief = "train a model on conversations",
    .about =
        "Train a LoRA adapter on conversations. A line of a FILE is a "
        "conversation, as for tnk chat-data:\n  {\"messages\": [{\"role\": "
        "\"user\", \"content\": \"Hi\"},\n                {\"role\": "
        "\"assistant\", \"content\": \"Hello\"}]}\nor a prompt and its "
        "completion, each a text or messages:\n  {\"prompt\": \"Hi\", "
        "\"completion\": \"Hello\"}\nWith --method dpo a line is a "
        "preference pair:\n  {\"prompt\": \"Hi\", \"chosen\": \"Hello\", "
        "\"rejected\": \"What?\"}\nWith --method rl a line is an example with "
        "sampled tokens, as tnk gateway --datums prints it and tnk lint "
        "checks it. It may have a \"reward\" and a \"group\". Without a group "
        "the examples with the same prompt form a group. With --method distill "
        "a line is a conversation or a prompt:\n  {\"prompt\": \"Hi\"}\nAn "
        "answer at its end is not used.\nA FILE may "
        "be compressed with gzip or zstd. A folder stands for its files "
        ".jsonl, "
        ".jsonl.gz and .jsonl.zst, and FILE - for the standard input. All "
        "files "
        "are checked before the first request. Data that do not fit into "
        "memory are packed with tnk chat-data --packed. Ctrl-C saves the state "
        "and ends "
        "the "
        "command; a second one ends it at once. After the last step the "
        "sampler weights are saved.",
    .words = "FILE...",
    .offer = CLI_OFFER_FILES,
    .options = train_options,
    .config = &train_args.config,
    .sections = sections,
    .examples = examples,
    .failed = "The data cannot be used for training, or the training failed.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = train_check,
    .run = run_train,
};
