/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/tracker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "tnk/error.h"

void report_tracker_init(report_tracker_t *tracker, const cli_t *cli,
                         const report_data_t *data, report_target_t target) {
  *tracker = (report_tracker_t){.cli = cli, .data = data, .target = target};
  report_steps_init(&tracker->steps);
}

static void drop_rows(report_tracker_t *tracker) {
  for (size_t i = 0; i < tracker->n_rows; i++)
    json_decref(tracker->rows[i].line);
  tracker->n_rows = tracker->n_values = 0;
}

static void restart(report_tracker_t *tracker) {
  drop_rows(tracker);
  report_steps_free(&tracker->steps);
  tracker->place = (report_place_t){0};
  tracker->is_begun = tracker->is_settled = tracker->is_live = 0;
  tracker->ended = REPORT_RUNNING;
}

void report_tracker_free(report_tracker_t *tracker) {
  restart(tracker);
  if (tracker->target.target != NULL)
    tracker->target.class_->free(tracker->target.target);
  tracker->target.target = NULL;
}

/* ---- Rows ---- */

static double time_of(const report_tracker_t *tracker, int64_t step) {
  uv_timeval64_t now = {0};

  if (!tracker->is_live || uv_gettimeofday(&now) != 0)
    return report_steps_time(tracker->data, step);
  return (double)now.tv_sec + (double)now.tv_usec / 1e6;
}

static int write_rows(report_tracker_t *tracker) {
  const report_target_t *to = &tracker->target;
  int status = CLI_EXIT_OK;

  if (tracker->n_rows > 0)
    status = to->class_->write(to->target, tracker->rows, tracker->n_rows);
  if (status == CLI_EXIT_OK)
    drop_rows(tracker);
  return status;
}

static int on_line(const json_t *line, void *user) {
  report_tracker_t *tracker = user;
  report_row_t *row = &tracker->rows[tracker->n_rows];
  const int err =
      report_steps_next(&tracker->steps, line, &row->step, &row->is_back);

  if (err != TNK_OK)
    return err;
  row->line = json_incref((json_t *)line);
  row->time_s = time_of(tracker, row->step);
  tracker->n_rows++;
  tracker->n_values += json_object_size(line);
  if (tracker->n_rows < REPORT_MAX_ROWS &&
      tracker->n_values < REPORT_MAX_VALUES)
    return TNK_OK;
  tracker->status = write_rows(tracker);
  return tracker->status == CLI_EXIT_OK ? TNK_OK : TNK_ECANCELED;
}

/* ---- A pass ---- */

static int failed(const report_tracker_t *tracker, int err) {
  return err == TNK_ENOMEM
             ? cli_fail(tracker->cli, CLI_EXIT_FAILED, "out of memory")
             : cli_fail(tracker->cli, CLI_EXIT_FILE, "%s: %s",
                        tracker->data->run.metrics, strerror(errno));
}

static int write_lines(report_tracker_t *tracker) {
  const char *path = tracker->data->run.metrics;
  int status = write_rows(tracker);
  int err;

  if (status != CLI_EXIT_OK)
    return status;
  tracker->status = CLI_EXIT_OK;
  err = report_lines_continue(path, &tracker->place, on_line, tracker);
  if (tracker->status != CLI_EXIT_OK)
    return tracker->status;
  return err == TNK_OK ? write_rows(tracker) : failed(tracker, err);
}

static int write_all(report_tracker_t *tracker, report_moment_t moment) {
  const report_target_t *to = &tracker->target;
  int status = CLI_EXIT_OK;

  if (!tracker->is_begun)
    status = to->class_->begin(to->target, tracker->data);
  tracker->is_begun = status == CLI_EXIT_OK;
  if (status == CLI_EXIT_OK)
    status = write_lines(tracker);
  if (status == CLI_EXIT_OK && moment != tracker->ended) {
    status = to->class_->end(to->target, moment, tracker->steps.last_step);
    if (status == CLI_EXIT_OK)
      tracker->ended = moment;
  }
  if (status == CLI_EXIT_OK && !tracker->is_settled) {
    status = to->class_->settle(to->target);
    tracker->is_settled = status == CLI_EXIT_OK;
  }
  return to->class_->rest(to->target, status);
}

int report_tracker_write(report_tracker_t *tracker, report_moment_t moment) {
  int is_same;
  int status;

  if (tracker->target.target == NULL)
    return failed(tracker, TNK_ENOMEM);
  if (report_lines_check(tracker->data->run.metrics, &tracker->place,
                         &is_same) != TNK_OK) {
    if (errno != ENOENT || tracker->is_begun)
      return failed(tracker, TNK_EFILE);
    tracker->is_live = 1;
    return CLI_EXIT_OK;
  }
  if (!is_same)
    restart(tracker);
  status = write_all(tracker, moment);
  tracker->is_live |= status == CLI_EXIT_OK;
  return status;
}
