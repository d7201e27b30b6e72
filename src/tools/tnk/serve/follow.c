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
#include "gateway/store/where.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "tnk/error.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/serve/position.h"

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
  FILE *state; /* or NULL */
  tnk__gw_waiter_t waiter;
  int is_marking;
  int marked; /* result of the wait for the marks */
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

/* Remember that the examples of a session were printed. If the process is
 * killed before, they are printed once more. */
static int on_done(void *user, const tnk__gw_session_t *session,
                   const tnk__gw_branch_t *branches, size_t n, int is_all) {
  work_t *work = user;

  if (work->state != NULL && n > 0 &&
      cli_position_add(work->state, work->what->state, branches, n, work->why,
                       sizeof(work->why)) != 0)
    return TNK_EFILE;
  return work->what->has_no_marks
             ? TNK_OK
             : tnk__gw_mark(work->record, session, branches, n, is_all);
}

static int follow(work_t *work) {
  const tnk__gw_follow_options_t how = {.only_rewarded =
                                            work->what->only_rewarded,
                                        .quiet_ms = work->what->quiet_ms,
                                        .done = on_done};
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

/* A session that is removed from the store is not printed any more. */
static int on_line(void *user, const char *type, const json_t *line) {
  work_t *work = user;
  const tnk__gw_session_t *session = NULL;
  tnk_logger_t logger;

  if (work->record != NULL && strcmp(type, "removed") == 0)
    session = tnk__gw_record_session(
        work->record, json_string_value(json_object_get(line, "session")));
  if (session == NULL || tnk__gw_is_all(session))
    return TNK_OK;
  logger = cli_ask_logger(&work->log);
  tnk__log(&logger, TNK_LOG_WARN, "gateway",
           "the session %s was removed before all of it was printed",
           session->name);
  return TNK_OK;
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
                                        .take = on_line,
                                        .user = work,
                                        .why = work->why,
                                        .n_why = sizeof(work->why)};
  int err = tnk__gw_record_open(&work->record, &how);

  return err == TNK_OK ? CLI_EXIT_OK : failed(work, err);
}

/* Skip what was printed before. */
static int resume(work_t *work) {
  if (work->what->state == NULL) {
    if (!work->what->has_no_marks)
      tnk__gw_skip_marked(work->record);
    return CLI_EXIT_OK;
  }
  return cli_position_open(&work->state, work->what->state, work->record,
                           work->why, sizeof(work->why)) == 0
             ? CLI_EXIT_OK
             : failed(work, TNK_EFILE);
}

/* ---- What the record has now ---- */

static int put_now(void *user, const char *line, size_t n) {
  work_t *work = user;

  if (fwrite(line, 1, n, stdout) == n)
    return TNK_OK;
  work->pipe_errno = errno;
  return TNK_EFILE;
}

static void on_marked(tnk__gw_waiter_t *waiter, int err) {
  work_t *work = tnk__container_of(waiter, work_t, waiter);

  work->is_marking = 0;
  work->marked = err;
}

/* Mark what was printed, and wait until the store has the marks. */
static int mark(work_t *work, const tnk__gw_datum_options_t *how) {
  int err = tnk__gw_mark_all(work->record, how);
  const char *why;
  int written;

  work->waiter.done = on_marked;
  written =
      err == TNK_OK ? tnk__gw_record_wait(work->record, &work->waiter) : err;
  work->is_marking = written == 0;
  work->marked = written < 0 ? written : TNK_OK;
  while (work->is_marking)
    uv_run(&work->loop, UV_RUN_ONCE);
  if (work->marked == TNK_OK)
    return CLI_EXIT_OK;
  why = tnk__gw_record_why(work->record);
  return cli_fail(work->cli, CLI_EXIT_FILE,
                  "the examples were printed, but not marked as exported: %s",
                  why != NULL ? why : tnk_strerror(work->marked));
}

static int print_now(work_t *work) {
  const tnk__gw_datum_options_t how = {.only_rewarded =
                                           work->what->only_rewarded};
  int err = tnk__gw_datums(work->record, NULL, &how, put_now, work);

  if (err == TNK_OK && fflush(stdout) != 0) {
    work->pipe_errno = errno;
    err = TNK_EFILE;
  }
  if (err != TNK_OK)
    return failed(work, err);
  return work->what->has_no_marks ? CLI_EXIT_OK : mark(work, &how);
}

/* ---- Running ---- */

static int run(const cli_t *cli, const cli_follow_t *what,
               int (*print)(work_t *work)) {
  static work_t work;
  int status;

  work.cli = work.log.cli = cli;
  work.what = what;
  if (uv_loop_init(&work.loop) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "no event loop");
  uv_timer_init(&work.loop, &work.timer);
  uv_timer_start(&work.timer, on_timer, EVERY_MS, EVERY_MS);
  status = open_record(&work);
  if (status == CLI_EXIT_OK)
    status = print(&work);
  if (work.record != NULL)
    tnk__gw_record_close(work.record, on_closed, &work);
  while (work.record != NULL && !work.is_closed)
    uv_run(&work.loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&work.timer, NULL);
  uv_run(&work.loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&work.loop);
  if (work.state != NULL)
    (void)fclose(work.state);
  /* cli_main() asks why the output has failed. */
  if (status == CLI_EXIT_PIPE)
    errno = EPIPE;
  return status;
}

static int resume_and_follow(work_t *work) {
  int status = resume(work);

  return status == CLI_EXIT_OK ? follow(work) : status;
}

int cli_follow_run(const cli_t *cli, const cli_follow_t *what) {
  catch_signals();
  return run(cli, what, resume_and_follow);
}

int cli_datums_run(const cli_t *cli, const cli_follow_t *what) {
  return run(cli, what, print_now);
}
