/* SPDX-License-Identifier: MIT */
#include "tools/tnk/serve/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "gateway/record/follow.h"
#include "gateway/record/where.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/tnk/ask/ask.h"

enum { EVERY_MS = 100 };

/* Nothing of libuv, because a signal must have its effect too while a write to
 * a slow reader blocks. */
static volatile sig_atomic_t has_signal;

static void on_signal(int number) {
  (void)number;
  has_signal = 1;
}

/* A line that is being written is completed after the first signal. The second
 * one kills the process. A signal that the parent process ignores stays
 * ignored. */
static void catch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction now, ours;

  memset(&ours, 0, sizeof(ours));
  ours.sa_handler = on_signal;
  ours.sa_flags = (int)(SA_RESTART | SA_RESETHAND);
  sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
      (void)sigaction(numbers[i], &ours, NULL);
}

/* Returns whether the reader of the output has closed it. */
static int is_pipe_closed(void) {
  struct pollfd out = {.fd = STDOUT_FILENO};

  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLNVAL)) != 0;
}

typedef struct {
  const cli_t *cli;
  const cli_follow_t *what;
  uv_loop_t loop;
  uv_timer_t timer;
  cli_ask_t log; /* has no service */
  tnk__gw_record_t *record;
  int is_closed;
  int pipe_errno; /* of a failed write */
  char why[512];
} work_t;

/* Each line is written as a whole, also if the next one fails. */
static int put_line(void *user, const char *line, size_t n) {
  work_t *work = user;

  if (has_signal)
    return TNK_ECANCELED;
  if (fwrite(line, 1, n, stdout) == n && fflush(stdout) == 0)
    return TNK_OK;
  work->pipe_errno = errno;
  return TNK_EFILE;
}

static void on_timer(uv_timer_t *timer) {
  (void)timer;
}

static int failed(work_t *work, int err) {
  const char *what = tnk__gw_is_where(work->what->path) ? "the shared record"
                                                        : work->what->path;

  if (err == TNK_OK || err == TNK_ECANCELED)
    return CLI_EXIT_OK;
  if (work->pipe_errno == EPIPE)
    return CLI_EXIT_PIPE;
  if (work->pipe_errno != 0)
    return cli_fail(work->cli, CLI_EXIT_FILE, "standard output: %s",
                    strerror(work->pipe_errno));
  if (work->why[0] != '\0')
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s", work->why);
  return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", what, tnk_strerror(err));
}

static int follow(work_t *work) {
  const tnk__gw_follow_options_t how = {.only_rewarded =
                                            work->what->only_rewarded,
                                        .quiet_ms = work->what->quiet_ms};
  int err = TNK_OK;

  while (err == TNK_OK && !has_signal) {
    if (is_pipe_closed())
      return CLI_EXIT_PIPE;
    err = tnk__gw_record_more(work->record, work->what->path, work->why,
                              sizeof(work->why));
    if (err == TNK_OK)
      err = tnk__gw_follow(work->record, &how, uv_now(&work->loop), put_line,
                           work);
    if (err == TNK_OK)
      uv_run(&work->loop, UV_RUN_ONCE);
  }
  /* If an example could not be read, the file may not be the same any more. */
  if (err == TNK_EFILE && work->pipe_errno == 0 && work->why[0] == '\0')
    (void)tnk__gw_record_more(work->record, work->what->path, work->why,
                              sizeof(work->why));
  return failed(work, err);
}

static void on_closed(void *user) {
  ((work_t *)user)->is_closed = 1;
}

static int open_record(work_t *work) {
  const tnk_logger_t logger = cli_ask_logger(&work->log);
  const tnk__gw_record_options_t how = {.alloc = tnk__allocator_default(),
                                        .path = work->what->path,
                                        .follows = &work->loop,
                                        .max_turns = SIZE_MAX,
                                        .max_memory = SIZE_MAX,
                                        .ca_file = work->what->ca_file,
                                        .cert_file = work->what->cert_file,
                                        .key_file = work->what->key_file,
                                        .logger = &logger,
                                        .why = work->why,
                                        .n_why = sizeof(work->why)};
  int err = tnk__gw_record_open(&work->record, &how);

  return err == TNK_OK ? CLI_EXIT_OK : failed(work, err);
}

int cli_follow_run(const cli_t *cli, const cli_follow_t *what) {
  static work_t work;
  int status;

  work.cli = work.log.cli = cli;
  work.what = what;
  catch_signals();
  if (uv_loop_init(&work.loop) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "no event loop");
  uv_timer_init(&work.loop, &work.timer);
  uv_timer_start(&work.timer, on_timer, EVERY_MS, EVERY_MS);
  status = open_record(&work);
  if (status == CLI_EXIT_OK)
    status = follow(&work);
  if (work.record != NULL)
    tnk__gw_record_close(work.record, on_closed, &work);
  while (work.record != NULL && !work.is_closed)
    uv_run(&work.loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&work.timer, NULL);
  uv_run(&work.loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&work.loop);
  /* cli_main() asks why the output has failed. */
  if (status == CLI_EXIT_PIPE)
    errno = EPIPE;
  return status;
}
