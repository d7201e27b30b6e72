/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/follow.h"

#include <signal.h>

enum {
  EVERY_MS = 1000,      /* the interval at which changes are looked for */
  MAX_PAUSE_MS = 30000, /* between tries */
  LAST_MS = 10000,      /* tries after the end of the run */
  LAST_WRITE_S = 25     /* one of them */
};

void report_follow_init(report_follow_t *follow, const cli_t *cli) {
  *follow = (report_follow_t){.cli = cli, .held_cli = *cli};
  follow->held_cli.held = &follow->held;
}

/* ---- Waiting ---- */

static void on_input_end(void *user) {
  report_follow_t *follow = user;

  follow->has_ended_input = 1;
  cli_input_close(&follow->input);
}

static void on_timer(uv_timer_t *timer) {
  ((report_follow_t *)timer->data)->is_woken = 1;
}

/* Wait for this time, or until the work must end. */
static void wait_for(report_follow_t *follow, uint64_t ms) {
  const int was_ended = follow->has_ended_input;

  follow->is_woken = 0;
  uv_update_time(&follow->ask.loop);
  uv_timer_start(&follow->timer, on_timer, ms, 0);
  while (!follow->is_woken && follow->has_ended_input == was_ended &&
         !cli_ask_is_over(&follow->ask))
    uv_run(&follow->ask.loop, UV_RUN_ONCE);
  uv_timer_stop(&follow->timer);
}

/* What has happened meanwhile. */
static report_moment_t moment_of(report_follow_t *follow) {
  /* A loop without a timer does not look at signals. */
  uv_timer_start(&follow->timer, on_timer, EVERY_MS, 0);
  uv_run(&follow->ask.loop, UV_RUN_NOWAIT);
  uv_timer_stop(&follow->timer);
  if (cli_ask_is_over(&follow->ask))
    return REPORT_LEFT;
  return follow->has_ended_input ? REPORT_KILLED : REPORT_RUNNING;
}

static void wait_for_change(report_follow_t *follow, uint64_t seen) {
  const report_work_t *work = follow->work;

  while (moment_of(follow) == REPORT_RUNNING && work->look(work->user) == seen)
    wait_for(follow, EVERY_MS);
}

/* ---- Failures ---- */

/* Report an outage once. */
static void warn(report_follow_t *follow) {
  if (!follow->is_failing && !follow->cli->quiet)
    cli_warn(follow->cli, "%s: %s; it is tried again", follow->work->name,
             follow->held.message);
  follow->is_failing = 1;
}

static void set_deadline(report_follow_t *follow) {
  if (follow->until_ms == 0)
    follow->until_ms = uv_now(&follow->ask.loop) + LAST_MS;
  /* A server that does not answer must not delay the end. */
  follow->held_cli.timeout_s = LAST_WRITE_S;
}

/* Wait before the next try. Returns whether there is one. */
static int waits_after_failure(report_follow_t *follow, report_moment_t moment,
                               int is_over) {
  /* The command line is wrong, or a person waits. */
  if (follow->held.status == CLI_EXIT_USAGE || moment == REPORT_LEFT)
    return 0;
  /* A signal has ended the write. */
  if (moment == REPORT_RUNNING && moment_of(follow) != REPORT_RUNNING)
    return 1;
  uv_update_time(&follow->ask.loop);
  if (is_over || moment == REPORT_KILLED) {
    set_deadline(follow);
    follow->pause_ms = EVERY_MS;
    if (uv_now(&follow->ask.loop) + EVERY_MS > follow->until_ms)
      return 0;
  }
  warn(follow);
  wait_for(follow, follow->pause_ms);
  follow->pause_ms = follow->pause_ms * 2 < (uint64_t)MAX_PAUSE_MS
                         ? follow->pause_ms * 2
                         : (uint64_t)MAX_PAUSE_MS;
  return 1;
}

static void end_outage(report_follow_t *follow) {
  if (follow->is_failing)
    cli_note(follow->cli, "%s: it works again", follow->work->name);
  follow->is_failing = 0;
  follow->pause_ms = EVERY_MS;
}

/* ---- The work ---- */

static int repeat(report_follow_t *follow) {
  const report_work_t *work = follow->work;

  follow->pause_ms = EVERY_MS;
  for (;;) {
    const report_moment_t moment = moment_of(follow);
    /* Before the files are read, because they may change during that. */
    const uint64_t seen = work->look(work->user);
    int is_over = 0;

    if (moment == REPORT_KILLED)
      set_deadline(follow);
    if (work->write(work->user, moment, &is_over) == CLI_EXIT_OK) {
      end_outage(follow);
      if (is_over || moment != REPORT_RUNNING)
        return CLI_EXIT_OK;
      wait_for_change(follow, seen);
    } else if (!waits_after_failure(follow, moment, is_over)) {
      return cli_report_held(follow->cli, &follow->held);
    }
  }
}

static void watch_input(report_follow_t *follow) {
  /* A signal for the whole terminal or group must not keep the last steps of
   * the parent process from being written. */
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_IGN);
  (void)signal(SIGHUP, SIG_IGN);
  /* An input that cannot be waited for has ended. */
  follow->has_ended_input = 1;
}

int report_follow_run(report_follow_t *follow, const report_work_t *work) {
  int status;

  follow->work = work;
  if (work->watches_input)
    watch_input(follow);
  status = cli_ask_begin(&follow->ask, follow->cli);
  if (status == CLI_EXIT_OK) {
    uv_timer_init(&follow->ask.loop, &follow->timer);
    follow->timer.data = follow;
    if (work->watches_input &&
        cli_input_watch(&follow->input, &follow->ask.loop, on_input_end,
                        follow))
      follow->has_ended_input = 0;
    status = repeat(follow);
    cli_input_close(&follow->input);
    uv_close((uv_handle_t *)&follow->timer, NULL);
  }
  return cli_ask_close(&follow->ask, status);
}
