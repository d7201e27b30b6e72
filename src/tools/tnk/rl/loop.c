/* SPDX-License-Identifier: MIT */
/*
 * The loop of reinforcement learning. A step gives the weights to the gateway,
 * runs its environments with them, and trains on what they have sampled. So all
 * samples of a step come from the weights that it trains.
 *
 * The metrics of a step are on the disk before the service has a state with it,
 * and a run that resumes from that state has each step exactly once.
 */
#include "tools/tnk/rl/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/observe.h"
#include "tnk/rest.h"
#include "tools/tnk/learn/drift.h"
#include "tools/tnk/learn/metrics.h"
#include "tools/tnk/learn/model.h"

/* The outcome of a part of the loop. */
enum {
  FINE = 0,
  LOST = -1 /* the model was lost, and the library restores it */
  /* Other values are exit statuses of reported errors. */
};

/* The service deletes sampler weights that a killed process has left. */
enum { TTL_S = 7 * 24 * 3600 };

static const cli_t *cli_of(const rl_loop_t *loop) {
  return loop->play.ask->cli;
}

static int is_over(const rl_loop_t *loop) {
  return cli_ask_is_over(loop->play.ask);
}

/* Await a promise and release it. Returns LOST without a report if the model is
 * lost. */
static int await(const rl_loop_t *loop, tnk_promise_t *promise) {
  const int err = cli_ask_wait(loop->play.ask, promise);
  int result = FINE;

  if (err != TNK_OK)
    result =
        err == TNK_ESESSION ? LOST : cli_ask_failed(loop->play.ask, promise);
  return result;
}

static int file_failed(const rl_loop_t *loop, int err) {
  return cli_fail(cli_of(loop), CLI_EXIT_FILE, "%s: %s", loop->metrics,
                  err == TNK_ENOMEM ? "out of memory" : strerror(errno));
}

/* ---- Weights for the gateway ---- */

/* Await the deletion of earlier weights. The service deletes them some time
 * later anyway. */
static void end_deletion(rl_loop_t *loop) {
  if (loop->deleting != NULL)
    (void)cli_ask_wait(loop->play.ask, loop->deleting);
  tnk_promise_unref(loop->deleting);
  loop->deleting = NULL;
}

static void delete_sampler(rl_loop_t *loop) {
  end_deletion(loop);
  if (loop->sampler != NULL)
    loop->deleting =
        tnk_rest_delete_checkpoint(loop->play.ask->service, loop->sampler);
  free(loop->sampler);
  loop->sampler = NULL;
}

static int use(const rl_loop_t *loop, const char *path) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *used;
  int result;

  what.model_path = path;
  used = tnk_gateway_use(loop->play.gateway, &what);
  result = await(loop, used);
  tnk_promise_unref(used);
  return result;
}

/* Let the gateway sample from the weights of `n_done` steps. */
static int give_weights(rl_loop_t *loop) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  tnk_promise_t *saved;
  char name[64];
  char *path = NULL;
  int result;

  options.ttl_seconds = TTL_S;
  snprintf(name, sizeof(name), "rl-%" PRIu64 "-%" PRIu64, loop->n_done,
           loop->play.n_plays);
  saved = tnk_training_save_weights_for_sampler(loop->model, name, &options);
  result = await(loop, saved);
  if (result == FINE) {
    path = strdup(tnk_promise_path(saved));
    if (path == NULL)
      result = cli_fail(cli_of(loop), CLI_EXIT_FAILED, "out of memory");
  }
  tnk_promise_unref(saved);
  if (result == FINE)
    result = use(loop, path);
  if (path == NULL)
    return result;
  delete_sampler(loop);
  loop->sampler = path;
  return result;
}

/* ---- A step ---- */

static int write_metrics(const rl_loop_t *loop, const tnk_promise_t *pass) {
  const rl_batch_t *batch = &loop->batch;
  const size_t *counts = loop->play.counts;
  tnk_number_t numbers[12 + LEARN_N_DRIFT] = {
      {"train/loss", learn_loss_sum(pass) / batch->n_sampled},
      {"learning_rate", loop->rate},
      {"tokens", (double)batch->n_tokens},
      {"reward", batch->reward},
      {"useful_groups", (double)batch->n_useful},
      {"failed", (double)loop->play.n_failed},
      {"failed/crashed", (double)counts[RL_FAILED_CRASHED]},
      {"failed/timed_out", (double)counts[RL_FAILED_TIMED_OUT]},
      {"failed/not_started", (double)counts[RL_FAILED_START]},
      {"failed/unrewarded", (double)counts[RL_FAILED_UNREWARDED]},
      {"failed/silent", (double)counts[RL_FAILED_SILENT]},
  };
  size_t n = 11;
  int err;

  n += learn_drift(numbers + n, pass, batch->data, batch->n);
  err =
      tnk_numbers_append(loop->metrics, (int64_t)loop->n_done + 1, numbers, n);
  return err == TNK_OK ? FINE : file_failed(loop, err);
}

static void show(const rl_loop_t *loop) {
  const cli_t *cli = cli_of(loop);

  if (cli->quiet)
    return;
  if (cli->json)
    fprintf(stderr,
            "{\"progress\":{\"label\":\"rl\",\"unit\":\"steps\",\"done\":"
            "%" PRIu64 ",\"total\":%" PRIu64 ",\"reward\":%.17g,"
            "\"failed\":%zu}}\n",
            loop->n_done, loop->n_steps, loop->reward, loop->play.n_failed);
  else
    cli_note(cli,
             "step %" PRIu64 "/%" PRIu64 "  reward %.4f  failed %zu  "
             "groups with an advantage %zu/%zu",
             loop->n_done, loop->n_steps, loop->reward, loop->play.n_failed,
             loop->batch.n_useful, loop->play.n_groups);
}

static int learn(rl_loop_t *loop) {
  rl_batch_t *batch = &loop->batch;
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_optim_t optim = TNK_OPTIM_INIT;
  tnk_promise_t *both[2];
  tnk_promise_t *done;
  int result;

  if (rl_batch_make(batch, &loop->play, loop->advantages) != TNK_OK)
    return cli_fail(cli_of(loop), CLI_EXIT_FAILED, "out of memory");
  options.loss_fn = loop->loss;
  optim.learning_rate = loop->rate;
  both[0] = tnk_training_forward_backward(loop->model, batch->data, batch->n,
                                          &options);
  both[1] = tnk_training_optim_step(loop->model, &optim);
  done = tnk_all(both, 2);
  result = await(loop, done);
  if (result == FINE)
    result = write_metrics(loop, tnk_promise_child(done, 0));
  tnk_promise_unref(done);
  if (result != FINE)
    return result;
  loop->n_done++;
  loop->reward = batch->reward;
  show(loop);
  return FINE;
}

/* ---- Saves ---- */

static int save(rl_loop_t *loop) {
  const tnk_choice_t is_last = loop->n_done == loop->n_steps ? TNK_YES : TNK_NO;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  const int err = learn_metrics_sync(loop->metrics);
  tnk_promise_t *saved;
  int result;

  if (err != TNK_OK)
    return file_failed(loop, err);
  how.is_final = is_last;
  how.with_sampler = is_last;
  saved = tnk_ledger_save(loop->ledger, loop->model, &how);
  result = await(loop, saved);
  tnk_promise_unref(saved);
  if (result == FINE)
    loop->n_saved = loop->n_done;
  return result;
}

static int rewind_to(rl_loop_t *loop, uint64_t n_steps) {
  const int err = learn_metrics_rewind(loop->metrics, n_steps);

  loop->n_done = loop->n_saved = n_steps;
  return err == TNK_OK ? FINE : file_failed(loop, err);
}

/* Await the model that the library restores. */
static int restore(rl_loop_t *loop) {
  tnk_promise_t *ready = tnk_training_ready(loop->model);
  int result = FINE;

  if (cli_ask_wait(loop->play.ask, ready) != TNK_OK)
    result = cli_ask_failed(loop->play.ask, ready);
  else
    result = rewind_to(loop, tnk_promise_saved(ready)->n_steps);
  tnk_promise_unref(ready);
  if (result == FINE)
    cli_note(cli_of(loop), "the model was restored after step %" PRIu64,
             loop->n_done);
  return result;
}

/* ---- The loop ---- */

static int turn(rl_loop_t *loop) {
  int result = give_weights(loop);

  if (result == FINE && !is_over(loop)) {
    result = rl_play_step(&loop->play, loop->n_done + 1);
    /* Too many have failed, but the service has not: keep the steps before. */
    if (result != FINE && loop->n_done != loop->n_saved)
      (void)save(loop);
  }
  if (result != FINE || is_over(loop))
    return result;
  result = learn(loop);
  if (result == FINE &&
      (loop->n_done % loop->save_every == 0 || loop->n_done == loop->n_steps))
    result = save(loop);
  return result;
}

static int run_all(rl_loop_t *loop) {
  int result = FINE;

  do {
    if (result == LOST)
      result = restore(loop);
    while (result == FINE && loop->n_done < loop->n_steps && !is_over(loop))
      result = turn(loop);
    /* After a signal, or for a final state without sampler weights. */
    if (result == FINE && (loop->n_done != loop->n_saved ||
                           (loop->n_done == loop->n_steps &&
                            !learn_ledger_is_ended(loop->ledger))))
      result = save(loop);
  } while (result == LOST);
  return result;
}

int rl_loop_run(rl_loop_t *loop, uint64_t first) {
  int result = rewind_to(loop, first);

  loop->reward = NAN;
  if (result == FINE) {
    loop->play.ask->ends_itself = 1;
    result = run_all(loop);
    delete_sampler(loop);
    end_deletion(loop);
    loop->play.ask->ends_itself = 0;
  }
  return result;
}

void rl_loop_free(rl_loop_t *loop) {
  tnk_promise_unref(loop->deleting);
  free(loop->sampler);
  rl_batch_free(&loop->batch);
  rl_play_close(&loop->play);
}
