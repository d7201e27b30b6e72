/* SPDX-License-Identifier: MIT */
/*
 * The training loop. Up to TRAIN_IN_FLIGHT steps are called before the first
 * result is awaited, so the service has work while this process reads results.
 * A save is called right behind its last step, and the next steps right behind
 * the save.
 *
 * A state may therefore exist before the metrics of its steps are on the disk.
 * A run never continues from such a state: it goes back to an earlier one
 * (tools/tnk/learn/model.h). With frequent saves, n_ahead of them are under way
 * at once, so that they do not stop the steps. The ledger keeps the last
 * n_ahead + 1 states. So a save is called only if all metrics of the state
 * n_ahead saves before it are on the disk: that state is kept until the next
 * save is recorded. No other state is certain to be kept at the first save of
 * a process, and none is kept after the last save of a run. These two saves
 * wait for all results.
 *
 * After TNK_ESESSION the library restores the model from its last state. The
 * loop removes the metrics of later steps and continues there.
 */
#include "tools/tnk/train/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tnk/observe.h"
#include "tools/tnk/learn/model.h"
#include "tools/tnk/learn/sampler.h"
#include "tools/tnk/train/args.h"

/* The outcome of a part of the loop. */
enum {
  FINE = 0,
  LOST = LEARN_LOST,
  BROKE = LEARN_BROKE
  /* Other values are exit statuses of reported errors. */
};

/* Steps in flight, if their tokens exceed MAX_FLYING. */
enum { FEW_IN_FLIGHT = 4, MAX_FLYING = 1 << 18 };

/* ---- Waiting ---- */

static int await(train_loop_t *loop, train_phase_t phase,
                 tnk_promise_t *promise) {
  const uint64_t began_ns = uv_hrtime();
  const int err = cli_ask_wait(loop->ask, promise);

  loop->times.waited_ms[phase] += (double)(uv_hrtime() - began_ns) / 1e6;
  return err;
}

/* ---- The disk ---- */

/* Release a promise. */
static void drop(tnk_promise_t **promise) {
  tnk_promise_unref(*promise);
  *promise = NULL;
}

/* Wait for the disk, if it is written. */
static void end_sync(train_loop_t *loop) {
  if (loop->syncing != NULL && cli_ask_wait(loop->ask, loop->syncing) == TNK_OK)
    loop->n_synced = loop->n_syncing;
  drop(&loop->syncing);
}

/* Begin to write the metrics of all finished steps to the disk. */
static void begin_sync(train_loop_t *loop) {
  tnk_promise_t *both[2];

  if (tnk_promise_status(loop->syncing) == TNK_EPENDING)
    return;
  end_sync(loop);
  both[0] = tnk_numbers_sync(loop->ask->service, loop->metrics);
  both[1] = tnk_numbers_sync(loop->ask->service, loop->prompts->path);
  loop->syncing = tnk_all(both, 2);
  loop->n_syncing = loop->n_done;
}

/* Wait until the metrics of `n_steps` steps are on the disk. */
static int sync_until(train_loop_t *loop, uint64_t n_steps) {
  int result = FINE;

  end_sync(loop);
  if (loop->n_synced >= n_steps)
    return FINE;
  begin_sync(loop);
  if (cli_ask_wait(loop->ask, loop->syncing) != TNK_OK)
    result = cli_ask_failed(loop->ask, loop->syncing);
  end_sync(loop);
  return result;
}

/* ---- A step ---- */

static int is_evaluated(const train_loop_t *loop, uint64_t number) {
  if (loop->data->eval.n == 0)
    return 0;
  return number == tnk_plan_steps(loop->plan) ||
         (loop->eval_every > 0 && number % loop->eval_every == 0);
}

static int is_sampled(const train_loop_t *loop, uint64_t number) {
  if (loop->prompts->n == 0)
    return 0;
  return number == tnk_plan_steps(loop->plan) ||
         (loop->sample_every > 0 && number % loop->sample_every == 0);
}

/* An example of a packed file is in memory until its step is done and the
 * library does not read it any more. */
static int add_packed(const train_loop_t *loop, train_flight_t *flight,
                      uint64_t example) {
  train_pass_t *pass = flight->pass;
  char why[512] = "";
  const int err =
      train_packed_read(loop->data->train.packed, example, &pass->arena,
                        &pass->data[pass->n], why, sizeof(why));

  if (err != TNK_OK)
    return cli_fail(loop->ask->cli,
                    err == TNK_ENOMEM ? CLI_EXIT_FAILED : CLI_EXIT_FILE, "%s",
                    err == TNK_ENOMEM ? "out of memory" : why);
  pass->weight += tnk_data_weight(&pass->data[pass->n], 1);
  flight->step.n_tokens += pass->data[pass->n++].input.n_tokens;
  return FINE;
}

static int add_example(const train_loop_t *loop, train_flight_t *flight,
                       uint64_t example) {
  const train_set_t *set = &loop->data->train;
  train_pass_t *pass = flight->pass;

  if (set->packed != NULL)
    return add_packed(loop, flight, example);
  for (uint64_t at = example * set->per; at < (example + 1) * set->per; at++) {
    if (loop->reference.train != NULL)
      pass->reference[pass->n] = loop->reference.train[at];
    pass->data[pass->n++] = set->data[at];
  }
  pass->reward += (double)set->rewards[example];
  pass->weight += set->weights[example];
  flight->step.n_tokens += train_tokens(set, example);
  return FINE;
}

/* Collect the data of step `index`. */
static int prepare_step(train_loop_t *loop, train_flight_t *flight,
                        uint64_t index) {
  const size_t n = (size_t)tnk_plan_count(loop->plan, index);
  train_pass_t *pass = train_pass_renew(flight->pass);
  int result = FINE;

  if (pass == NULL)
    return cli_fail(loop->ask->cli, CLI_EXIT_FAILED, "out of memory");
  flight->pass = pass;
  flight->step = (train_step_t){
      .number = index + 1,
      .eval = NAN,
      .rate = tnk_schedule_rate(loop->schedule, index),
  };
  for (size_t i = 0; i < n && result == FINE; i++)
    result = add_example(loop, flight, tnk_plan_example(loop->plan, index, i));
  if (result == FINE && loop->distill != NULL)
    result = train_distill_step(loop->distill, loop->ask, loop->model, pass,
                                &flight->step);
  return result;
}

static int begin_step(train_loop_t *loop) {
  const uint64_t index = loop->n_begun;
  train_flight_t *flight = &loop->flight[index % TRAIN_IN_FLIGHT];
  tnk_promise_t *both[2];
  tnk_optim_t optim;
  const int result = prepare_step(loop, flight, index);

  /* A signal may have come while the step was sampled. */
  if (result != FINE || (loop->distill != NULL && cli_ask_is_over(loop->ask)))
    return result;
  loop->n_begun++;
  loop->n_flying += flight->step.n_tokens;
  optim = learn_optim(&train_args.optimizer, flight->step.rate);
  both[0] = train_pass_begin(loop->model, flight->pass);
  both[1] = tnk_training_optim_step(loop->model, &optim);
  flight->done = tnk_all(both, 2);
  if (is_evaluated(loop, index + 1))
    flight->eval = train_eval_begin(loop->model, &loop->data->eval);
  if (is_sampled(loop, index + 1))
    flight->weights =
        train_prompts_begin(loop->prompts, loop->model, index + 1);
  return FINE;
}

static int write_metrics(const train_loop_t *loop, const train_step_t *step) {
  tnk_number_t numbers[5 + TRAIN_MAX_MORE] = {
      {"train/loss", step->loss},
      {"learning_rate", step->rate},
      {"epoch", tnk_plan_epoch(loop->plan, step->number)},
      {"tokens", (double)step->n_tokens},
  };
  size_t n = 4;

  if (!isnan(step->eval))
    numbers[n++] = (tnk_number_t){"eval/loss", step->eval};
  for (size_t i = 0; i < step->n_more; i++)
    numbers[n++] = step->more[i];
  if (tnk_numbers_append(loop->metrics, (int64_t)step->number, numbers, n) ==
      TNK_OK)
    return FINE;
  return cli_fail(loop->ask->cli, CLI_EXIT_FILE, "%s: %s", loop->metrics,
                  strerror(errno));
}

/* Report why a promise was rejected. Returns LOST without a report if the model
 * is lost. */
static int failed(const train_loop_t *loop, const tnk_promise_t *promise) {
  return tnk_promise_status(promise) == TNK_ESESSION
             ? LOST
             : cli_ask_failed(loop->ask, promise);
}

static int end_pass(train_loop_t *loop, train_flight_t *flight) {
  train_step_t *step = &flight->step;
  int result = FINE;

  if (await(loop, TRAIN_STEPS, flight->done) == TNK_OK)
    step->loss =
        train_pass_end(tnk_promise_child(flight->done, 0), flight->pass, step);
  else
    result = failed(loop, flight->done);
  drop(&flight->done);
  return result;
}

static int end_eval(train_loop_t *loop, train_flight_t *flight) {
  train_step_t *step = &flight->step;
  int result = FINE;

  if (flight->eval == NULL)
    return FINE;
  if (await(loop, TRAIN_EVALS, flight->eval) == TNK_OK)
    step->eval = train_eval_end(flight->eval, &loop->data->eval,
                                loop->reference.eval, step);
  else
    result = failed(loop, flight->eval);
  drop(&flight->eval);
  return result;
}

/* Returns LOST if the service lost the model before it saved the weights. */
static int end_samples(train_loop_t *loop, tnk_promise_t **weights,
                       uint64_t number) {
  const uint64_t began_ns = uv_hrtime();
  int result = FINE;

  if (*weights == NULL)
    return FINE;
  train_show_end(&loop->show);
  result =
      cli_ask_wait(loop->ask, *weights) == TNK_ESESSION
          ? LOST
          : train_prompts_sample(loop->prompts, loop->ask, *weights, number);
  drop(weights);
  loop->times.waited_ms[TRAIN_SAMPLES] +=
      (double)(uv_hrtime() - began_ns) / 1e6;
  return result;
}

/* Returns whether a save of this many steps was called lately. */
static int is_state(const train_loop_t *loop, uint64_t n_steps) {
  const uint64_t n =
      loop->n_saves < loop->n_ahead ? loop->n_saves : loop->n_ahead;

  for (uint64_t i = 0; i < n; i++)
    if (loop->saves[i].n_steps == n_steps)
      return 1;
  return 0;
}

/* The metrics of a step are written after its samples, so they say that it has
 * both. */
static int end_step(train_loop_t *loop) {
  train_flight_t *flight = &loop->flight[loop->n_done % TRAIN_IN_FLIGHT];
  const train_step_t *step = &flight->step;
  int result = end_pass(loop, flight);

  if (result == FINE)
    result = end_eval(loop, flight);
  if (result == FINE)
    result = end_samples(loop, &flight->weights, step->number);
  if (result == FINE)
    result = write_metrics(loop, step);
  if (result != FINE)
    return result;
  loop->n_done++;
  loop->n_flying -= step->n_tokens;
  train_pass_clear(flight->pass);
  loop->loss = step->loss;
  loop->eval = step->eval;
  train_show_step(&loop->show, step);
  /* A later save needs it, so it must not wait for the disk then. */
  if (is_state(loop, loop->n_done))
    begin_sync(loop);
  return FINE;
}

/* ---- Saves ---- */

uint64_t train_loop_ahead(uint64_t save_every, int is_distilling) {
  if (is_distilling || save_every >= TRAIN_IN_FLIGHT)
    return 1;
  return (TRAIN_IN_FLIGHT + save_every - 1) / save_every;
}

/* The earliest save that may be under way, and the entry of the next one. */
static train_save_t *oldest(train_loop_t *loop) {
  return &loop->saves[loop->n_saves % loop->n_ahead];
}

static int end_save(train_loop_t *loop, train_save_t *save) {
  int result = FINE;

  if (save->promise == NULL)
    return FINE;
  if (await(loop, TRAIN_SAVES, save->promise) != TNK_OK)
    result = failed(loop, save->promise);
  if (result == LOST)
    loop->is_in_doubt = 1;
  drop(&save->promise);
  return result;
}

/* Await all saves, from the earliest to the latest. */
static int end_saves(train_loop_t *loop) {
  int result = FINE;

  for (uint64_t i = 0; i < loop->n_ahead && result == FINE; i++)
    result = end_save(loop, &loop->saves[(loop->n_saves + i) % loop->n_ahead]);
  return result;
}

/* The number of steps whose metrics must be on the disk before the next save is
 * called; see the beginning of this file. */
static uint64_t needed(const train_loop_t *loop) {
  if (loop->n_saves == 0 || loop->n_begun == tnk_plan_steps(loop->plan))
    return loop->n_begun;
  /* The first save of the process had all results. */
  return loop
      ->saves[loop->n_saves < loop->n_ahead ? 0 : loop->n_saves % loop->n_ahead]
      .n_steps;
}

/* Save the state of `n_begun` steps. */
static int begin_save(train_loop_t *loop) {
  const int is_last = loop->n_begun == tnk_plan_steps(loop->plan);
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  int result = end_save(loop, oldest(loop));

  if (result == FINE)
    result = sync_until(loop, needed(loop));
  if (result != FINE)
    return result;
  how.is_final = is_last ? TNK_YES : TNK_NO;
  how.with_sampler = is_last ? TNK_YES : TNK_NO;
  *oldest(loop) = (train_save_t){
      .promise = tnk_ledger_save(loop->ledger, loop->model, &how),
      .n_steps = loop->n_begun,
  };
  loop->n_saved = loop->n_begun;
  loop->n_saves++;
  return FINE;
}

/* ---- A lost model ---- */

static void drop_all(train_loop_t *loop) {
  for (size_t i = 0; i < TRAIN_IN_FLIGHT; i++) {
    drop(&loop->flight[i].done);
    drop(&loop->flight[i].eval);
    drop(&loop->flight[i].weights);
  }
  for (size_t i = 0; i < TRAIN_IN_FLIGHT; i++)
    drop(&loop->saves[i].promise);
}

static int rewind_to(train_loop_t *loop, uint64_t n_steps) {
  const char *path = loop->metrics;
  int err;

  end_sync(loop);
  err = tnk_numbers_rewind(path, n_steps);
  loop->n_synced = 0;
  loop->n_done = loop->n_begun = loop->n_saved = n_steps;
  loop->n_saves = 0;
  loop->n_flying = 0;
  if (err == TNK_OK && loop->prompts->n > 0) {
    path = loop->prompts->path;
    err = tnk_numbers_rewind(path, n_steps);
  }
  if (err == TNK_OK)
    return FINE;
  return cli_fail(loop->ask->cli, CLI_EXIT_FILE, "%s: %s", path,
                  strerror(errno));
}

static void settle(const train_loop_t *loop, tnk_promise_t *promise) {
  if (promise != NULL)
    (void)cli_ask_wait(loop->ask, promise);
}

static void settle_saves(train_loop_t *loop) {
  for (size_t i = 0; i < TRAIN_IN_FLIGHT; i++) {
    const tnk_promise_t *promise = loop->saves[i].promise;

    settle(loop, loop->saves[i].promise);
    if (promise != NULL && tnk_promise_status(promise) != TNK_OK)
      loop->is_in_doubt = 1;
  }
}

/* Await the steps in flight, which fail too, and then the restored model. */
static int restore(train_loop_t *loop) {
  const uint64_t n_saved = loop->n_saved;
  tnk_promise_t *ready;
  uint64_t n_steps = 0;
  int result = FINE;

  for (size_t i = 0; i < TRAIN_IN_FLIGHT; i++) {
    settle(loop, loop->flight[i].done);
    settle(loop, loop->flight[i].eval);
    settle(loop, loop->flight[i].weights);
  }
  settle_saves(loop);
  drop_all(loop);
  ready = tnk_training_ready(loop->model);
  if (cli_ask_wait(loop->ask, ready) != TNK_OK)
    result = cli_ask_failed(loop->ask, ready);
  else
    n_steps = tnk_promise_saved(ready)->n_steps;
  tnk_promise_unref(ready);
  /* A state with steps whose metrics are missing is of no use either. */
  if (result == FINE && (loop->is_in_doubt || n_steps > loop->n_done))
    result = learn_model_settle(&loop->model, loop->ask, loop->ledger,
                                loop->run, loop->n_done, &n_steps);
  if (result == FINE)
    loop->is_in_doubt = 0;
  if (result == FINE)
    result = rewind_to(loop, n_steps);
  /* Only a sampler was lost, and the model has steps that are not saved. */
  if (loop->n_saved > n_saved)
    loop->n_saved = n_saved;
  if (result == FINE)
    cli_note(loop->ask->cli, "the model was restored after step %" PRIu64,
             loop->n_done);
  return result;
}

/* ---- Limits ---- */

/* The most that a step may use. */
static train_use_t step_use(const train_loop_t *loop, uint64_t index) {
  const train_set_t *set = &loop->data->train;
  /* A custom loss has two passes. */
  const uint64_t n_passes = loop->reference.train != NULL ? 2 : 1;
  train_use_t use = {0};

  for (uint64_t i = 0; i < tnk_plan_count(loop->plan, index); i++) {
    const uint64_t n =
        train_tokens(set, tnk_plan_example(loop->plan, index, i));

    if (loop->distill != NULL)
      train_use_add(&use, train_distill_use(n));
    else
      use.trained += n * n_passes;
  }
  if (is_evaluated(loop, index + 1))
    use.trained += loop->data->eval.n_tokens;
  if (is_sampled(loop, index + 1))
    train_use_add(&use, train_prompts_use(loop->prompts));
  return use;
}

/* The service's budget holds the limits too. It would refuse one operation of a
 * step, and may still accept later steps. */
static int is_affordable(train_loop_t *loop) {
  learn_used_t used, more;
  train_use_t use;

  if (loop->budget.max_tokens == 0 && !(loop->budget.max_usd > 0))
    return 1;
  used = learn_budget_used(loop->ask);
  use = step_use(loop, loop->n_begun);
  more.tokens = train_use_tokens(&use);
  more.usd = train_use_usd(&use, &loop->price, &loop->teacher);
  loop->is_broke = learn_budget_has(&loop->budget, &used, &more)
                       ? LEARN_AFFORDABLE
                       : LEARN_NEXT_EXCEEDS;
  return !loop->is_broke;
}

/* ---- The loop ---- */

/* Returns whether the steps called so far must be saved before the next one is
 * called. */
static int is_save_due(const train_loop_t *loop) {
  return loop->n_begun != loop->n_saved &&
         (loop->n_begun % loop->save_every == 0 ||
          loop->n_begun == tnk_plan_steps(loop->plan));
}

/* Returns whether another step may be in flight. Large ones need memory. */
static int has_room(const train_loop_t *loop) {
  const uint64_t n = loop->n_begun - loop->n_done;

  /* The answers of a step come from the weights after the one before it. */
  if (loop->distill != NULL)
    return n == 0;
  return n < FEW_IN_FLIGHT ||
         (n < TRAIN_IN_FLIGHT && loop->n_flying < MAX_FLYING);
}

static int can_step(train_loop_t *loop) {
  return loop->n_begun < tnk_plan_steps(loop->plan) &&
         !cli_ask_is_over(loop->ask) && has_room(loop) && is_affordable(loop);
}

/* Call steps and saves, and await the first step. */
static int turn(train_loop_t *loop) {
  int result = FINE;

  while (result == FINE &&
         (is_save_due(loop) ? loop->n_done >= needed(loop) : can_step(loop)))
    result = is_save_due(loop) ? begin_save(loop) : begin_step(loop);
  if (result == FINE && loop->n_done < loop->n_begun)
    result = end_step(loop);
  return result;
}

/* Returns whether steps are left, in flight or allowed. */
static int has_more(const train_loop_t *loop) {
  return loop->n_done < loop->n_begun ||
         (loop->n_done < tnk_plan_steps(loop->plan) && !loop->is_broke &&
          !cli_ask_is_over(loop->ask));
}

/* The samples of the first weights. An earlier process may have written some
 * before it was killed. */
static int sample_first(train_loop_t *loop) {
  tnk_promise_t *weights;

  if (loop->prompts->n == 0)
    return FINE;
  if (unlink(loop->prompts->path) != 0 && errno != ENOENT)
    return cli_fail(loop->ask->cli, CLI_EXIT_FILE, "%s: %s",
                    loop->prompts->path, strerror(errno));
  weights = train_prompts_begin(loop->prompts, loop->model, 0);
  return end_samples(loop, &weights, 0);
}

/* A step cannot be made, though the service has not failed. The steps before it
 * are kept. */
static void save_before(train_loop_t *loop) {
  int result = end_saves(loop);

  if (result == FINE && loop->n_done != loop->n_saved)
    result = begin_save(loop);
  if (result == FINE)
    (void)end_saves(loop);
}

/* Returns whether a save is missing: after a signal or a limit, or of a final
 * state without sampler weights. */
static int is_unsaved(const train_loop_t *loop) {
  return loop->n_done != loop->n_saved || loop->is_broke == LEARN_REFUSED ||
         (loop->n_done == tnk_plan_steps(loop->plan) &&
          !learn_ledger_is_ended(loop->ledger));
}

static int run_all(train_loop_t *loop, int wants_first) {
  int result = FINE;

  do {
    if (result == LOST)
      result = restore(loop);
    if (result == FINE && wants_first)
      result = sample_first(loop);
    if (result == FINE)
      wants_first = 0;
    while (result == FINE && has_more(loop))
      result = turn(loop);
    /* A limit has refused a request of a step, and the model is the one before
     * it. The save writes its use to the ledger, for the next process. */
    if (result == BROKE) {
      loop->is_broke = LEARN_REFUSED;
      result = FINE;
    }
    if (result == FINE)
      result = end_saves(loop);
    if (result == FINE && is_unsaved(loop))
      result = begin_save(loop);
    if (result == FINE)
      result = end_saves(loop);
  } while (result == LOST);
  if (result > FINE && loop->distill != NULL && loop->distill->is_empty)
    save_before(loop);
  return result;
}

int train_loop_run(train_loop_t *loop, uint64_t first) {
  const size_t n_answers =
      loop->distill != NULL ? (size_t)train_args.group_size : 1;
  const size_t n = (size_t)tnk_plan_max_count(loop->plan) *
                   loop->data->train.per * n_answers;
  const uint64_t began_ns = uv_hrtime();
  int result = rewind_to(loop, first);

  loop->loss = loop->eval = NAN;
  loop->show.first = first;
  for (size_t i = 0; i < TRAIN_IN_FLIGHT && result == FINE; i++) {
    loop->flight[i].pass = train_pass_new(n);
    if (loop->flight[i].pass == NULL)
      result = cli_fail(loop->ask->cli, CLI_EXIT_FAILED, "out of memory");
  }
  if (result == FINE) {
    loop->ask->ends_itself = 1;
    result = run_all(loop, first == 0);
    learn_sampler_end(&loop->prompts->weights, loop->ask);
    if (loop->distill != NULL)
      learn_sampler_end(&loop->distill->sampler, loop->ask);
    loop->ask->ends_itself = 0;
  }
  drop(&loop->syncing);
  drop_all(loop);
  train_show_end(&loop->show);
  loop->times.ms = (double)(uv_hrtime() - began_ns) / 1e6;
  return result;
}

void train_loop_free(train_loop_t *loop) {
  for (size_t i = 0; i < TRAIN_IN_FLIGHT; i++)
    train_pass_free(loop->flight[i].pass);
  train_reference_free(&loop->reference);
  if (loop->distill != NULL)
    train_distill_free(loop->distill);
}
