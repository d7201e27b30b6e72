/* SPDX-License-Identifier: MIT */
/*
 * The loop of reinforcement learning. A step gives the weights to the gateway,
 * runs its environments with them, and trains on what they have sampled. So all
 * samples of a step come from the weights that it trains. With --max-off-policy
 * environments run during the whole step too, see overlap.h.
 *
 * The metrics of a step are on the disk before the service has a state with it,
 * and a run that resumes from that state has each step exactly once.
 */
#include "tools/tnk/rl/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/train.h"
#include "tools/tnk/learn/drift.h"
#include "tools/tnk/learn/model.h"

/* The outcome of a part of the loop. */
enum {
  FINE = 0,
  LOST = LEARN_LOST,
  BROKE = LEARN_BROKE
  /* Other values are exit statuses of reported errors. */
};

static const cli_t *cli_of(const rl_loop_t *loop) {
  return loop->play.ask->cli;
}

static int must_end(const rl_loop_t *loop) {
  return cli_ask_is_over(loop->play.ask) || loop->is_broke;
}

static int await(const rl_loop_t *loop, tnk_promise_t *promise) {
  return learn_await(loop->play.ask, promise);
}

static int file_failed(const rl_loop_t *loop, int err) {
  return cli_fail(cli_of(loop), CLI_EXIT_FILE, "%s: %s", loop->metrics,
                  err == TNK_ENOMEM ? "out of memory" : strerror(errno));
}

/* ---- Weights for the gateway ---- */

/* Let the gateway sample from the weights of `n_steps` steps. */
static int give_weights(rl_loop_t *loop, uint64_t n_steps) {
  char name[64];
  int result;

  if (loop->overlaps && loop->n_given == n_steps)
    return FINE;
  snprintf(name, sizeof(name), "rl-%" PRIu64 "-%" PRIu64, loop->n_done,
           loop->overlaps ? loop->weights.n_given
                          : loop->play.n_plays + loop->eval.n_plays);
  loop->n_given = UINT64_MAX;
  result = rl_weights_give(&loop->weights, loop->model, name);
  if (result == FINE) {
    loop->n_given = n_steps;
    if (loop->overlaps)
      rl_overlap_switched(&loop->overlap, loop->weights.version, n_steps);
  }
  return result;
}

/* ---- A step ---- */

static size_t put_staleness(tnk_number_t *out, const rl_overlap_t *overlap) {
  const rl_age_t *age = &overlap->age;

  out[0] = (tnk_number_t){"stale_groups", (double)overlap->n_stale};
  out[1] = (tnk_number_t){"staleness/mean",
                          (double)age->sum / (double)(age->n > 0 ? age->n : 1)};
  out[2] = (tnk_number_t){"staleness/max", (double)age->max};
  return 3;
}

static int write_metrics(const rl_loop_t *loop, const tnk_promise_t *pass) {
  const rl_batch_t *batch = &loop->batch;
  const size_t *counts = loop->play.counts;
  tnk_number_t numbers[16 + LEARN_N_DRIFT] = {
      {"train/loss",
       tnk_pass_loss_sum(tnk_promise_pass(pass)) / batch->n_sampled},
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

  if (loop->overlaps)
    n += put_staleness(numbers + n, &loop->overlap);
  n += learn_drift(numbers + n, pass, batch->data, batch->n);
  if (!isnan(loop->eval_reward)) {
    numbers[n++] = (tnk_number_t){"eval/reward", loop->eval_reward};
    numbers[n++] = (tnk_number_t){"eval/failed", (double)loop->eval.n_failed};
  }
  err =
      tnk_numbers_append(loop->metrics, (int64_t)loop->n_done + 1, numbers, n);
  return err == TNK_OK ? FINE : file_failed(loop, err);
}

static void show(const rl_loop_t *loop) {
  const cli_t *cli = cli_of(loop);
  char eval[48] = "", stale[48] = "";

  if (cli->quiet)
    return;
  if (loop->overlaps)
    snprintf(stale, sizeof(stale),
             cli->json ? ",\"stale_groups\":%" PRIu64
                       : "  groups left out %" PRIu64,
             loop->overlap.n_stale);
  if (!isnan(loop->eval_reward))
    snprintf(eval, sizeof(eval),
             cli->json ? ",\"eval_reward\":%.17g" : "  evaluation %.4f",
             loop->eval_reward);
  if (cli->json)
    fprintf(stderr,
            "{\"progress\":{\"label\":\"rl\",\"unit\":\"steps\",\"done\":"
            "%" PRIu64 ",\"total\":%" PRIu64 ",\"reward\":%.17g,"
            "\"failed\":%zu%s%s}}\n",
            loop->n_done, loop->n_steps, loop->reward, loop->play.n_failed,
            stale, eval);
  else
    cli_note(cli,
             "step %" PRIu64 "/%" PRIu64 "  reward %.4f%s  failed %zu  "
             "groups with an advantage %zu/%zu%s",
             loop->n_done, loop->n_steps, loop->reward, eval,
             loop->play.n_failed, loop->batch.n_useful, loop->play.n_groups,
             stale);
}

/* ---- Saves ---- */

static int sync_metrics(const rl_loop_t *loop) {
  tnk_promise_t *synced =
      tnk_numbers_sync(loop->play.ask->service, loop->metrics);
  const int result = await(loop, synced);

  tnk_promise_unref(synced);
  return result;
}

static int save(rl_loop_t *loop) {
  const tnk_choice_t is_last = loop->n_done == loop->n_steps ? TNK_YES : TNK_NO;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  tnk_promise_t *saved;
  int result = sync_metrics(loop);

  if (result != FINE)
    return result;
  how.is_final = is_last;
  how.with_sampler = is_last;
  saved = tnk_ledger_save(loop->ledger, loop->model, &how);
  result = await(loop, saved);
  tnk_promise_unref(saved);
  if (result == LOST)
    loop->is_in_doubt = 1;
  if (result == FINE) {
    loop->n_saved = loop->n_done;
    loop->saved_tokens = learn_budget_used(loop->play.ask).tokens;
  }
  return result;
}

/* ---- Training ---- */

/* Returns whether the step after `n_done` steps is evaluated. */
static int is_evaluated(const rl_loop_t *loop) {
  const uint64_t number = loop->n_done + 1;

  return loop->eval.command != NULL &&
         (number == loop->n_steps ||
          (loop->eval_every > 0 && number % loop->eval_every == 0));
}

/* Run the second environment with the new weights. The step is complete without
 * an evaluation that a signal or a limit has stopped. */
static int evaluate(rl_loop_t *loop) {
  int result = give_weights(loop, loop->n_done + 1);

  if (result == FINE && !must_end(loop))
    result = rl_play_step(&loop->eval, loop->n_done + 1);
  if (result == FINE && !must_end(loop))
    loop->eval_reward = rl_play_reward(&loop->eval);
  return result;
}

static int learn(rl_loop_t *loop) {
  rl_batch_t *batch = &loop->batch;
  const int is_due = is_evaluated(loop);
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  const tnk_optim_t optim = learn_optim(loop->optimizer, loop->rate);
  tnk_promise_t *both[2];
  tnk_promise_t *done;
  int checked = FINE;
  int result;

  if (rl_batch_make(batch, &loop->play, loop->advantages) != TNK_OK)
    return cli_fail(cli_of(loop), CLI_EXIT_FAILED, "out of memory");
  loop->eval_reward = NAN;
  learn_loss_set(loop->loss, &options);
  both[0] = tnk_training_forward_backward(loop->model, batch->data, batch->n,
                                          &options);
  both[1] = tnk_training_optim_step(loop->model, &optim);
  done = tnk_all(both, 2);
  result = learn_await_limited(loop->play.ask, done);
  if (result == FINE && is_due)
    checked = evaluate(loop);
  if (result == FINE)
    result = checked == LOST ? LOST
                             : write_metrics(loop, tnk_promise_child(done, 0));
  tnk_promise_unref(done);
  if (result != FINE)
    return result;
  loop->n_done++;
  loop->reward = batch->reward;
  show(loop);
  if (is_due && isnan(loop->eval_reward))
    cli_warn(cli_of(loop), "step %" PRIu64 " has no evaluation: it %s",
             loop->n_done, checked == FINE ? "was stopped" : "failed");
  /* Too many have failed, but the step is complete. */
  if (checked != FINE)
    (void)save(loop);
  return checked;
}

/* ---- A lost model ---- */

static int rewind_to(rl_loop_t *loop, uint64_t n_steps) {
  const int err = tnk_numbers_rewind(loop->metrics, n_steps);

  loop->n_done = loop->n_saved = n_steps;
  loop->n_given = UINT64_MAX;
  if (loop->overlaps)
    rl_overlap_rewind(&loop->overlap, n_steps);
  return err == TNK_OK ? FINE : file_failed(loop, err);
}

/* Await the model that the library restores. */
static int restore(rl_loop_t *loop) {
  const uint64_t n_saved = loop->n_saved;
  tnk_promise_t *ready = tnk_training_ready(loop->model);
  uint64_t n_steps = 0;
  int result = FINE;

  if (cli_ask_wait(loop->play.ask, ready) != TNK_OK)
    result = cli_ask_failed(loop->play.ask, ready);
  else
    n_steps = tnk_promise_saved(ready)->n_steps;
  tnk_promise_unref(ready);
  if (result == FINE && loop->is_in_doubt)
    result = learn_model_settle(&loop->model, loop->play.ask, loop->ledger,
                                loop->run, loop->n_done, &n_steps);
  if (result == FINE) {
    loop->is_in_doubt = 0;
    result = rewind_to(loop, n_steps);
  }
  /* Only the sampler was lost, and the model has steps that are not saved. */
  if (loop->n_saved > n_saved)
    loop->n_saved = n_saved;
  if (result == FINE)
    cli_note(cli_of(loop), "the model was restored after step %" PRIu64,
             loop->n_done);
  return result;
}

/* ---- Limits ---- */

/* The use of the next step is unknown, because the environments decide. It is
 * not begun if the largest one would exceed a limit. The service's budget holds
 * the limit in any case. */
static int is_affordable(rl_loop_t *loop) {
  const learn_used_t used = learn_budget_used(loop->play.ask);

  if (!loop->is_broke && !learn_budget_has(&loop->budget, &used, &loop->most))
    loop->is_broke = LEARN_NEXT_EXCEEDS;
  return !loop->is_broke;
}

static void note_use(rl_loop_t *loop, const learn_used_t *before) {
  const learn_used_t after = learn_budget_used(loop->play.ask);

  if (after.tokens - before->tokens > loop->most.tokens)
    loop->most.tokens = after.tokens - before->tokens;
  if (after.usd - before->usd > loop->most.usd)
    loop->most.usd = after.usd - before->usd;
}

/* Returns whether a step that was not completed has used tokens. A save writes
 * them to the ledger, so that the next process counts them. */
static int is_unknown(const rl_loop_t *loop) {
  return loop->is_broke &&
         learn_budget_used(loop->play.ask).tokens != loop->saved_tokens;
}

/* ---- The loop ---- */

/* Run the environments of a step. */
static int play(rl_loop_t *loop) {
  int result = give_weights(loop, loop->n_done);

  if (result != FINE || must_end(loop))
    return result;
  result = loop->overlaps ? rl_overlap_gather(&loop->overlap)
                          : rl_play_step(&loop->play, loop->n_done + 1);
  /* Too many have failed, but the service has not: keep the steps before. */
  if (result != FINE && loop->n_done != loop->n_saved)
    (void)save(loop);
  return result;
}

static int train(rl_loop_t *loop) {
  const int result = learn(loop);

  if (loop->overlaps && result == FINE)
    rl_overlap_trained(&loop->overlap);
  else if (loop->overlaps)
    rl_overlap_put_back(&loop->overlap);
  return result;
}

/* Environments that run need the new weights before the save, which may take
 * long. */
static int give_early(rl_loop_t *loop) {
  return loop->max_age > 0 && loop->n_done < loop->n_steps && !must_end(loop)
             ? give_weights(loop, loop->n_done)
             : FINE;
}

static int turn(rl_loop_t *loop) {
  const learn_used_t before = learn_budget_used(loop->play.ask);
  int result = play(loop), given = FINE;

  if (result != FINE || must_end(loop))
    return result;
  result = train(loop);
  if (result == FINE)
    given = give_early(loop);
  note_use(loop, &before);
  if (result == FINE && given != LOST &&
      (loop->n_done % loop->save_every == 0 || loop->n_done == loop->n_steps))
    result = save(loop);
  return result == FINE ? given : result;
}

static int run_all(rl_loop_t *loop) {
  int result = FINE;

  do {
    if (result == LOST)
      result = restore(loop);
    while (result == FINE && loop->n_done < loop->n_steps && !must_end(loop) &&
           is_affordable(loop))
      result = turn(loop);
    /* The pass of a step was refused; its weights are those before it. */
    if (result == BROKE)
      result = FINE;
    if (loop->overlaps && result != LOST)
      rl_overlap_stop(&loop->overlap);
    /* After a signal or a limit, or for a final state without sampler
     * weights. */
    if (result == FINE && (loop->n_done != loop->n_saved || is_unknown(loop) ||
                           (loop->n_done == loop->n_steps &&
                            !learn_ledger_is_ended(loop->ledger))))
      result = save(loop);
  } while (result == LOST);
  return result;
}

int rl_loop_open(rl_loop_t *loop, tnk_gateway_t *gateway) {
  int status;

  loop->play.gateway = loop->eval.gateway = gateway;
  loop->overlaps = loop->max_age > 0 || loop->serves;
  loop->weights = (rl_weights_t){.ask = loop->play.ask,
                                 .gateway = gateway,
                                 .budget = &loop->budget,
                                 .n_before = (size_t)loop->max_age};
  loop->overlap = (rl_overlap_t){.play = &loop->play,
                                 .eval = &loop->eval,
                                 .max_age = loop->max_age,
                                 .n_steps = loop->n_steps,
                                 .serves = loop->serves};
  status = rl_weights_open(&loop->weights);
  if (status == CLI_EXIT_OK)
    status = loop->overlaps ? rl_overlap_open(&loop->overlap)
                            : rl_play_open(&loop->play);
  if (status == CLI_EXIT_OK && loop->eval.command != NULL)
    status = rl_play_open(&loop->eval);
  if (loop->overlaps && !loop->serves)
    loop->eval.n_others = &loop->overlap.n_running;
  return status;
}

int rl_loop_run(rl_loop_t *loop, uint64_t first) {
  int result = rewind_to(loop, first);

  loop->reward = loop->eval_reward = NAN;
  loop->play.is_broke = loop->eval.is_broke = &loop->is_broke;
  loop->saved_tokens = learn_budget_used(loop->play.ask).tokens;
  if (result == FINE) {
    loop->play.ask->ends_itself = 1;
    result = run_all(loop);
    rl_weights_end(&loop->weights);
    loop->play.ask->ends_itself = 0;
  }
  return result;
}

void rl_loop_free(rl_loop_t *loop) {
  rl_weights_free(&loop->weights);
  rl_overlap_close(&loop->overlap);
  rl_batch_free(&loop->batch);
  rl_play_close(&loop->play);
  rl_play_close(&loop->eval);
}

void rl_loop_observe(const tnk_event_t *event, void *user) {
  rl_loop_t *loop = user;
  /* NULL for events before the loop has its members. */
  cli_ask_t *ask = loop->play.ask;

  if (ask != NULL && ask->cli->verbose)
    cli_ask_event(event, ask);
  if (event->phase == TNK_PHASE_FAILED && event->code == TNK_EBUDGET)
    loop->is_broke = LEARN_REFUSED;
}
