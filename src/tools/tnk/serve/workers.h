/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_WORKERS_H
#define TNK_TOOLS_TNK_SERVE_WORKERS_H

#include "tools/common/frame/cli.h"

/*
 * Several processes that serve on one port, and a parent that starts them again
 * when they end. The parent serves nothing and opens nothing but the port.
 *
 * The first worker starts alone. If it cannot serve, the command ends with its
 * status, so an error is reported once. Later a worker that ends is started
 * again, at once or after a pause that doubles while it keeps ending.
 *
 * A worker ends when its `stop_fd` is readable. This is so when the parent asks
 * for it, and when the parent has died. Signals of the terminal reach the
 * parent alone. At a signal it waits until all workers have ended. A second one
 * kills them.
 */

typedef struct {
  int number;    /* from 1 */
  int port;      /* that all workers share */
  int stop_fd;   /* at its end when the worker must end */
  int ready_fd;  /* takes the URL when the worker serves */
  char label[8]; /* its number as text */
  char log_name[24];
} cli_worker_t;

typedef struct {
  int64_t n;
  const char *host; /* NULL: 127.0.0.1 */
  int64_t port;     /* 0: a free one */
  int64_t end_s;    /* how long the workers may need to end, then killed */
  int watches_stdin;
  /* Runs in a worker. Returns its exit status. */
  int (*run)(cli_t *cli, const cli_worker_t *worker);
} cli_workers_t;

enum { CLI_MAX_WORKERS = 256 };

/* Run the workers until a signal. Returns the exit status. */
int cli_workers_run(cli_t *cli, const cli_workers_t *how);
/* Tell the parent that the worker serves at this URL. */
void cli_worker_is_ready(const cli_worker_t *worker, const char *url);

#endif
