/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_TRACKER_H
#define TNK_TOOLS_TNK_REPORT_TRACKER_H

#include "tools/tnk/report/lines.h"
#include "tools/tnk/report/page.h"
#include "tools/tnk/report/steps.h"

/* A line of the metrics of a run. */
typedef struct {
  json_t *line;
  int64_t step;
  double time_s; /* seconds since 1970; 0: unknown */
  int is_back;   /* the steps from this one on are repeated */
} report_row_t;

/* What is known about the run when the writing ends. */
typedef enum {
  REPORT_RUNNING = 0, /* the writing does not end */
  REPORT_LEFT,        /* the run may go on */
  REPORT_KILLED,      /* the process of the run has ended before its end */
  REPORT_FINISHED
} report_moment_t;

/*
 * A program that shows metrics, to which one run is written. All functions
 * report errors and return the exit status. If a function fails, it may be
 * called again with the same arguments, and then nothing is written twice.
 */
typedef struct {
  /* Begin to write a run. Steps that were written before are replaced. */
  int (*begin)(void *target, const report_data_t *data);
  int (*write)(void *target, const report_row_t *rows, size_t n);
  /* Called after the end. `last_step` is -1 without a step. */
  int (*end)(void *target, report_moment_t moment, int64_t last_step);
  /* All lines of the metrics are written. The steps of earlier programs may be
   * dropped now. */
  int (*settle)(void *target);
  /* Close files and connections until the next call. Returns `status` or an
   * error. */
  int (*rest)(void *target, int status);
  void (*free)(void *target);
} report_target_class_t;

typedef struct {
  const report_target_class_t *class_;
  void *target; /* NULL: no memory */
} report_target_t;

/* Most rows of a write, and about as many values. */
enum { REPORT_MAX_ROWS = 256, REPORT_MAX_VALUES = 1000 };

/* Writes what is new in the metrics of a run. */
typedef struct {
  const cli_t *cli;
  const report_data_t *data;
  report_target_t target;
  report_place_t place;
  report_steps_t steps;
  report_row_t rows[REPORT_MAX_ROWS]; /* are not written yet */
  size_t n_rows;
  size_t n_values;
  int is_begun;
  int is_settled;        /* the lines that were found first are written */
  int is_live;           /* the next lines have just been made */
  report_moment_t ended; /* of the last end, or REPORT_RUNNING */
  int status;            /* of a failure while lines are read */
} report_tracker_t;

/* Begin without a step. Free the tracker in any case. */
void report_tracker_init(report_tracker_t *tracker, const cli_t *cli,
                         const report_data_t *data, report_target_t target);
void report_tracker_free(report_tracker_t *tracker);
/*
 * Write the lines that are new. A run that was cut back is begun again, so that
 * each step is written once. A run without metrics is not begun.
 *
 * Returns the exit status; errors have been reported. After an error, call it
 * again with the same moment or a later one.
 */
int report_tracker_write(report_tracker_t *tracker, report_moment_t moment);

#endif
