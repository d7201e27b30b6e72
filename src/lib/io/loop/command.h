#ifndef TNK_LIB_IO_LOOP_COMMAND_H
#define TNK_LIB_IO_LOOP_COMMAND_H

#include "lib/io/loop/context.h"

/*
 * A shell command whose output is a secret. It reads nothing, what it writes
 * as an error goes nowhere, and what it has started in its process group dies
 * with it, or, when it has left something running that holds its output open, a
 * second after its exit.
 *
 * Running until it has exited and closed its output, or until that second is
 * over, or until it has taken too long or written too much, or until it is
 * killed. Then over: it waits only for its process to be reaped, which holds
 * the context, and frees itself.
 */
typedef struct tnk__command tnk__command_t;

/* How it ended. Valid inside `done`. */
typedef struct {
  int err;    /* TNK_OK; TNK_ETIMEDOUT; TNK_ETOOBIG; a code of libuv */
  int status; /* with TNK_OK: of its exit; 128 and more: by that signal */
  const char *output; /* with TNK_OK: ends with NUL, and is wiped afterwards */
} tnk__command_result_t;

typedef struct {
  const char *text; /* for /bin/sh; not kept */
  uint64_t timeout_ms;
  int background; /* does not keep the loop alive */
  /* Called once, not inside start. The command is over and must not be used
   * any more. */
  void (*done)(void *user, const tnk__command_result_t *result);
  void *user;
} tnk__command_options_t;

/* Start one. Returns TNK_OK, or TNK_ENOMEM or libuv's code, after which `done`
 * is not called. */
int tnk__command_start(tnk__command_t **out, tnk__context_t *context,
                       const tnk__command_options_t *options);
/* End it without `done`. Allocates nothing. NULL does nothing. */
void tnk__command_kill(tnk__command_t *command);

#endif
