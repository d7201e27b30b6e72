#ifndef TNK_TOOLS_TNK_ASK_ASK_H
#define TNK_TOOLS_TNK_ASK_ASK_H

#include <uv.h>

#include "tnk/service.h"
#include "tools/common/frame/cli.h"

/*
 * A service and its loop.
 *
 *     cli_ask_t ask;
 *     int status = cli_ask_open(&ask, cli, NULL);
 *
 *     if (status == CLI_EXIT_OK)
 *       status = work(&ask);
 *     return cli_ask_close(&ask, status);
 *
 * where work() does what it has to with cli_ask_wait() and ends with
 * cli_ask_failed() where that does not return TNK_OK.
 */
typedef struct {
  const cli_t *cli;
  uv_loop_t loop;
  tnk_service_t *service;
  tnk_promise_t *waits_for; /* what a signal cancels; or NULL */
  uv_signal_t signals[3];
  uv_timer_t timer;
  uv_timer_t patience; /* tells what is waited for */
  uint64_t waited_ms;  /* since the begin of the wait, when it was told last */
  int has_line;        /* that is to be taken away again */
  int signal_number;   /* 0: none has come */
  int is_late;         /* --timeout has passed */
  int has_loop;
} cli_ask_t;

/* Open it. `options` is NULL or TNK_SERVICE_OPTIONS_INIT with what is special;
 * the common options of the command are added. Returns the exit status, and has
 * told what is wrong. */
int cli_ask_open(cli_ask_t *ask, const cli_t *cli,
                 const tnk_service_options_t *options);
/* Run the loop until the promise has settled. Returns its status; TNK_ECANCELED
 * when the command is to end, also without having waited. */
int cli_ask_wait(cli_ask_t *ask, tnk_promise_t *promise);
/* Tell no more what is waited for, in this wait: something is shown now. */
void cli_ask_hush(cli_ask_t *ask);
/* Whether the command is to end: it is waited for nothing any more. */
int cli_ask_is_over(const cli_ask_t *ask);
/* How the library tells what is to be known meanwhile, for what is opened
 * beside the service. */
tnk_logger_t cli_ask_logger(cli_ask_t *ask);
/* Tell why a promise was rejected. Returns the exit status. */
int cli_ask_failed(const cli_ask_t *ask, const tnk_promise_t *promise);
/* The same with a hint of the command's own; NULL for the usual one. */
int cli_ask_failed_with_hint(const cli_ask_t *ask, const tnk_promise_t *promise,
                             const char *hint);
/* Report why the service made nothing of a base model. If the service lists its
 * models without this one, the status is CLI_EXIT_NOT_FOUND and the hint says
 * how to list them. */
int cli_ask_model_failed(cli_ask_t *ask, const tnk_promise_t *promise,
                         const char *model);
/* Do all of it for one promise, which `begin` makes and `show` prints,
 * returning an exit status. */
int cli_ask_once(cli_t *cli,
                 tnk_promise_t *(*begin)(tnk_service_t *service,
                                         const cli_t *cli),
                 int (*show)(const cli_t *cli, const tnk_promise_t *promise));
/* Close everything. Returns the status, or that of the signal which came. */
int cli_ask_close(cli_ask_t *ask, int status);

#endif
