/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_STEPS_H
#define TNK_TOOLS_TNK_REPORT_STEPS_H

#include "tools/tnk/report/page.h"

/* The order of the steps of a run, for other programs that show its metrics. */
typedef struct {
  int64_t last_step; /* the greatest one; -1: none */
  json_t *newest;    /* last step of each metric; NULL: none */
} report_steps_t;

void report_steps_init(report_steps_t *steps);
void report_steps_free(report_steps_t *steps);
/* Take the next line of the metrics. *is_back: a metric goes back, because the
 * run was resumed from an earlier step, and the steps from this one on are
 * repeated. Returns TNK_OK, TNK_ENOMEM, or TNK_EPROTO if the step is not a step
 * number. */
int report_steps_next(report_steps_t *steps, const json_t *line, int64_t *step,
                      int *is_back);
/* Seconds since 1970. Metrics have no times, so this is between the times of
 * the checkpoints before and after the step. 0: unknown. */
double report_steps_time(const report_data_t *data, int64_t step);
/* The name under which other programs find the run again: "tnk-", the run's
 * name, and the time at which it began, because there may be another run of the
 * name. It has letters, digits, "-", "_" and ".". The caller frees it. NULL
 * without memory. */
char *report_steps_id(const report_data_t *data);

#endif
