/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/command.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "loop/fixture.h"

typedef struct {
  context_t context;
  tnk__command_t *command;
  int n_done;
  int err;
  int status;
  char output[TNK__MAX_CREDENTIAL + 1];
} run_t;

static void done(void *user, const tnk__command_result_t *result) {
  run_t *run = user;

  CHECK_INT(++run->n_done, 1);
  run->err = result->err;
  run->status = result->status;
  if (result->err == TNK_OK)
    memcpy(run->output, result->output, strlen(result->output) + 1);
}

static int start(run_t *run, const char *text, int background) {
  const tnk__command_options_t options = {.text = text,
                                          .timeout_ms = 30000,
                                          .background = background,
                                          .done = done,
                                          .user = run};

  return tnk__command_start(&run->command, &run->context.loop, &options);
}

static void open_and_start(run_t *run, const char *text) {
  memset(run, 0, sizeof(*run));
  context_open(&run->context);
  tnk__context_fake_clock(&run->context.loop, 1000);
  CHECK_INT(start(run, text, 0), TNK_OK);
  CHECK_INT(run->n_done, 0);
}

static void open_and_run(run_t *run, const char *text) {
  open_and_start(run, text);
  uv_run(&run->context.uv, UV_RUN_DEFAULT);
  CHECK_INT(run->n_done, 1);
}

TEST(A23_command_gives_its_output_and_nothing_else) {
  run_t run;

  open_and_run(&run, "echo noise >&2; cat; echo ' tml-a '; printf b");
  CHECK_INT(run.err, TNK_OK);
  CHECK_INT(run.status, 0);
  CHECK_STR(run.output, " tml-a \nb");
  context_close(&run.context);
}

TEST(A23_command_exit_is_told) {
  run_t run;

  open_and_run(&run, "echo no; exit 3");
  CHECK_INT(run.err, TNK_OK);
  CHECK_INT(run.status, 3);
  context_close(&run.context);
  open_and_run(&run, "kill -9 $$");
  CHECK_INT(run.status, 128 + SIGKILL);
  context_close(&run.context);
  open_and_run(&run, "exec /nonexistent/program");
  CHECK(run.status != 0);
  context_close(&run.context);
}

TEST(command_output_is_bounded) {
  run_t run;

  open_and_run(&run, "while :; do echo 0123456789abcdef; done");
  CHECK_INT(run.err, TNK_ETOOBIG);
  context_close(&run.context);
}

/* The pid that the command wrote; it has written nothing else. */
static pid_t wait_for_pid(run_t *run, const char *path) {
  long pid = 0;

  while (pid == 0) {
    FILE *file = fopen(path, "r");
    uv_run(&run->context.uv, UV_RUN_NOWAIT);
    CHECK(file != NULL);
    if (fscanf(file, "%ld\n", &pid) != 1)
      pid = 0;
    fclose(file);
  }
  return (pid_t)pid;
}

/* A command whose own child sleeps, and what it does then; returns that child.
 */
static pid_t start_sleeper(run_t *run, const char *then) {
  char path[] = "/tmp/tnk-command-XXXXXX";
  char text[128];
  int fd = mkstemp(path);
  pid_t pid;

  CHECK(fd >= 0);
  close(fd);
  snprintf(text, sizeof(text), "sleep 600 & echo $! > %s; %s", path, then);
  open_and_start(run, text);
  pid = wait_for_pid(run, path);
  CHECK_INT(kill(pid, 0), 0);
  unlink(path);
  return pid;
}

/* Nobody but init can reap it, so a zombie counts as gone. */
static int is_gone(pid_t pid) {
  char path[64];
  char state = 'Z';
  FILE *file;

  if (kill(pid, 0) != 0)
    return errno == ESRCH;
  snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
  file = fopen(path, "r");
  if (file == NULL)
    return 1;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
    state = 'Z';
  fclose(file);
  return state == 'Z';
}

TEST(A23_command_that_takes_too_long_is_killed_with_its_children) {
  run_t run;
  pid_t child = start_sleeper(&run, "wait");

  tnk__context_advance(&run.context.loop, 29999);
  CHECK_INT(run.n_done, 0);
  tnk__context_advance(&run.context.loop, 1);
  CHECK_INT(run.n_done, 1);
  CHECK_INT(run.err, TNK_ETIMEDOUT);
  context_close(&run.context);
  while (!is_gone(child))
    sched_yield();
}

TEST(A23_command_is_killed_in_the_middle) {
  run_t run;
  pid_t child = start_sleeper(&run, "wait");

  tnk__command_kill(run.command);
  tnk__command_kill(run.command);
  context_close(&run.context);
  CHECK_INT(run.n_done, 0);
  while (!is_gone(child))
    sched_yield();
}

/* The shell is gone, but what it started holds the output open. */
static pid_t start_orphan(run_t *run) {
  const tnk__context_t *context = &run->context.loop;
  pid_t child = start_sleeper(run, "echo tml-a");

  while (context->timers.root->due_ms > tnk__context_now_ms(context) + 1000)
    context_turn(&run->context);
  return child;
}

TEST(A23_a_command_may_leave_a_child_behind_which_dies_a_second_later) {
  run_t run;
  pid_t child = start_orphan(&run);

  tnk__context_advance(&run.context.loop, 999);
  CHECK_INT(run.n_done, 0);
  CHECK_INT(is_gone(child), 0);
  tnk__context_advance(&run.context.loop, 1);
  CHECK_INT(run.n_done, 1);
  CHECK_INT(run.err, TNK_OK);
  CHECK_STR(run.output, "tml-a\n");
  context_close(&run.context);
  while (!is_gone(child))
    sched_yield();
}

TEST(A23_a_killed_command_takes_the_child_that_it_left_behind_with_it) {
  run_t run;
  pid_t child = start_orphan(&run);

  tnk__command_kill(run.command);
  context_close(&run.context);
  CHECK_INT(run.n_done, 0);
  while (!is_gone(child))
    sched_yield();
}

TEST(command_killed_before_its_first_turn) {
  run_t run;

  open_and_start(&run, "echo tml-a");
  tnk__command_kill(run.command);
  context_close(&run.context);
  CHECK_INT(run.n_done, 0);
}

TEST(command_in_the_background_does_not_keep_the_loop_alive) {
  run_t run;

  memset(&run, 0, sizeof(run));
  context_open(&run.context);
  CHECK_INT(start(&run, "exec sleep 600", 1), TNK_OK);
  uv_run(&run.context.uv, UV_RUN_DEFAULT);
  CHECK_INT(run.n_done, 0);
  tnk__command_kill(run.command);
  context_close(&run.context);
}

TEST(command_without_memory_is_not_started) {
  run_t run;

  memset(&run, 0, sizeof(run));
  context_open(&run.context);
  test_alloc_fail_at(0);
  CHECK_INT(start(&run, "echo a", 0), TNK_ENOMEM);
  test_alloc_fail_at(-1);
  context_close(&run.context);
  CHECK_INT(run.n_done, 0);
}

/* No descriptors: libuv cannot make the pipe. */
TEST(command_that_cannot_be_started_leaves_nothing) {
  run_t run;
  struct rlimit limit;
  int fds[256];
  int n = 0;

  memset(&run, 0, sizeof(run));
  context_open(&run.context);
  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 128;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  while (n < 256 && (fds[n] = dup(1)) >= 0)
    n++;
  CHECK(n < 256);
  CHECK_INT(start(&run, "echo a", 0), UV_EMFILE);
  while (n > 0)
    close(fds[--n]);
  context_close(&run.context);
  CHECK_INT(run.n_done, 0);
}
