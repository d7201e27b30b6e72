/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"

void report_steps_init(report_steps_t *steps) {
  *steps = (report_steps_t){.last_step = -1};
}

void report_steps_free(report_steps_t *steps) {
  json_decref(steps->newest);
  report_steps_init(steps);
}

/* A program may also write an evaluation of an earlier step later, in a line of
 * its own; its metrics do not go back. */
static int note_metrics(report_steps_t *steps, const json_t *line, int64_t step,
                        int *is_back) {
  const char *key;
  json_t *value;
  int err = TNK_OK;

  json_object_foreach((json_t *)line, key, value) {
    const json_t *before = json_object_get(steps->newest, key);

    if (strcmp(key, "step") == 0 ||
        (!json_is_number(value) && !json_is_null(value)) ||
        (before == NULL &&
         json_object_size(steps->newest) >= REPORT_MAX_SERIES))
      continue;
    *is_back |= before != NULL && json_integer_value(before) >= step;
    if (json_object_set_new(steps->newest, key,
                            json_integer((json_int_t)step)) != 0)
      err = TNK_ENOMEM;
  }
  return err;
}

int report_steps_next(report_steps_t *steps, const json_t *line, int64_t *step,
                      int *is_back) {
  *is_back = 0;
  if (!report_run_step(steps->last_step, line, step))
    return TNK_EPROTO;
  if (*step > steps->last_step)
    steps->last_step = *step;
  if (steps->newest == NULL)
    steps->newest = json_object();
  return steps->newest != NULL ? note_metrics(steps, line, *step, is_back)
                               : TNK_ENOMEM;
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
