/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/log_to.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/wire/format/url.h"
#include "tnk/error.h"

enum { MAX_PATH = 4096, MAX_URL = 65536, PATIENCE_MS = 2000 };

/* ---- Places ---- */

/* The names of the places. An option of tnk report has the same name. */
static const struct {
  const char *name;
  int has_value;
} places[] = {{"tensorboard", 1}, {"trackio", 1}, {"mlflow", 1}, {"html", 0}};

enum { N_PLACES = sizeof(places) / sizeof(*places) };

/* Find the place, and the value behind its name; NULL without one. */
static size_t find_place(const char *where, const char **value) {
  for (size_t i = 0; i < N_PLACES; i++) {
    const size_t n = strlen(places[i].name);

    if (strncmp(where, places[i].name, n) != 0 ||
        (where[n] != '\0' && where[n] != ':'))
      continue;
    *value = where[n] == ':' ? where + n + 1 : NULL;
    if (places[i].has_value ? *value != NULL && **value != '\0'
                            : *value == NULL)
      return i;
  }
  return N_PLACES;
}

static const char *check_url(const char *value) {
  static char text[256];
  const char *why = "out of memory";
  tnk__arena_t arena;
  tnk__url_t url;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), MAX_URL);
  err = tnk__url_parse(&url, &arena, value, &why);
  tnk__arena_deinit(&arena);
  /* Not the value, which may hold a password. */
  (void)snprintf(text, sizeof(text), "--log-to mlflow: %s", why);
  return err == TNK_OK ? NULL : text;
}

static const char *check_one(const char *where) {
  const char *value = NULL;
  const size_t place = find_place(where, &value);

  if (place == N_PLACES)
    return "--log-to takes tensorboard:DIR, trackio:FILE, mlflow:URL or html";
#ifndef CLI_TRACKIO
  if (strcmp(places[place].name, "trackio") == 0)
    return "--log-to trackio: this program was built without SQLite";
#endif
  return strcmp(places[place].name, "mlflow") == 0 ? check_url(value) : NULL;
}

const char *learn_log_check(const cli_texts_t *where) {
  for (size_t i = 0; i < where->n; i++) {
    const char *wrong = check_one(where->items[i]);

    if (wrong != NULL)
      return wrong;
    for (size_t k = 0; k < i; k++)
      if (strcmp(where->items[i], where->items[k]) == 0)
        return "--log-to has the same place twice";
  }
  return NULL;
}

/* ---- Processes ---- */

static void on_exit(uv_process_t *process, int64_t status, int number) {
  learn_logger_t *logger = process->data;

  logger->is_running = 0;
  logger->status = status;
  logger->number = number;
}

static int spawn(learn_log_t *log, learn_logger_t *logger, char *option) {
  static char path[MAX_PATH];
  size_t n = sizeof(path);
  char *args[9] = {"tnk", "report", "--follow", "--exit-with-stdin"};
  size_t n_args = 4;
  uv_stdio_container_t stdio[] = {
      {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
       .data.stream = (uv_stream_t *)&logger->input},
      {.flags = UV_IGNORE},
      {.flags = UV_INHERIT_FD, .data.fd = 2}};
  /* Ctrl-C in a terminal is for the run. The process gets no signal, and ends
   * after the run has. */
  const uv_process_options_t options = {.exit_cb = on_exit,
                                        .file = path,
                                        .args = args,
                                        .flags = UV_PROCESS_DETACHED,
                                        .stdio_count = 3,
                                        .stdio = stdio};
  const int err = uv_exepath(path, &n);

  if (log->cli->quiet)
    args[n_args++] = "--quiet";
  if (option != NULL)
    args[n_args++] = option;
  args[n_args++] = "--";
  args[n_args] = (char *)(uintptr_t)log->run;
  return err == 0 ? uv_spawn(&log->loop, &logger->process, &options) : err;
}

static int start(learn_log_t *log, learn_logger_t *logger) {
  const char *value = NULL;
  const size_t place = find_place(logger->where, &value);
  const size_t n =
      value != NULL ? strlen(places[place].name) + strlen(value) + 4 : 0;
  char *option = value != NULL ? malloc(n) : NULL;
  int err = UV_ENOMEM;

  if (option != NULL)
    (void)snprintf(option, n, "--%s=%s", places[place].name, value);
  if (option != NULL || value == NULL)
    err = spawn(log, logger, option);
  free(option);
  return err;
}

void learn_log_open(learn_log_t *log, const cli_t *cli,
                    const cli_texts_t *where, const char *run) {
  *log = (learn_log_t){.cli = cli, .run = run};
  if (where->n == 0)
    return;
  log->loggers = calloc(where->n, sizeof(*log->loggers));
  log->has_loop = log->loggers != NULL && uv_loop_init(&log->loop) == 0;
  if (!log->has_loop) {
    cli_warn(cli, "--log-to: out of memory; nothing is logged");
    return;
  }
  uv_timer_init(&log->loop, &log->timer);
  for (log->n = 0; log->n < where->n; log->n++) {
    learn_logger_t *logger = &log->loggers[log->n];
    int err;

    logger->where = where->items[log->n];
    logger->process.data = logger;
    uv_pipe_init(&log->loop, &logger->input, 0);
    err = start(log, logger);
    logger->is_running = err == 0;
    logger->status = err;
    if (err != 0)
      cli_warn(cli, "--log-to %s: it cannot be started: %s", logger->where,
               uv_strerror(err));
  }
}

/* ---- The end ---- */

static void kill_all(uv_timer_t *timer) {
  learn_log_t *log = timer->data;

  for (size_t i = 0; i < log->n; i++)
    if (log->loggers[i].is_running) {
      log->loggers[i].is_killed = 1;
      (void)uv_process_kill(&log->loggers[i].process, SIGKILL);
    }
}

static void on_patience(uv_timer_t *timer) {
  learn_log_t *log = timer->data;

  for (size_t i = 0; i < log->n; i++)
    if (log->loggers[i].is_running)
      cli_note(log->cli, "the last steps are being written to %s",
               log->loggers[i].where);
  uv_timer_start(timer, kill_all, LEARN_LOG_WAIT_MS - PATIENCE_MS, 0);
}

static int is_running(const learn_log_t *log) {
  for (size_t i = 0; i < log->n; i++)
    if (log->loggers[i].is_running)
      return 1;
  return 0;
}

static void report(const learn_log_t *log, const learn_logger_t *logger) {
  const char *value = NULL;
  const char *name = places[find_place(logger->where, &value)].name;
  char why[64];

  if (logger->status == 0 && logger->number == 0)
    return;
  if (logger->is_killed)
    (void)snprintf(why, sizeof(why), "ended after %d s of waiting",
                   LEARN_LOG_WAIT_MS / 1000);
  else if (logger->number != 0)
    (void)snprintf(why, sizeof(why), "ended by signal %d", logger->number);
  else
    (void)snprintf(why, sizeof(why), "status %" PRId64, logger->status);
  cli_warn(log->cli,
           "not all steps were written to %s (%s); tnk report %s%s%s%s%s "
           "writes them again",
           logger->where, why, log->run, value != NULL ? " --" : "",
           value != NULL ? name : "", value != NULL ? " " : "",
           value != NULL ? value : "");
}

void learn_log_close(learn_log_t *log) {
  if (log->has_loop) {
    for (size_t i = 0; i < log->n; i++)
      uv_close((uv_handle_t *)&log->loggers[i].input, NULL);
    log->timer.data = log;
    uv_update_time(&log->loop);
    uv_timer_start(&log->timer, on_patience, PATIENCE_MS, 0);
    while (is_running(log))
      uv_run(&log->loop, UV_RUN_ONCE);
    for (size_t i = 0; i < log->n; i++) {
      report(log, &log->loggers[i]);
      if (log->loggers[i].process.type == UV_PROCESS)
        uv_close((uv_handle_t *)&log->loggers[i].process, NULL);
    }
    uv_close((uv_handle_t *)&log->timer, NULL);
    uv_run(&log->loop, UV_RUN_DEFAULT);
    uv_loop_close(&log->loop);
  }
  free(log->loggers);
  *log = (learn_log_t){.n = 0};
}
