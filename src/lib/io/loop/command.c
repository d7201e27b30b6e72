/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/command.h"

#include <signal.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "tnk/error.h"

/* Time for the remaining processes to write after the command's exit. */
enum { GRACE_MS = 1000 };

struct tnk__command {
  tnk__context_t *context;
  tnk__command_options_t options;
  uv_process_t process;
  uv_pipe_t pipe; /* read end of the output */
  tnk__timer_t timer;
  int n_handles; /* handles that libuv holds */
  int is_running;
  int has_exited;
  int has_ended; /* the output is closed */
  int is_over;
  int status;
  size_t len;
  /* Never reallocated, so it can be wiped. */
  char output[TNK__MAX_CREDENTIAL + 1];
};

static void on_handle_closed(uv_handle_t *handle) {
  tnk__command_t *command = handle->data;
  tnk__context_t *context = command->context;

  if (--command->n_handles == 0) {
    tnk__wipe(command->output, sizeof(command->output));
    tnk__free(&context->alloc, command);
  }
  tnk__context_release(context);
}

static void hold(tnk__command_t *command, uv_handle_t *handle) {
  handle->data = command;
  command->n_handles++;
  tnk__context_hold(command->context);
}

/* End the command. A running process is killed. Its handle stays until it is
 * reaped, because it would remain a zombie otherwise. Remaining processes that
 * keep the output open are killed too. The number of the group is safe to use:
 * the system does not reuse it while a process of the group exists. */
static void end(tnk__command_t *command) {
  uv_handle_t *process = (uv_handle_t *)&command->process;

  command->is_over = 1;
  tnk__timer_stop(&command->timer);
  uv_close((uv_handle_t *)&command->pipe, on_handle_closed);
  if (command->is_running || (command->has_exited && !command->has_ended))
    uv_kill(-command->process.pid, SIGKILL);
  if (command->is_running)
    uv_ref(process);
  else
    uv_close(process, on_handle_closed);
}

static void report(tnk__command_t *command, int err) {
  tnk__command_result_t result = {err, command->status, command->output};

  command->output[command->len] = '\0';
  end(command);
  command->options.done(command->options.user, &result);
}

static void on_timeout(tnk__timer_t *timer) {
  tnk__command_t *command = tnk__container_of(timer, tnk__command_t, timer);

  report(command, command->has_exited ? TNK_OK : TNK_ETIMEDOUT);
}

static void start_timer(tnk__command_t *command, uint64_t delay_ms) {
  if (command->options.background)
    tnk__timer_start_background(command->context, &command->timer, delay_ms,
                                on_timeout);
  else
    tnk__timer_start(command->context, &command->timer, delay_ms, on_timeout);
}

static void on_exit(uv_process_t *process, int64_t status, int signal_no) {
  tnk__command_t *command = process->data;

  command->is_running = 0;
  command->has_exited = 1;
  command->status = signal_no != 0 ? 128 + signal_no : (int)status;
  if (command->is_over)
    uv_close((uv_handle_t *)process, on_handle_closed);
  else if (command->has_ended)
    report(command, TNK_OK);
  else
    start_timer(command, GRACE_MS);
}

static void on_room(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  tnk__command_t *command = handle->data;
  size_t left = TNK__MAX_CREDENTIAL - command->len;

  (void)hint;
  *buf = uv_buf_init(command->output + command->len, (unsigned)left);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  tnk__command_t *command = stream->data;

  (void)buf;
  if (n > 0) {
    command->len += (size_t)n;
  } else if (n == UV_EOF) {
    command->has_ended = 1;
    uv_read_stop(stream);
    if (command->has_exited)
      report(command, TNK_OK);
  } else if (n < 0) {
    report(command, n == UV_ENOBUFS ? TNK_ETOOBIG : (int)n);
  }
}

/* Start it in a process group of its own, so the whole group can be killed. */
static int spawn(tnk__command_t *command) {
  char *args[] = {"sh", "-c", (char *)command->options.text, NULL};
  uv_stdio_container_t stdio[] = {
      {.flags = UV_IGNORE},
      {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
       .data.stream = (uv_stream_t *)&command->pipe},
      {.flags = UV_IGNORE}};
  uv_process_options_t options = {.exit_cb = on_exit,
                                  .file = "/bin/sh",
                                  .args = args,
                                  .flags = UV_PROCESS_DETACHED,
                                  .stdio_count = 3,
                                  .stdio = stdio};
  int err = uv_spawn(command->context->uv, &command->process, &options);

  command->is_running = err == 0;
  hold(command, (uv_handle_t *)&command->process);
  return err;
}

int tnk__command_start(tnk__command_t **out, tnk__context_t *context,
                       const tnk__command_options_t *options) {
  tnk__command_t *command = tnk__calloc(&context->alloc, 1, sizeof(*command));
  int err;

  *out = NULL;
  if (command == NULL)
    return TNK_ENOMEM;
  command->context = context;
  command->options = *options;
  uv_pipe_init(context->uv, &command->pipe, 0);
  hold(command, (uv_handle_t *)&command->pipe);
  err = spawn(command);
  if (err == 0)
    err = uv_read_start((uv_stream_t *)&command->pipe, on_room, on_output);
  command->options.text = NULL;
  if (err != 0) {
    end(command);
    return err;
  }
  if (options->background) {
    uv_unref((uv_handle_t *)&command->process);
    uv_unref((uv_handle_t *)&command->pipe);
  }
  start_timer(command, options->timeout_ms);
  *out = command;
  return TNK_OK;
}

void tnk__command_kill(tnk__command_t *command) {
  if (command != NULL && !command->is_over)
    end(command);
}
