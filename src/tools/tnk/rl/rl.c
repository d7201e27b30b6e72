/* SPDX-License-Identifier: MIT */
/* tnk rl: reinforcement learning with rewards from any program. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tnk/tokenizers.h"
#include "tnk/train.h"
#include "tools/common/base/limits.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/keys/admin.h"
#include "tools/tnk/learn/folder.h"
#include "tools/tnk/learn/model.h"
#include "tools/tnk/learn/served.h"
#include "tools/tnk/learn/use.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/rl/args.h"
#include "tools/tnk/rl/key.h"
#include "tools/tnk/rl/loop.h"
#include "tools/tnk/rl/serve.h"

typedef struct {
  const cli_t *cli;
  learn_folder_t folder;
  cli_words_t words;
  learn_served_t served;
  cli_ask_t ask;
  tnk_gateway_t *gateway;
  int is_closed; /* the gateway */
  rl_loop_t loop;
  rl_serve_t serve;
} work_t;

/* ---- Before the first request ---- */

/* Add the options of the evaluation. */
static void add_evaluation(json_t *options) {
  if (rl_args.evaluate == NULL)
    return;
  json_object_set_new(options, "evaluate", json_string(rl_args.evaluate));
  json_object_set_new(options, "every", json_integer(rl_args.every));
  json_object_set_new(options, "evaluate-tasks",
                      json_integer(rl_args.n_evaluated));
}

static int keep_config(work_t *work) {
  const cli_words_args_t *words = &rl_args.words;
  /* The options that determine the result. */
  json_t *options = json_pack(
      "{s:s?, s:s, s:I, s:I, s:I, s:f, s:s, s:s, s:I, s:I, s:I, s:s?, s:s?, "
      "s:o}",
      "environment", rl_args.environment, "model", words->model, "steps",
      (json_int_t)rl_args.n_steps, "groups", (json_int_t)rl_args.n_groups,
      "group-size", (json_int_t)rl_args.group_size, "learning-rate",
      rl_args.rate, "loss", learn_losses[rl_args.loss.name], "advantages",
      rl_advantages[rl_args.advantages], "rank", (json_int_t)rl_args.rank,
      "seed", (json_int_t)rl_args.seed, "answer-tokens",
      (json_int_t)rl_args.answer_tokens, "template", words->template_,
      "renderer", words->renderer, "set", learn_folder_texts(&words->sets));
  json_t *settings = json_pack(
      "{s:b, s:s?, s:I, s:I, s:I, s:I, s:o, s:o, s:s?, s:o}", "local",
      rl_args.is_local, "tokenizer", words->which.path, "parallel",
      (json_int_t)rl_args.n_parallel, "environment-timeout",
      (json_int_t)rl_args.timeout_s, "max-failed",
      (json_int_t)rl_args.max_failed, "save-every",
      (json_int_t)rl_args.save_every, "max-tokens",
      rl_args.max_tokens > 0 ? json_integer(rl_args.max_tokens) : json_null(),
      "max-usd", rl_args.max_usd > 0 ? json_real(rl_args.max_usd) : json_null(),
      "prices", rl_args.prices, "log-to", learn_folder_texts(&rl_args.log_to));

  add_evaluation(options);
  options = learn_optimizer_add(options, &rl_args.optimizer);
  options = learn_loss_add(options, &rl_args.loss);
  if (rl_args.max_age > 0)
    json_object_set_new(options, "max-off-policy",
                        json_integer(rl_args.max_age));
  if (rl_args.url != NULL)
    json_object_set_new(settings, "url", json_string(rl_args.url));
  return learn_folder_keep(&work->folder, options, settings, NULL);
}

/* ---- The gateway ---- */

static int open_gateway(work_t *work) {
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  const tnk_logger_t logger = cli_ask_logger(&work->ask);
  char *admin_key = NULL;
  char why[512] = "";
  int status = rl_admin_key(&admin_key, &work->folder);
  int err;

  if (status != CLI_EXIT_OK)
    return status;
  cli_words_give(&work->words, &options);
  if (rl_args.url != NULL) {
    options.host = rl_args.address.host;
    options.port = rl_args.address.port;
  }
  /* No environment has the admin key: each gets a key of its own session. */
  options.admin_key = admin_key;
  options.max_tokens = (int32_t)rl_args.answer_tokens;
  options.logger = &logger;
  err = tnk_gateway_open(&work->gateway, &work->ask.loop, work->ask.service,
                         &options, why, sizeof(why));
  cli_admin_free(admin_key);
  return err == TNK_OK ? CLI_EXIT_OK
                       : cli_fail(work->cli, CLI_EXIT_FAILED,
                                  "the gateway cannot be opened: %s", why);
}

/* Wait for agents that connect by themselves. */
static void listen_for_agents(work_t *work) {
  printf("%s%s%s\n", work->cli->json ? "{\"url\": \"" : "listening on ",
         tnk_gateway_address(work->gateway), work->cli->json ? "\"}" : "");
  fflush(stdout);
  rl_serve_open(&work->serve, &work->loop.overlap);
}

static void on_closed(void *user) {
  ((work_t *)user)->is_closed = 1;
}

static void close_gateway(work_t *work) {
  if (work->gateway == NULL)
    return;
  tnk_gateway_close(work->gateway, on_closed, work);
  while (!work->is_closed)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
}

/* ---- The run ---- */

static int open_model(work_t *work, uint64_t *first) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  const char *metrics = work->folder.metrics;
  uint64_t n_kept = 0;
  const int err = tnk_numbers_last(metrics, &n_kept);

  if (err != TNK_OK)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", metrics,
                    strerror(errno));
  lora.base_model = rl_args.words.model;
  lora.rank = (uint32_t)rl_args.rank;
  lora.seed = rl_args.seed;
  lora.optimizer = (tnk_optimizer_t)rl_args.optimizer.family;
  return learn_model_open(&work->loop.model, &work->ask, work->loop.ledger,
                          rl_args.run, &lora, n_kept, first);
}

static int train(work_t *work) {
  rl_loop_t *loop = &work->loop;
  uint64_t first = 0;
  int status = open_model(work, &first);

  if (status == CLI_EXIT_OK)
    status = open_gateway(work);
  if (status == CLI_EXIT_OK)
    status = rl_loop_open(loop, work->gateway);
  if (status == CLI_EXIT_OK && rl_args.url != NULL)
    listen_for_agents(work);
  if (status == CLI_EXIT_OK)
    status = rl_loop_run(loop, first);
  if (status != CLI_EXIT_OK)
    return status;
  if (loop->n_done < loop->n_steps && loop->is_broke)
    return learn_report_broke(work->cli, loop->ledger, loop->is_broke,
                              "a higher --max-tokens or --max-usd, or with a "
                              "lower --parallel,");
  if (loop->n_done < loop->n_steps)
    return learn_report_unfinished(&work->ask, loop->ledger);
  return CLI_EXIT_OK;
}

static int show_result(const work_t *work) {
  const tnk_ledger_entry_t *entry = tnk_ledger_last(work->loop.ledger);
  cli_json_t json;

  if (work->cli->json) {
    cli_json_begin(&json);
    tnk__json_put_text(&json.w, "run", rl_args.run);
    tnk__json_put_int(&json.w, "steps", (int64_t)entry->n_steps);
    tnk__json_put_double(&json.w, "reward", work->loop.reward);
    if (rl_args.evaluate != NULL)
      tnk__json_put_double(&json.w, "eval_reward", work->loop.eval_reward);
    tnk__json_put_text(&json.w, "state_path", entry->state_path);
    tnk__json_put_text(&json.w, "sampler_path", entry->sampler_path);
    return cli_json_end(&json, work->cli);
  }
  printf("trained %" PRIu64 " steps", entry->n_steps);
  if (isfinite(work->loop.reward))
    printf(", reward %.4f", work->loop.reward);
  if (isfinite(work->loop.eval_reward))
    printf(", evaluation %.4f", work->loop.eval_reward);
  putchar('\n');
  learn_print_use(entry->sampler_path,
                  rl_args.is_local ? work->folder.served : NULL,
                  rl_args.words.model, rl_args.words.which.path);
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}

/* The evaluation that belongs to the steps. */
static rl_play_t evaluation_of(const rl_play_t *steps) {
  rl_play_t eval = *steps;
  const double share =
      (double)steps->max_failed / (double)(steps->n_groups * steps->group_size);

  eval.command = rl_args.evaluate;
  eval.is_evaluation = 1;
  eval.n_groups = (size_t)rl_args.n_evaluated;
  eval.group_size = 1;
  eval.max_failed = (size_t)(share * (double)eval.n_groups);
  /* Other seeds than those of the training. */
  eval.seed += (uint64_t)1 << 32;
  return eval;
}

static int run_service(work_t *work) {
  int status;

  work->loop = (rl_loop_t){
      .metrics = work->folder.metrics,
      .run = rl_args.run,
      .loss = &rl_args.loss,
      .optimizer = &rl_args.optimizer,
      .advantages = (tnk_advantage_t)rl_args.advantages,
      .rate = rl_args.rate,
      .n_steps = (uint64_t)rl_args.n_steps,
      .save_every = (uint64_t)rl_args.save_every,
      .budget = {.max_tokens = (uint64_t)rl_args.max_tokens,
                 .max_usd = rl_args.max_usd,
                 .prices = rl_args.prices},
      .play = {.ask = &work->ask,
               .command = rl_args.environment,
               .loss = learn_losses[rl_args.loss.name],
               .n_groups = (size_t)rl_args.n_groups,
               .group_size = (size_t)rl_args.group_size,
               .n_parallel = (size_t)rl_args.n_parallel,
               .max_failed = (size_t)rl_args.max_failed,
               .timeout_ms = (uint64_t)rl_args.timeout_s * 1000,
               .seed = (uint64_t)rl_args.seed},
      .eval_every = (uint64_t)rl_args.every,
      .max_age = (uint64_t)rl_args.max_age,
      .serves = rl_args.url != NULL,
      .reward = NAN,
      .eval_reward = NAN,
  };
  work->loop.eval = evaluation_of(&work->loop.play);
  status = learn_ledger_open(&work->loop.ledger, &work->ask, rl_args.run, 2);
  if (status == CLI_EXIT_OK)
    status =
        learn_set_budget(&work->ask, &work->loop.budget, rl_args.words.model);
  if (status == CLI_EXIT_OK && !learn_ledger_is_ended(work->loop.ledger))
    status = train(work);
  if (status == CLI_EXIT_OK)
    status = show_result(work);
  if (status == CLI_EXIT_OK)
    learn_ledger_settle(&work->ask, work->loop.ledger);
  return status;
}

static int serve(work_t *work) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const size_t n_vocab = work->words.tokenizer != NULL
                             ? tnk_tokenizer_vocab_size(work->words.tokenizer)
                             : 0;
  int status = cli_ask_begin(&work->ask, work->cli);

  options.recovery = TNK_YES;
  options.patience_ms = LEARN_PATIENCE_MS;
  options.max_billing_pause_ms = LEARN_PATIENCE_MS;
  options.observer = rl_loop_observe;
  options.observer_user = &work->loop;
  if (status == CLI_EXIT_OK && rl_args.is_local)
    status = learn_served_open(&work->served, &work->ask, work->folder.served,
                               rl_args.words.model, n_vocab, &options);
  if (status == CLI_EXIT_OK)
    status = cli_ask_serve(&work->ask, &options);
  if (status == CLI_EXIT_OK)
    status = run_service(work);
  rl_serve_close(&work->serve);
  close_gateway(work);
  status = cli_ask_close(&work->ask, status);
  rl_loop_free(&work->loop);
  return status;
}

static int run_rl(cli_t *cli) {
  static work_t work;
  learn_log_t log;
  int status;

  work.cli = cli;
  /* Each environment needs two pipes and a connection. */
  cli_raise_file_limit();
  status = learn_folder_open(&work.folder, cli, "tnk rl", rl_args.run);
  if (status == CLI_EXIT_OK)
    status = cli_words_open(&work.words, cli, &rl_args.words);
  if (status == CLI_EXIT_OK)
    status = keep_config(&work);
  if (status == CLI_EXIT_OK) {
    learn_log_open(&log, cli, &rl_args.log_to, rl_args.run);
    status = serve(&work);
    learn_log_close(&log);
  }
  cli_words_close(&work.words);
  learn_folder_free(&work.folder);
  return status;
}

static const cli_item_t variables[] = {
    {"OPENAI_BASE_URL", "And OPENAI_API_KEY: the model, with OpenAI's API."},
    {"ANTHROPIC_BASE_URL", "And ANTHROPIC_API_KEY: with Anthropic's API."},
    {"TNK_GATEWAY_URL", "The same server. POST /tnk/reward with that key sets "
                        "the reward of an answer."},
    {"TNK_RL_TASK", "Number of the task, which is the same in a group. It "
                    "counts on from step to step, from 0."},
    {"TNK_RL_STEP", "And TNK_RL_GROUP, TNK_RL_MEMBER: the place of the "
                    "environment. Steps count from 1, the others from 0."},
    {"TNK_RL_SEED", "A number that each environment has alone. The same run "
                    "has the same ones."},
    {NULL, NULL}};

static const cli_item_t files[] = {
    {"config.json", "What determines the result."},
    {"metrics.jsonl", "Reward, loss and failures of each step, once."},
    {"checkpoints.jsonl", "The ledger of the checkpoints."},
    {"served", "The checkpoints of --local."},
    {"admin.key", "The key of administrators, for --url."},
    {NULL, NULL}};

static const cli_section_t sections[] = {
    {"Variables of an environment", NULL, variables},
    {"Files",
     "A run that was interrupted or killed continues with the same command. "
     "Other options are refused in its folder. With --max-off-policy it "
     "continues with the same steps, but not with the same results.",
     files},
    {NULL, NULL, NULL}};

static const cli_item_t examples[] = {
    {"tnk rl --environment 'python3 play.py' --local --run first --steps 6",
     "train the built-in model on this machine"},
    {"tnk rl --environment ./play -m Qwen/Qwen3-8B --run first --steps 50",
     "train with the service"},
    {NULL, NULL}};

const cli_command_t cli_rl = {
    .name = "rl",
    .brief = "train a model on the rewards of a program",
    .about =
        "Train a LoRA adapter by reinforcement learning. The environment is "
        "any program that talks to a model with the API of OpenAI or "
        "Anthropic. It is started for each task and each member of a group, "
        "with the address of a gateway in this process and with a key of its "
        "own. The gateway records each sampled token.\n\nThe reward is the "
        "last line of the program's standard output, or the sum of the rewards "
        "that it posts. A program that exits with another status than 0, does "
        "not end in time, samples nothing or tells no reward has failed. It "
        "is left out and counted in metrics.jsonl.\n\nA step runs the "
        "environments of all groups, trains on their samples, and gives the "
        "new weights to the gateway. --evaluate measures them with a second "
        "environment. Ctrl-C stops the environments, saves the "
        "state of the last complete step and ends the command; a second one "
        "ends it at once.\n\nWith --url no program is started. A harness "
        "creates "
        "a key for each session with POST /tnk/sessions and its \"group\", the "
        "agent samples and posts rewards, and DELETE /tnk/sessions/ID ends the "
        "session.",
    .options = rl_options,
    .config = &rl_args.config,
    .sections = sections,
    .examples = examples,
    .failed = "Too many environments failed, or the training failed.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = rl_check,
    .run = run_rl,
};
