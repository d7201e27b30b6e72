/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ASK_INPUT_H
#define TNK_TOOLS_TNK_ASK_INPUT_H

#include <uv.h>

/* Watches the standard input. Its end means that the parent process is gone, so
 * the server must end too. */
typedef struct {
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tty_t tty;
  } in;
  int is_open;
  char scratch[256];
  void (*ended)(void *user);
  void *user;
} cli_input_t;

/* Call `ended` from the loop at the end of the input. Returns 1 if the input
 * can end later. */
int cli_input_watch(cli_input_t *input, uv_loop_t *loop,
                    void (*ended)(void *user), void *user);
/* Stop watching. */
void cli_input_close(cli_input_t *input);

#endif
