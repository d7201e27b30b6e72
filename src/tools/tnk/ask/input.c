/* SPDX-License-Identifier: MIT */
#include "tools/tnk/ask/input.h"

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  cli_input_t *input = handle->data;

  (void)hint;
  *buf = uv_buf_init(input->scratch, sizeof(input->scratch));
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  cli_input_t *input = stream->data;

  (void)buf;
  if (n < 0)
    input->ended(input->user);
}

int cli_input_watch(cli_input_t *input, uv_loop_t *loop,
                    void (*ended)(void *user), void *user) {
  int err = -1;

  input->ended = ended;
  input->user = user;
  switch (uv_guess_handle(0)) {
  case UV_NAMED_PIPE:
    err = uv_pipe_init(loop, &input->in.pipe, 0);
    if (err == 0)
      err = uv_pipe_open(&input->in.pipe, 0);
    break;
  case UV_TTY:
    err = uv_tty_init(loop, &input->in.tty, 0, 0);
    break;
  default: /* a file is at its end already */
    return 0;
  }
  if (err != 0)
    return 0;
  input->is_open = 1;
  input->in.handle.data = input;
  return uv_read_start(&input->in.stream, on_alloc, on_input) == 0;
}

void cli_input_close(cli_input_t *input) {
  if (input->is_open)
    uv_close(&input->in.handle, NULL);
  input->is_open = 0;
}
