/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_LOOP_COMMAND_H
#define TNK_LIB_IO_LOOP_COMMAND_H

#include "lib/io/loop/context.h"

/*
 * A shell command whose output is a secret. It has no input, and its error
 * output is discarded. Processes that it started in its process group are
 * killed when it ends. If they keep its output open, they are killed a second
 * after its exit.
 *
 * A command runs until it has exited and its output is closed, or until that
 * second is over. It also ends if it takes too long, writes too much, or is
 * killed. After its end it only waits for its process to be reaped, which holds
 * the context. Then it frees itself.
 */
typedef struct tnk__command tnk__command_t;

/* The result of a command. Valid inside `done`. */
typedef struct {
  int err;    /* TNK_OK, TNK_ETIMEDOUT, TNK_ETOOBIG or a code of libuv */
  int status; /* with TNK_OK: exit status; 128 plus the number of a signal */
  const char *output; /* with TNK_OK: ends with NUL; wiped after `done` */
} tnk__command_result_t;

typedef struct {
  const char *text; /* script for /bin/sh; not kept */
  uint64_t timeout_ms;
  int background; /* does not keep the loop alive */
  /* Called once, never inside start. The command has ended and must not be used
   * any more. */
  void (*done)(void *user, const tnk__command_result_t *result);
  void *user;
} tnk__command_options_t;

/* Start a command. Returns TNK_OK, TNK_ENOMEM or libuv's code. After an error
 * `done` is not called. */
int tnk__command_start(tnk__command_t **out, tnk__context_t *context,
                       const tnk__command_options_t *options);
/* Kill it without calling `done`. Allocates nothing. NULL does nothing. */
void tnk__command_kill(tnk__command_t *command);

#endif
