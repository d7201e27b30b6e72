/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ASK_ASK_H
#define TNK_TOOLS_TNK_ASK_ASK_H
#include <uv.h>

#include "tnk/service.h"
#include "tools/common/frame/cli.h"

/*
 * A service with its loop, for one command. cli_ask_run() opens it, calls the
 * command's work(), and closes it.
 *
 * work() uses cli_ask_wait(). If that does not return TNK_OK, work() returns
 * cli_ask_failed().
 */
typedef struct cli_ask {
  const cli_t *cli;
  uv_loop_t loop;
  tnk_service_t *service;
  tnk_promise_t *waits_for; /* canceled by a signal; or NULL */
  uv_signal_t signals[3];
  uv_timer_t timer;
  uv_timer_t patience; /* shows the current step */
  uint64_t waited_ms;  /* time from the start of the wait to the last message */
  int has_line;        /* a line that must be removed */
  int signal_number;   /* 0: none */
  int is_late;         /* --timeout has expired */
  int has_loop;
  /* 1: a signal or the --timeout cancels nothing, because the command ends by
   * itself when cli_ask_is_over(). */
  int ends_itself;
  /* Called when the service is closed, to close what else is on the loop. Set
   * it between cli_ask_begin() and cli_ask_serve(). NULL: nothing. */
  void (*on_closed)(void *user);
  void *user;
  const char *log_name; /* begins the lines of the log; NULL: "tnk" */
} cli_ask_t;

/* Open the service. `options` is NULL or TNK_SERVICE_OPTIONS_INIT with changes;
 * the common options of the command are added. Returns the exit status; errors
 * have been reported. */
int cli_ask_open(cli_ask_t *ask, const cli_t *cli,
                 const tnk_service_options_t *options);
/* The two halves of it, for a command that needs the loop before the service.
 * After the first one cli_ask_close() must be called. */
int cli_ask_begin(cli_ask_t *ask, const cli_t *cli);
int cli_ask_serve(cli_ask_t *ask, const tnk_service_options_t *options);
/* Run the loop until the promise has settled. Returns its status, or
 * TNK_ECANCELED if the command must end, possibly without a wait. */
int cli_ask_wait(cli_ask_t *ask, tnk_promise_t *promise);
/* Run the loop while `is_needed` returns 1, at most for `max_ms`, for work that
 * has no promise. A signal or the --timeout ends it too. */
void cli_ask_while(cli_ask_t *ask, int (*is_needed)(const void *user),
                   const void *user, uint64_t max_ms);
/* Stop showing the current step for this wait, because other output follows. */
void cli_ask_hush(cli_ask_t *ask);
/* Returns whether the command must end and may not wait again. */
int cli_ask_is_over(const cli_ask_t *ask);
/* A tnk_observe_cb that shows requests, for --verbose. `user` is a cli_ask_t.
 * cli_ask_serve() sets it, unless the command has an observer of its own: that
 * one must call it. */
void cli_ask_event(const tnk_event_t *event, void *user);
/* The logger of the command, for other objects that it opens. */
tnk_logger_t cli_ask_logger(cli_ask_t *ask);
/* Report an error of the library, with a hint if there is one. `error` may be
 * NULL; then `err` and `message` describe the error. Returns the exit
 * status. */
int cli_failure(const cli_t *cli, int err, const char *message,
                const tnk_error_t *error);
/* Report why a promise was rejected. Returns the exit status. */
int cli_ask_failed(const cli_ask_t *ask, const tnk_promise_t *promise);
/* As above, with the command's own hint; NULL for the usual one. */
int cli_ask_failed_with_hint(const cli_ask_t *ask, const tnk_promise_t *promise,
                             const char *hint);
/* Report why the service made nothing of a base model. If the service lists its
 * models without this one, the status is CLI_EXIT_NOT_FOUND and the hint says
 * how to list them. */
int cli_ask_model_failed(cli_ask_t *ask, const tnk_promise_t *promise,
                         const char *model);
/* Run a whole command: `work` of its row. */
int cli_ask_run(cli_t *cli);
/* Run a whole command with one promise: `begin` and `show` of its row. */
int cli_ask_once(cli_t *cli);
/* Close everything. Returns the status, or the status of a received signal. */
int cli_ask_close(cli_ask_t *ask, int status);

#endif
