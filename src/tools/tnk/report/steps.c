/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report_steps_init(report_steps_t *steps, const report_run_t *run) {
  steps->run = run;
  steps->last_step = -1;
  for (size_t i = 0; i < REPORT_MAX_SERIES; i++)
    steps->newest[i] = -1;
}

/* A program may also write an evaluation of an earlier step later, in a line of
 * its own; its metrics do not go back. */
static int goes_back(report_steps_t *steps, const json_t *line, int64_t step) {
  const report_run_t *run = steps->run;
  int does = 0;

  for (size_t i = 0; i < run->n_series; i++)
    if (json_object_get(line, run->series[i].key) != NULL) {
      does |= steps->newest[i] >= step;
      steps->newest[i] = step;
    }
  return does;
}

int report_steps_next(report_steps_t *steps, const json_t *line, int64_t *step,
                      int *is_back) {
  if (!report_run_step(steps->last_step, line, step))
    return 0;
  if (*step > steps->last_step)
    steps->last_step = *step;
  *is_back = goes_back(steps, line, *step);
  return 1;
}

double report_steps_time(const report_data_t *data, int64_t step) {
  const char *began = report_config_find(&data->config, "began_s");
  int64_t from_s = began != NULL ? strtoll(began, NULL, 10) : 0;
  int64_t from = 0;

  for (size_t i = 0; i < data->saves.n; i++) {
    const report_save_t *save = &data->saves.saves[i];

    if (save->time_s == 0 || save->step < 0)
      continue;
    if (step <= save->step && from_s > 0 && save->step > from)
      return (double)from_s + (double)(save->time_s - from_s) *
                                  (double)(step - from) /
                                  (double)(save->step - from);
    from = save->step;
    from_s = save->time_s;
  }
  return (double)from_s;
}

char *report_steps_id(const report_data_t *data) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const char *began = report_config_find(&data->config, "began_s");
  const size_t n =
      strlen(data->run.name) + (began != NULL ? strlen(began) : 0) + 8;
  char *id = malloc(n);

  if (id == NULL)
    return NULL;
  (void)snprintf(id, n, "tnk-%s%s%s", data->run.name, began != NULL ? "-" : "",
                 began != NULL ? began : "");
  for (char *c = id; *(c += strspn(c, allowed)) != '\0';)
    *c = '_';
  return id;
}
