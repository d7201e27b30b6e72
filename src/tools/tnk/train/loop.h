/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_LOOP_H
#define TNK_TOOLS_TNK_TRAIN_LOOP_H

#include "tnk/train.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/train/data.h"
#include "tools/tnk/train/distill.h"
#include "tools/tnk/train/folder.h"
#include "tools/tnk/train/pass.h"
#include "tools/tnk/train/prompts.h"
#include "tools/tnk/train/reference.h"
#include "tools/tnk/learn/budget.h"
#include "tools/tnk/train/show.h"
#include "tools/tnk/train/use.h"

enum { TRAIN_IN_FLIGHT = 8 };

/* A step whose results have not arrived. */
typedef struct {
  tnk_promise_t *done;    /* the pass and the update */
  tnk_promise_t *eval;    /* or NULL */
  tnk_promise_t *weights; /* for its samples; or NULL */
  train_pass_t *pass;
  train_step_t step;
} train_flight_t;

/* A save that was called. */
typedef struct {
  tnk_promise_t *promise; /* NULL: it has ended */
  uint64_t n_steps;
} train_save_t;

/* A run. The caller sets everything up to `show`. */
typedef struct {
  cli_ask_t *ask;
  tnk_ledger_t *ledger;
  tnk_training_t *model;
  const train_data_t *data;
  const tnk_plan_t *plan;
  const tnk_schedule_t *schedule;
  train_reference_t reference; /* of DPO */
  train_distill_t *distill;    /* or NULL */
  const char *metrics;
  const char *run; /* folder */
  train_prompts_t *prompts;
  learn_budget_t budget;
  tnk_price_t price;   /* of the model; NaN: unknown */
  tnk_price_t teacher; /* and of the teacher */
  uint64_t save_every;
  uint64_t n_ahead; /* of train_loop_ahead() */
  uint64_t eval_every;
  uint64_t sample_every;
  train_show_t show;
  train_times_t times;

  int is_broke;      /* LEARN_AFFORDABLE, or why a limit ends the run */
  uint64_t n_done;   /* steps whose results are in the metrics */
  uint64_t n_begun;  /* steps that were called */
  uint64_t n_flying; /* tokens of the steps in flight */
  uint64_t n_saved;  /* steps of the last state that was called */
  uint64_t n_saves;  /* saves of this model that this process has called */
  train_flight_t flight[TRAIN_IN_FLIGHT]; /* by the step's number */
  train_save_t saves[TRAIN_IN_FLIGHT];    /* the last n_ahead, by number */
  int is_in_doubt; /* the result of a save was lost with the model */
  /* Of writing the metrics to the disk. NULL: they are not written. */
  tnk_promise_t *syncing;
  uint64_t n_syncing; /* steps whose metrics it writes */
  uint64_t n_synced;  /* steps whose metrics are on the disk */
  double loss;        /* of the last step; or NaN */
  double eval;
} train_loop_t;

/* The number of saves that may be under way at once, so that the steps in
 * flight do not wait for saves. The ledger must keep one more state. */
uint64_t train_loop_ahead(uint64_t save_every, int is_distilling);
/*
 * Train from step `first` to the end. A signal, the --timeout or a limit ends
 * the loop after the steps in flight, and the state is saved. Returns the exit
 * status; errors have been reported.
 */
int train_loop_run(train_loop_t *loop, uint64_t first);
/* Free the memory, after the service has been closed: until then it may call
 * the loss of a pass. */
void train_loop_free(train_loop_t *loop);

#endif
