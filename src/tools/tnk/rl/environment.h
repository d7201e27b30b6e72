/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_ENVIRONMENT_H
#define TNK_TOOLS_TNK_RL_ENVIRONMENT_H

#include <uv.h>

#include "tnk/gateway.h"
#include "tools/tnk/rl/tail.h"

/* The end of an environment's process. */
typedef enum {
  RL_EXITED = 0, /* with status 0 */
  RL_CRASHED,    /* with another status, or by a signal */
  RL_TIMED_OUT,
  RL_NOT_STARTED,
  RL_STOPPED /* by rl_environment_stop() */
} rl_end_t;

typedef struct rl_environment rl_environment_t;
typedef void (*rl_environment_cb)(rl_environment_t *environment);

/*
 * A process of the command of --environment, with a key of its own. It has a
 * process group of its own, so everything that it has started can be ended.
 * The caller sets the members up to `user`, and zeroes the others.
 */
struct rl_environment {
  uv_loop_t *loop;
  const char *command; /* for sh -c */
  const char *address; /* of the gateway */
  uint64_t timeout_ms;
  uint64_t step, task;
  size_t group, member;
  uint64_t seed;
  char key[TNK_GATEWAY_KEY_SIZE];
  /* Called when the process has ended and its output is complete, and never
   * inside rl_environment_start(). The memory may be reused then. */
  rl_environment_cb ended;
  void *user;

  rl_end_t end;
  rl_tail_t said; /* standard output */
  rl_tail_t complained;
  char why[96]; /* the end in words, unless RL_EXITED */

  uv_process_t process;
  uv_pipe_t pipes[2];
  uv_timer_t timer;
  int n_handles; /* handles that libuv holds */
  int n_open;    /* outputs that have not ended */
  int has_process;
  int is_running;
  int is_asked; /* to end, by SIGTERM */
  int is_over;
};

void rl_environment_start(rl_environment_t *environment);
/* End it with SIGTERM, and a few seconds later with SIGKILL. Does nothing after
 * the end. */
void rl_environment_stop(rl_environment_t *environment);

#endif
