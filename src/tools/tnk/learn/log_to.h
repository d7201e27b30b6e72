/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_LOG_TO_H
#define TNK_TOOLS_TNK_LEARN_LOG_TO_H

#include <uv.h>

#include "tools/common/frame/cli.h"

/* The option --log-to of a command that trains. */
#define LEARN_LOG_OPTION(target)                                               \
  {                                                                            \
    .name = "log-to", .value = "WHERE", .texts = &(target),                    \
    .help =                                                                    \
        "Show the steps while the run goes on, with a tnk report --follow "    \
        "of its own: tensorboard:DIR, trackio:FILE, mlflow:URL, or html "      \
        "for DIR/report.html of --run. A failure of it does not stop the "     \
        "run. May be repeated."                                                \
  }

/* The longest time to wait at the end of a run until all is written. */
enum { LEARN_LOG_WAIT_MS = 30000 };

typedef struct {
  const char *where;
  uv_process_t process;
  uv_pipe_t input; /* its end tells the process that the run has ended */
  int is_running;
  int is_killed; /* after LEARN_LOG_WAIT_MS */
  int64_t status;
  int number; /* of the signal that ended it; 0: none */
} learn_logger_t;

/* The processes that write what a run logs. They are on a loop of their own, so
 * nothing that they do can delay the run. */
typedef struct {
  const cli_t *cli;
  const char *run;
  uv_loop_t loop;
  uv_timer_t timer;
  learn_logger_t *loggers;
  size_t n;
  int has_loop;
} learn_log_t;

/* Returns the error in the values of the option, or NULL. */
const char *learn_log_check(const cli_texts_t *where);
/* Start a process for each of these places. The folder of the run exists.
 * Failures are reported, and the run goes on without the process. */
void learn_log_open(learn_log_t *log, const cli_t *cli,
                    const cli_texts_t *where, const char *run);
/* Wait until all is written, and report what failed. */
void learn_log_close(learn_log_t *log);

#endif
