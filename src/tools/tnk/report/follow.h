/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_FOLLOW_H
#define TNK_TOOLS_TNK_REPORT_FOLLOW_H

#include "tools/tnk/ask/ask.h"
#include "tools/tnk/ask/input.h"
#include "tools/tnk/report/tracker.h"

/* The work of --follow. */
typedef struct {
  /* Write what is new. *is_over: all runs have ended, and the status of the
   * last write is the status of the command. Returns the exit status. Errors
   * are reported to report_follow_t::held_cli. */
  int (*write)(void *user, report_moment_t moment, int *is_over);
  /* Returns a number that changes with the files. */
  uint64_t (*look)(void *user);
  void *user;
  const char *name;  /* of what is written, for messages */
  int watches_input; /* the end of the standard input ends the work */
} report_work_t;

/* Repeats the work until the runs have ended. Failed writes are repeated. */
typedef struct {
  const cli_t *cli;
  cli_t held_cli; /* holds errors back */
  cli_held_t held;
  const report_work_t *work;
  cli_ask_t ask;
  cli_input_t input;
  uv_timer_t timer;
  int is_woken;        /* by the timer */
  int has_ended_input; /* the parent process is gone */
  int is_failing;      /* the last write has failed */
  uint64_t pause_ms;   /* before the next try */
  uint64_t until_ms;   /* when tries end, on the loop's clock; 0: never */
} report_follow_t;

/* Prepare it, so that the work can use held_cli. */
void report_follow_init(report_follow_t *follow, const cli_t *cli);
/* Returns the exit status of the command. */
int report_follow_run(report_follow_t *follow, const report_work_t *work);

#endif
