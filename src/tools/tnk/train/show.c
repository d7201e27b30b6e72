/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/base/text.h"
#include "tnk/error.h"
#include "tools/common/base/terminal.h"
#include "tools/common/base/input.h"
#include "tools/tnk/learn/budget.h"
#include "tools/tnk/learn/use.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/train/teacher.h"
#include "tools/tnk/train/use.h"

/* ---- Progress ---- */

static uint64_t now_ms(void) {
  struct timespec now;

  return clock_gettime(CLOCK_MONOTONIC, &now) == 0
             ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000
             : 0;
}

/* Without a terminal about twenty lines of a run are printed, and all
 * evaluations. */
static int is_due(const train_show_t *show, const train_step_t *step) {
  const uint64_t every = show->n_steps / 20 > 0 ? show->n_steps / 20 : 1;

  return step->number % every == 0 || step->number == show->n_steps ||
         step->number == show->first + 1 || isfinite(step->eval);
}

static void describe(const train_show_t *show, const train_step_t *step,
                     char *out, size_t n) {
  const uint64_t ms = now_ms() - show->began_ms;
  /* The first step of this process began the clock. */
  const uint64_t n_timed = step->number - show->first - 1;
  tnk__text_t text;

  tnk__text_init(&text, out, n);
  tnk__text_printf(&text, "step %" PRIu64 "/%" PRIu64 "  loss %.4f",
                   step->number, show->n_steps, step->loss);
  if (isfinite(step->eval))
    tnk__text_printf(&text, "  eval %.4f", step->eval);
  for (size_t i = 0; i < step->n_more; i++)
    if (strcmp(step->more[i].key, "accuracy") == 0)
      tnk__text_printf(&text, "  accuracy %.2f", step->more[i].value);
    else if (strcmp(step->more[i].key, "teacher_kl") == 0)
      tnk__text_printf(&text, "  teacher KL %.4f", step->more[i].value);
  tnk__text_printf(&text, "  rate %.3g", step->rate);
  if (ms == 0 || n_timed == 0)
    return;
  tnk__text_printf(&text, "  %.0f tokens/s",
                   (double)show->n_tokens * 1000 / (double)ms);
  if (step->number == show->n_steps)
    return;
  tnk__text_printf(&text, "  left ");
  tnk__text_time(&text, ms * (show->n_steps - step->number) / n_timed);
}

static void put_json(const train_step_t *step, uint64_t n_steps) {
  fprintf(stderr,
          "{\"progress\":{\"label\":\"train\",\"unit\":\"steps\",\"done\":"
          "%" PRIu64 ",\"total\":%" PRIu64,
          step->number, n_steps);
  /* JSON has no number for a loss that is not finite. */
  if (isfinite(step->loss))
    fprintf(stderr, ",\"loss\":%.17g", step->loss);
  if (isfinite(step->eval))
    fprintf(stderr, ",\"eval\":%.17g", step->eval);
  fprintf(stderr, "}}\n");
}

void train_show_step(train_show_t *show, const train_step_t *step) {
  char text[256];

  if (show->cli->quiet)
    return;
  if (show->began_ms == 0)
    show->began_ms = now_ms();
  else
    show->n_tokens += step->n_tokens;
  describe(show, step, text, sizeof(text));
  if (show->cli->json) {
    if (is_due(show, step))
      put_json(step, show->n_steps);
  } else if (!cli_can_rewrite(stderr)) {
    if (is_due(show, step))
      fprintf(stderr, "%s\n", text);
  } else {
    cli_cut(text, cli_columns(stderr) - 1);
    /* An evaluation stays above the line. */
    fprintf(stderr, "\r\033[K%s%s", text, isfinite(step->eval) ? "\n" : "");
    fflush(stderr);
    show->has_line = 1;
  }
}

void train_show_end(train_show_t *show) {
  if (show->has_line)
    fprintf(stderr, "\r\033[K");
  show->has_line = 0;
}

/* ---- Plan ---- */

/* The use of one example, `n` times; of distillation the most. */
static void add_use(train_use_t *use, const train_set_t *set, uint64_t example,
                    uint64_t n) {
  const uint64_t n_tokens = train_tokens(set, example);
  train_use_t one = train_args.method == TRAIN_DISTILL
                        ? train_distill_use(n_tokens)
                        : (train_use_t){.trained = n_tokens};

  one.prompt *= n;
  one.sampled *= n;
  one.trained *= n;
  one.scored *= n;
  train_use_add(use, one);
}

static uint64_t n_evaluations(const train_data_t *data,
                              const tnk_plan_t *plan) {
  const uint64_t every = (uint64_t)train_args.eval_every;

  if (data->eval.n == 0)
    return 0;
  return every > 0 ? (tnk_plan_steps(plan) + every - 1) / every : 1;
}

/* How often the messages of --sample are answered. */
static uint64_t n_samplings(const train_prompts_t *prompts,
                            const tnk_plan_t *plan) {
  const uint64_t every = (uint64_t)train_args.sample_every;

  if (prompts->n == 0)
    return 0;
  return 1 + (every > 0 ? (tnk_plan_steps(plan) + every - 1) / every : 1);
}

/* The use of all steps, evaluations and samples, and of the first weights with
 * --method dpo. The limits of a run count the same. */
static train_use_t planned_use(const train_data_t *data,
                               const train_prompts_t *prompts,
                               const tnk_plan_t *plan) {
  const uint64_t n_whole = tnk_plan_total(plan) / data->train.n;
  const int is_dpo = train_args.method == TRAIN_DPO;
  train_use_t samples = train_prompts_use(prompts);
  train_use_t use = {0};

  samples.prompt *= n_samplings(prompts, plan);
  samples.sampled *= n_samplings(prompts, plan);
  if (train_args.method == TRAIN_DISTILL)
    for (uint64_t i = 0; i < data->train.n; i++)
      add_use(&use, &data->train, i, n_whole);
  else
    use.trained = n_whole * data->train.n_tokens;
  /* The incomplete epoch. */
  for (uint64_t i = 0; i < tnk_plan_total(plan) % data->train.n; i++)
    add_use(&use, &data->train,
            tnk_shuffle((uint64_t)train_args.seed, n_whole, data->train.n, i),
            1);
  if (is_dpo) /* a custom loss has two passes */
    use.trained = 2 * use.trained + data->train.n_tokens + data->eval.n_tokens;
  use.trained += n_evaluations(data, plan) * data->eval.n_tokens;
  train_use_add(&use, samples);
  return use;
}

static int put_plan_json(const cli_t *cli, const train_data_t *data,
                         const tnk_plan_t *plan, const tnk_schedule_t *schedule,
                         const train_use_t *use, double usd) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "model", train_args.model);
  tnk__json_put_int(&json.w, "examples", (int64_t)data->train.n);
  tnk__json_put_int(&json.w, "eval_examples", (int64_t)data->eval.n);
  tnk__json_put_int(&json.w, "tokens", (int64_t)data->train.n_tokens);
  tnk__json_put_int(&json.w, "longest", (int64_t)train_longest(&data->train));
  tnk__json_put_int(&json.w, "cut", (int64_t)data->n_cut);
  tnk__json_put_int(&json.w, "left_out", (int64_t)data->n_left_out);
  tnk__json_put_int(&json.w, "steps", (int64_t)tnk_plan_steps(plan));
  tnk__json_put_int(&json.w, "batch", (int64_t)tnk_plan_max_count(plan));
  tnk__json_put_int(&json.w, "batch_tokens", train_args.n_batch_tokens);
  tnk__json_put_double(&json.w, "learning_rate", schedule->peak);
  if (train_args.method == TRAIN_DISTILL)
    tnk__json_put_int(&json.w, "group_size", train_args.group_size);
  if (use->sampled > 0) {
    tnk__json_put_int(&json.w, "max_sampled_tokens", (int64_t)use->sampled);
    tnk__json_put_int(&json.w, "max_tokens", (int64_t)train_use_tokens(use));
  }
  tnk__json_put_int(&json.w, "trained_tokens", (int64_t)use->trained);
  tnk__json_put_double(&json.w, "cost_usd", usd);
  return cli_json_end(&json, cli);
}

/* Add a row with a number. */
static void row(cli_table_t *table, const char *name, uint64_t n) {
  cli_table_add(table, "%s", name);
  cli_table_add(table, "%" PRIu64, n);
}

/* Add what is trained: examples, pairs or prompts. */
static void put_examples(cli_table_t *table, const train_data_t *data) {
  const int is_distill = train_args.method == TRAIN_DISTILL;

  row(table,
      is_distill            ? "prompts"
      : data->train.per > 1 ? "pairs"
                            : "examples",
      data->train.n);
  if (data->eval.n > 0)
    row(table, "for evaluation", data->eval.n);
  row(table, "tokens", data->train.n_tokens);
  if (!is_distill) {
    cli_table_add(table, "of them trained");
    cli_table_add(table, "%.6g", data->train.weight);
  }
  row(table, "longest", train_longest(&data->train));
  if (is_distill)
    row(table, "answers to a prompt", (uint64_t)train_args.group_size);
  else
    row(table, "cut", data->n_cut);
  row(table, "left out", data->n_left_out);
}

static void put_use(cli_table_t *table, const train_use_t *use, double usd) {
  /* The length of a sample is not known before. */
  const int is_most = use->sampled > 0;

  row(table, is_most ? "most tokens of all steps" : "tokens of all steps",
      train_use_tokens(use));
  cli_table_add(table, is_most ? "highest cost" : "cost");
  if (isfinite(usd))
    cli_table_add(table, "%.2f USD", usd);
  else
    cli_table_add(table, "unknown without --prices");
}

/* The service knows the base model of weights, and is not asked. */
static int read_teacher_price(tnk_price_t *out, const cli_t *cli) {
  const char *known = train_teacher_model(NULL);

  if (known == NULL && train_args.prices != NULL)
    cli_note(cli,
             "the price of the teacher is assumed to be that of %s: its base "
             "model is not known before the run",
             train_args.model);
  return learn_read_price(out, cli, train_args.prices,
                          known != NULL ? known : train_args.model);
}

int train_show_plan(const cli_t *cli, const train_data_t *data,
                    const train_prompts_t *prompts, const tnk_plan_t *plan,
                    const tnk_schedule_t *schedule) {
  const train_use_t use = planned_use(data, prompts, plan);
  const int by_tokens = train_args.n_batch_tokens > 0;
  tnk_price_t price, teacher = {0};
  cli_table_t *table;
  int status =
      learn_read_price(&price, cli, train_args.prices, train_args.model);
  double usd;

  if (status == CLI_EXIT_OK && train_args.method == TRAIN_DISTILL)
    status = read_teacher_price(&teacher, cli);
  if (status != CLI_EXIT_OK)
    return status;
  usd = train_use_usd(&use, &price, &teacher);
  if (cli->json)
    return put_plan_json(cli, data, plan, schedule, &use, usd);
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "model", train_args.model);
  if (train_args.method == TRAIN_DISTILL)
    cli_table_add_row(table, "teacher", train_args.teacher);
  put_examples(table, data);
  row(table, "steps", tnk_plan_steps(plan));
  row(table, by_tokens ? "largest batch" : "batch", tnk_plan_max_count(plan));
  if (by_tokens)
    row(table, "tokens of a batch", (uint64_t)train_args.n_batch_tokens);
  cli_table_add(table, "epochs");
  cli_table_add(table, "%.4g", tnk_plan_epoch(plan, tnk_plan_steps(plan)));
  cli_table_add(table, "learning rate");
  cli_table_add(table, "%g, %s", schedule->peak,
                train_schedules[schedule->decay]);
  if (prompts->n > 0)
    row(table, "samples", prompts->n * n_samplings(prompts, plan));
  put_use(table, &use, usd);
  return cli_table_end(table, cli);
}

/* ---- Result ---- */

static const struct {
  const char *words;
  const char *key; /* in JSON */
} phases[TRAIN_N_PHASES] = {
    [TRAIN_STEPS] = {"steps", "steps_ms"},
    [TRAIN_EVALS] = {"evaluations", "evaluations_ms"},
    [TRAIN_SAVES] = {"saves", "saves_ms"},
    [TRAIN_SAMPLES] = {"samples", "samples_ms"},
};

void train_show_times(const cli_t *cli, const train_times_t *times) {
  char buf[256];
  tnk__text_t text;

  if (times->ms <= 0 || cli->json)
    return;
  tnk__text_init(&text, buf, sizeof(buf));
  tnk__text_time(&text, (uint64_t)times->ms);
  tnk__text_printf(&text, ", waiting for");
  for (size_t i = 0; i < TRAIN_N_PHASES; i++) {
    tnk__text_printf(&text, "%s %s ", i > 0 ? "," : "", phases[i].words);
    tnk__text_time(&text, (uint64_t)times->waited_ms[i]);
  }
  cli_note(cli, "time %s", buf);
}

static int put_result_json(const cli_t *cli, const tnk_ledger_entry_t *entry,
                           double loss, double eval,
                           const train_times_t *times) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "run", train_args.run);
  tnk__json_put_int(&json.w, "steps", (int64_t)entry->n_steps);
  tnk__json_put_double(&json.w, "loss", loss);
  tnk__json_put_double(&json.w, "eval_loss", eval);
  tnk__json_put_text(&json.w, "state_path", entry->state_path);
  tnk__json_put_text(&json.w, "sampler_path", entry->sampler_path);
  tnk__json_put_double(&json.w, "time_ms", times->ms);
  for (size_t i = 0; i < TRAIN_N_PHASES; i++)
    tnk__json_put_double(&json.w, phases[i].key, times->waited_ms[i]);
  return cli_json_end(&json, cli);
}

int train_show_result(const cli_t *cli, const tnk_ledger_entry_t *entry,
                      const char *served, double loss, double eval,
                      const train_times_t *times) {
  const char *tokenizer = train_args.chats.which.path;

  if (cli->json)
    return put_result_json(cli, entry, loss, eval, times);
  printf("trained %" PRIu64 " steps", entry->n_steps);
  if (isfinite(loss))
    printf(", loss %.4f", loss);
  if (isfinite(eval))
    printf(", eval %.4f", eval);
  putchar('\n');
  learn_print_use(entry->sampler_path, train_args.is_local ? served : NULL,
                  train_args.model, tokenizer);
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}
