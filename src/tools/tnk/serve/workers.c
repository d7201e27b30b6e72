/* SPDX-License-Identifier: MIT */
/*
 * The parent uses no loop of libuv. Its workers are forks, and would share the
 * descriptors of such a loop.
 */
#include "tools/tnk/serve/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "server/http.h"

enum {
  FIRST_PAUSE_MS = 100,
  MAX_PAUSE_MS = 30000,
  STEADY_MS = 60000, /* after so long the next pause is short again */
  EXTRA_MS = 10000,  /* beyond the time that workers may need to end */
  MAX_URL = 256
};

typedef struct {
  pid_t pid; /* 0: does not run */
  int stop_fd;
  int ready_fd;   /* -1: it has told its URL, or does not run */
  int is_serving; /* since it was started last */
  int has_served; /* it was ready once */
  uint64_t began_ms;
  uint64_t next_ms; /* when to start it, if it does not run */
  uint64_t pause_ms;
  char url[MAX_URL];
  size_t n_url;
} worker_t;

typedef struct {
  cli_t *cli;
  const cli_workers_t *how;
  int port;
  int port_fd;
  worker_t *workers;
  struct pollfd *polls;
  size_t n_started; /* the first one, or all */
  int64_t n_served; /* how many were ready once */
  int is_ending;
  int is_killing;
  uint64_t end_ms; /* when they are killed */
  int status;
} parent_t;

/* ---- Signals ---- */

static int signal_pipe[2];

static void on_signal(int number) {
  const int saved = errno;
  const char byte = (char)number;

  /* A full pipe has wakened the parent already. */
  if (write(signal_pipe[1], &byte, 1) < 0)
    errno = saved;
  errno = saved;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

static void watch_signals(void (*handler)(int)) {
  struct sigaction action;

  memset(&action, 0, sizeof(action));
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  (void)sigaction(SIGCHLD, &action, NULL);
  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
    struct sigaction now;

    /* A signal that the parent process ignores stays ignored. */
    if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
      (void)sigaction(ends[i], &action, NULL);
  }
}

static int make_pipe(int fds[2], int is_quick) {
  if (pipe(fds) != 0)
    return -1;
  for (int i = 0; i < 2; i++) {
    (void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    if (is_quick)
      (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
  }
  return 0;
}

static uint64_t now_ms(void) {
  struct timespec now;

  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- Starting ---- */

/* In the worker. The other workers' pipes must close when the parent dies, so
 * no worker may keep their ends. */
static void close_others(const parent_t *parent) {
  for (size_t i = 0; i < (size_t)parent->how->n; i++) {
    const worker_t *other = &parent->workers[i];

    if (other->pid != 0 && other->stop_fd >= 0)
      (void)close(other->stop_fd);
    if (other->pid != 0 && other->ready_fd >= 0)
      (void)close(other->ready_fd);
  }
  (void)close(signal_pipe[0]);
  (void)close(signal_pipe[1]);
  (void)close(parent->port_fd);
}

static void free_parent(parent_t *parent) {
  free(parent->workers);
  free(parent->polls);
}

static _Noreturn void be_worker(parent_t *parent, size_t i, int stop_fd,
                                int ready_fd) {
  cli_worker_t self = {.number = (int)i + 1,
                       .port = parent->port,
                       .stop_fd = stop_fd,
                       .ready_fd = ready_fd};
  int status;

  watch_signals(SIG_DFL);
  close_others(parent);
  /* Signals of the terminal are for the parent. */
  (void)setpgid(0, 0);
  (void)snprintf(self.label, sizeof(self.label), "%d", self.number);
  (void)snprintf(self.log_name, sizeof(self.log_name), "tnk worker %d",
                 self.number);
  (void)snprintf(parent->cli->name + strlen(parent->cli->name),
                 sizeof(parent->cli->name) - strlen(parent->cli->name),
                 " (worker %d)", self.number);
  free_parent(parent);
  status = parent->how->run(parent->cli, &self);
  exit(status);
}

static int start(parent_t *parent, size_t i) {
  worker_t *worker = &parent->workers[i];
  int stop[2], ready[2];

  worker->began_ms = now_ms();
  worker->n_url = 0;
  worker->is_serving = 0;
  if (make_pipe(stop, 0) != 0)
    return -1;
  if (make_pipe(ready, 1) != 0) {
    (void)close(stop[0]);
    (void)close(stop[1]);
    return -1;
  }
  (void)fflush(stdout);
  worker->pid = fork();
  if (worker->pid == 0) {
    (void)close(stop[1]);
    (void)close(ready[0]);
    be_worker(parent, i, stop[0], ready[1]);
  }
  (void)close(stop[0]);
  (void)close(ready[1]);
  worker->stop_fd = stop[1];
  worker->ready_fd = ready[0];
  if (worker->pid > 0)
    return 0;
  worker->pid = 0;
  (void)close(stop[1]);
  (void)close(ready[0]);
  return -1;
}

/* Try again after a pause. */
static void put_off(worker_t *worker) {
  const uint64_t now = now_ms();
  const int is_steady = now - worker->began_ms >= STEADY_MS;
  uint64_t pause = worker->pause_ms * 2;

  if (is_steady || worker->pause_ms == 0)
    pause = FIRST_PAUSE_MS;
  worker->pause_ms = pause < MAX_PAUSE_MS ? pause : MAX_PAUSE_MS;
  worker->next_ms = now + worker->pause_ms;
}

static void start_due(parent_t *parent) {
  for (size_t i = 0; i < parent->n_started && !parent->is_ending; i++) {
    worker_t *worker = &parent->workers[i];

    if (worker->pid != 0 || now_ms() < worker->next_ms)
      continue;
    if (start(parent, i) == 0)
      continue;
    put_off(worker);
    cli_warn(parent->cli, "worker %d cannot be started: %s; next try in %.1f s",
             (int)i + 1, strerror(errno), (double)worker->pause_ms / 1000);
  }
}

/* ---- Ending ---- */

static void begin_end(parent_t *parent) {
  if (parent->is_ending)
    return;
  parent->is_ending = 1;
  parent->end_ms = now_ms() + (uint64_t)parent->how->end_s * 1000 + EXTRA_MS;
  for (size_t i = 0; i < parent->n_started; i++)
    if (parent->workers[i].pid != 0 && parent->workers[i].stop_fd >= 0) {
      (void)close(parent->workers[i].stop_fd);
      parent->workers[i].stop_fd = -1;
    }
}

static void kill_all(parent_t *parent, const char *why) {
  if (parent->is_killing)
    return;
  parent->is_killing = 1;
  cli_warn(parent->cli, "%s: the workers are killed", why);
  for (size_t i = 0; i < parent->n_started; i++)
    if (parent->workers[i].pid != 0)
      (void)kill(parent->workers[i].pid, SIGKILL);
}

static void describe(int status, char *text, size_t n) {
  if (WIFSIGNALED(status))
    (void)snprintf(text, n, "was killed by signal %d", WTERMSIG(status));
  else
    (void)snprintf(text, n, "ended with status %d", WEXITSTATUS(status));
}

/* The status of the parent is that of the first worker that failed. */
static void end_with(parent_t *parent, size_t i, int pid, int code,
                     const char *text) {
  cli_warn(parent->cli, "worker %d (process %d) %s", (int)i + 1, pid, text);
  if (parent->status == 0)
    parent->status = code;
}

static void take_end(parent_t *parent, size_t i, int status) {
  worker_t *worker = &parent->workers[i];
  const int code = WIFSIGNALED(status) ? CLI_EXIT_FAILED : WEXITSTATUS(status);
  const int pid = (int)worker->pid;
  const int is_first = parent->n_served == 0 && worker->pause_ms == 0;
  /* It had no requests, and its end was asked for. */
  const int is_harmless = !worker->is_serving && parent->n_served > 0;
  char text[64];

  describe(status, text, sizeof(text));
  if (worker->stop_fd >= 0)
    (void)close(worker->stop_fd);
  if (worker->ready_fd >= 0)
    (void)close(worker->ready_fd);
  worker->pid = 0;
  if (parent->is_ending) {
    if (code != 0 && !is_harmless)
      end_with(parent, i, pid, code, text);
    return;
  }
  if (is_first) {
    /* It has reported why, unless it was killed. */
    if (WIFSIGNALED(status))
      cli_warn(parent->cli, "worker %d (process %d) %s", (int)i + 1, pid, text);
    parent->status = code != 0 ? code : CLI_EXIT_FAILED;
    begin_end(parent);
    return;
  }
  put_off(worker);
  cli_warn(parent->cli,
           "worker %d (process %d) %s; it is started again in %.1f s",
           (int)i + 1, pid, text, (double)worker->pause_ms / 1000);
}

static void take_ends(parent_t *parent) {
  for (size_t i = 0; i < parent->n_started; i++) {
    int status;

    if (parent->workers[i].pid != 0 &&
        waitpid(parent->workers[i].pid, &status, WNOHANG) ==
            parent->workers[i].pid)
      take_end(parent, i, status);
  }
}

/* ---- Waiting ---- */

/* Signals that come together count as one: some programs signal a process and
 * its group. */
static void take_signals(parent_t *parent) {
  char numbers[64];
  int is_end = 0;
  ssize_t n;

  while ((n = read(signal_pipe[0], numbers, sizeof(numbers))) > 0)
    for (ssize_t i = 0; i < n; i++)
      is_end |= numbers[i] != (char)SIGCHLD;
  if (is_end && parent->is_ending)
    kill_all(parent, "a second signal");
  if (is_end)
    begin_end(parent);
}

static void take_input(parent_t *parent) {
  char ignored[512];

  if (read(0, ignored, sizeof(ignored)) <= 0)
    begin_end(parent);
}

/* All workers have served once. */
static void announce(parent_t *parent) {
  printf("%s%s%s\n", parent->cli->json ? "{\"url\": \"" : "listening on ",
         parent->workers[0].url, parent->cli->json ? "\"}" : "");
  if (fflush(stdout) != 0) {
    parent->status = CLI_EXIT_FILE;
    begin_end(parent);
  }
}

static void take_url(parent_t *parent, worker_t *worker) {
  const cli_workers_t *how = parent->how;
  ssize_t n = read(worker->ready_fd, worker->url + worker->n_url,
                   MAX_URL - 1 - worker->n_url);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  worker->n_url += n > 0 ? (size_t)n : 0;
  if (n > 0 && worker->url[worker->n_url - 1] != '\n')
    return;
  (void)close(worker->ready_fd);
  worker->ready_fd = -1;
  if (n <= 0)
    return; /* it has ended, and waitpid() says so */
  worker->url[worker->n_url - 1] = '\0';
  parent->n_started = (size_t)how->n;
  parent->n_served += !worker->has_served;
  if (!worker->has_served && parent->n_served == how->n && !parent->is_ending)
    announce(parent);
  worker->has_served = worker->is_serving = 1;
}

static int time_left(const parent_t *parent) {
  const uint64_t now = now_ms();
  uint64_t due = UINT64_MAX;

  if (parent->is_ending && !parent->is_killing)
    due = parent->end_ms;
  for (size_t i = 0; i < parent->n_started && !parent->is_ending; i++)
    if (parent->workers[i].pid == 0 && parent->workers[i].next_ms < due)
      due = parent->workers[i].next_ms;
  if (due == UINT64_MAX)
    return -1;
  return due <= now ? 0 : (int)(due - now);
}

static void wait_once(parent_t *parent) {
  struct pollfd *polls = parent->polls;
  nfds_t n = 0;

  polls[n++] = (struct pollfd){.fd = signal_pipe[0], .events = POLLIN};
  polls[n++] = (struct pollfd){
      .fd = parent->how->watches_stdin && !parent->is_ending ? 0 : -1,
      .events = POLLIN};
  for (size_t i = 0; i < parent->n_started; i++)
    polls[n++] = (struct pollfd){
        .fd = parent->workers[i].pid != 0 ? parent->workers[i].ready_fd : -1,
        .events = POLLIN};
  if (poll(polls, n, time_left(parent)) < 0)
    return;
  if (polls[1].revents != 0)
    take_input(parent);
  for (size_t i = 2; i < n; i++)
    if (polls[i].revents != 0)
      take_url(parent, &parent->workers[i - 2]);
}

static int has_workers(const parent_t *parent) {
  for (size_t i = 0; i < parent->n_started; i++)
    if (parent->workers[i].pid != 0)
      return 1;
  return 0;
}

static void serve(parent_t *parent) {
  parent->n_started = 1;
  while (!parent->is_ending || has_workers(parent)) {
    start_due(parent);
    wait_once(parent);
    take_signals(parent);
    take_ends(parent);
    if (parent->is_ending && now_ms() >= parent->end_ms)
      kill_all(parent, "some requests take too long");
  }
}

int cli_workers_run(cli_t *cli, const cli_workers_t *how) {
  const char *host = how->host != NULL ? how->host : "127.0.0.1";
  parent_t parent = {.cli = cli, .how = how};

  parent.polls = calloc((size_t)how->n + 2, sizeof(*parent.polls));
  parent.workers = calloc((size_t)how->n, sizeof(*parent.workers));
  if (parent.polls == NULL || parent.workers == NULL ||
      make_pipe(signal_pipe, 1)) {
    parent.status = cli_fail(cli, CLI_EXIT_FAILED, "no memory for workers");
  } else {
    parent.port = tnk__srv_reserve(host, (int)how->port, &parent.port_fd);
    if (parent.port == UV_ENOTSUP)
      parent.status =
          cli_fail(cli, CLI_EXIT_FAILED,
                   "this system does not spread connections over processes; "
                   "start gateways on several ports instead of --workers");
    else if (parent.port < 0)
      parent.status =
          cli_fail(cli, CLI_EXIT_FAILED, "cannot listen on %s port %d: %s",
                   host, (int)how->port, uv_strerror(parent.port));
  }
  if (parent.status == CLI_EXIT_OK) {
    watch_signals(on_signal);
    serve(&parent);
    watch_signals(SIG_DFL);
    (void)close(parent.port_fd);
  }
  free_parent(&parent);
  return parent.status;
}

void cli_worker_is_ready(const cli_worker_t *worker, const char *url) {
  char line[MAX_URL];
  int n = snprintf(line, sizeof(line), "%s\n", url);

  /* A parent that has died needs no URL. */
  if (n > 0 && n < (int)sizeof(line) &&
      write(worker->ready_fd, line, (size_t)n) < 0)
    return;
  (void)close(worker->ready_fd);
}
