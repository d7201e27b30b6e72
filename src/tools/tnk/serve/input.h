#ifndef TNK_TOOLS_TNK_SERVE_INPUT_H
#define TNK_TOOLS_TNK_SERVE_INPUT_H

#include <uv.h>

/* The standard input, whose end is a sign for a server to end as well: whoever
 * started it is gone. */
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

/* Have `ended` called at its end, from the loop. 1 when it is one that can end
 * later. */
int cli_input_watch(cli_input_t *input, uv_loop_t *loop,
                    void (*ended)(void *user), void *user);
/* Do not watch it any more. */
void cli_input_close(cli_input_t *input);

#endif
