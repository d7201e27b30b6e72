/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_RUN_H
#define TNK_TOOLS_TNK_REPORT_RUN_H

#include "tools/common/frame/cli.h"
#include "tools/tnk/report/lines.h"
#include "tools/tnk/report/series.h"

/* The most metrics of a run. More of them are counted and left out. */
enum { REPORT_MAX_SERIES = 256 };

/* The subject of a metric, found from its name. */
typedef enum {
  REPORT_LOSS = 0,
  REPORT_EVAL,
  REPORT_RATE,
  REPORT_REWARD,
  REPORT_DRIFT, /* KL divergences and the like */
  REPORT_TOKENS,
  REPORT_COST,
  REPORT_TIME,
  REPORT_OTHER,
  REPORT_N_KINDS
} report_kind_t;

/* The metrics of a run, and the name by which it is shown. */
typedef struct {
  char *path;    /* as given */
  char *folder;  /* where the other files of the run are */
  char *metrics; /* path of the metrics */
  char *name;    /* the last part of the folder */
  report_series_t *series;
  size_t n_series;
  size_t n_left_out; /* values of metrics beyond REPORT_MAX_SERIES */
  int64_t last_step; /* the greatest one; -1: none */
  report_lines_t lines;
} report_run_t;

/* Find the folder of a run, or a file like its metrics.jsonl, which may not
 * exist yet in a folder. Returns and frees as below. */
int report_run_open(report_run_t *run, const cli_t *cli, const char *path);
/* Read metrics.jsonl in the folder of a run, or a file like it. Returns the
 * exit status; errors have been reported. Free the run in any case. */
int report_run_read(report_run_t *run, const cli_t *cli, const char *path);
void report_run_free(report_run_t *run);
/* The step of a line of metrics. A file may have none; then lines are counted
 * from `last`, the step of the line before, or -1. Returns 0 if its step is not
 * a step number. */
int report_run_step(int64_t last, const json_t *line, int64_t *step);
/* The path of a file in the run's folder. The caller frees it. NULL without
 * memory. */
char *report_run_file(const report_run_t *run, const char *name);
/* The metric of this name, or NULL. A metric without a finite value does not
 * count. */
const report_series_t *report_run_find(const report_run_t *run,
                                       const char *key);
/* Metric `nth` of a kind, from 0, or NULL. */
const report_series_t *report_run_kind(const report_run_t *run,
                                       report_kind_t kind, size_t nth);
report_kind_t report_kind(const char *key);

#endif
