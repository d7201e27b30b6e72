/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_SHOW_H
#define TNK_TOOLS_TNK_TRAIN_SHOW_H

#include "tnk/ledger.h"
#include "tnk/train.h"
#include "tnk/usage.h"
#include "tools/tnk/train/data.h"
#include "tools/tnk/train/prompts.h"

enum { TRAIN_MAX_MORE = 12 };

/* The results of a step. */
typedef struct {
  uint64_t number; /* from 1 */
  double loss;     /* mean of the trained tokens, or of the pairs */
  double eval;     /* NaN: not evaluated */
  double rate;
  uint64_t n_tokens;
  /* Other metrics of the method. */
  tnk_number_t more[TRAIN_MAX_MORE];
  size_t n_more;
} train_step_t;

/* The phases of a run. */
typedef enum {
  TRAIN_STEPS = 0,
  TRAIN_EVALS,
  TRAIN_SAVES,
  TRAIN_SAMPLES,
  TRAIN_N_PHASES
} train_phase_t;

/* The duration of a run in this process, and the part of it in which the
 * process waited for a phase. Phases overlap at the service. */
typedef struct {
  double ms; /* 0: nothing was trained */
  double waited_ms[TRAIN_N_PHASES];
} train_times_t;

/* Progress on standard error: a line that is overwritten on a terminal, lines
 * elsewhere, JSON with --json, nothing with --quiet. */
typedef struct {
  const cli_t *cli;
  uint64_t n_steps;
  uint64_t first;    /* steps of earlier processes */
  uint64_t began_ms; /* 0: no step is shown yet */
  uint64_t n_tokens;
  int has_line;
} train_show_t;

void train_show_step(train_show_t *show, const train_step_t *step);
/* Remove the line. */
void train_show_end(train_show_t *show);

/* Print what a run would do. Returns the exit status. */
int train_show_plan(const cli_t *cli, const train_data_t *data,
                    const train_prompts_t *prompts, const tnk_plan_t *plan,
                    const tnk_schedule_t *schedule);
/* Print a note about the time of a run. */
void train_show_times(const cli_t *cli, const train_times_t *times);
/* Print the result of a run and how to use it. `loss` and `eval` are NaN if
 * this process did not compute them. Returns the exit status. */
int train_show_result(const cli_t *cli, const tnk_ledger_entry_t *entry,
                      const char *served, double loss, double eval,
                      const train_times_t *times);

#endif
