/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/environment.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* From SIGTERM to SIGKILL. */
enum { TERM_MS = 5000 };
/* Time for the other processes to write after the first one has exited. */
enum { GRACE_MS = 1000 };

extern char **environ;

/* ---- Variables ---- */

enum { N_OURS = 10, N_TEXT = 512, N_DIRECT = 2 };

/* The variables of the process: ours, and those of this process without the
 * names of ours and without credentials. */
typedef struct {
  char text[N_OURS][N_TEXT];
  char *direct[N_DIRECT]; /* hosts without a proxy; both have one value */
  char **list;            /* ends with NULL */
} variables_t;

/* Code of the model may run in the environment. */
static const char *const hidden[] = {
    "TINKER_API_KEY",           "TINKER_CREDENTIAL_CMD",
    "ANTHROPIC_AUTH_TOKEN",     "TNK_GATEWAY_KEY",
    "TNK_GATEWAY_ADMIN_KEY",    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_PASSWORD",
};

static const char *const direct_names[N_DIRECT] = {"no_proxy", "NO_PROXY"};

static int is_named(const char *variable, const char *name, size_t n) {
  return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

static int is_replaced(const variables_t *v, const char *variable) {
  for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
    if (is_named(variable, hidden[i], strlen(hidden[i])))
      return 1;
  for (size_t i = 0; i < N_OURS; i++)
    if (is_named(variable, v->text[i], strcspn(v->text[i], "=")))
      return 1;
  for (size_t i = 0; i < N_DIRECT; i++)
    if (is_named(variable, direct_names[i], strlen(direct_names[i])))
      return 1;
  return 0;
}

/* No proxy leads to the gateway. Programs read either name, in either order. */
static int set_direct(variables_t *v) {
  static const char host[] = "127.0.0.1";
  const char *old = getenv(direct_names[0]);

  if (old == NULL)
    old = getenv(direct_names[1]);
  if (old == NULL)
    old = "";
  for (size_t i = 0; i < N_DIRECT; i++) {
    const size_t n = strlen(direct_names[i]) + strlen(old) + sizeof(host) + 2;

    v->direct[i] = malloc(n);
    if (v->direct[i] == NULL)
      return -1;
    snprintf(v->direct[i], n, "%s=%s%s%s", direct_names[i], old,
             *old != '\0' ? "," : "", host);
  }
  return 0;
}

static void set_ours(variables_t *v, const rl_environment_t *e) {
  snprintf(v->text[0], N_TEXT, "OPENAI_BASE_URL=%s/v1", e->address);
  snprintf(v->text[1], N_TEXT, "OPENAI_API_KEY=%s", e->key);
  snprintf(v->text[2], N_TEXT, "ANTHROPIC_BASE_URL=%s", e->address);
  snprintf(v->text[3], N_TEXT, "ANTHROPIC_API_KEY=%s", e->key);
  snprintf(v->text[4], N_TEXT, "TNK_GATEWAY_URL=%s", e->address);
  snprintf(v->text[5], N_TEXT, "TNK_RL_STEP=%" PRIu64, e->step);
  snprintf(v->text[6], N_TEXT, "TNK_RL_TASK=%" PRIu64, e->task);
  snprintf(v->text[7], N_TEXT, "TNK_RL_GROUP=%zu", e->group);
  snprintf(v->text[8], N_TEXT, "TNK_RL_MEMBER=%zu", e->member);
  snprintf(v->text[9], N_TEXT, "TNK_RL_SEED=%" PRIu64, e->seed);
}

static void free_variables(variables_t *v) {
  for (size_t i = 0; i < N_DIRECT; i++)
    free(v->direct[i]);
  free(v->list);
  tnk__wipe(v->text, sizeof(v->text));
  free(v);
}

static variables_t *new_variables(const rl_environment_t *e) {
  variables_t *v = calloc(1, sizeof(*v));
  size_t n = 0, at = 0;

  if (v == NULL)
    return NULL;
  while (environ != NULL && environ[n] != NULL)
    n++;
  v->list = calloc(n + N_OURS + N_DIRECT + 1, sizeof(*v->list));
  if (v->list == NULL || set_direct(v) != 0) {
    free_variables(v);
    return NULL;
  }
  set_ours(v, e);
  for (size_t i = 0; i < N_OURS; i++)
    v->list[at++] = v->text[i];
  for (size_t i = 0; i < N_DIRECT; i++)
    v->list[at++] = v->direct[i];
  for (size_t i = 0; i < n; i++)
    if (!is_replaced(v, environ[i]))
      v->list[at++] = environ[i];
  return v;
}

/* ---- The end ---- */

static void on_handle_closed(uv_handle_t *handle) {
  rl_environment_t *e = handle->data;

  if (--e->n_handles > 0)
    return;
  rl_tail_end(&e->said, e->key);
  rl_tail_end(&e->complained, e->key);
  tnk__wipe(e->key, sizeof(e->key));
  e->ended(e);
}

static void finish(rl_environment_t *e) {
  if (e->is_over)
    return;
  e->is_over = 1;
  if (e->has_process)
    uv_close((uv_handle_t *)&e->process, on_handle_closed);
  for (size_t i = 0; i < 2; i++)
    uv_close((uv_handle_t *)&e->pipes[i], on_handle_closed);
  uv_close((uv_handle_t *)&e->timer, on_handle_closed);
}

/* The number of the group is safe to use: the system does not reuse it while a
 * process of the group exists. */
static void kill_group(const rl_environment_t *e, int number) {
  (void)uv_kill(-e->process.pid, number);
}

static void on_grace(uv_timer_t *timer) {
  rl_environment_t *e = timer->data;

  kill_group(e, SIGKILL);
  finish(e);
}

static void on_exit(uv_process_t *process, int64_t status, int number) {
  rl_environment_t *e = process->data;

  e->is_running = 0;
  if (e->end == RL_EXITED && (status != 0 || number != 0)) {
    e->end = RL_CRASHED;
    if (number != 0)
      snprintf(e->why, sizeof(e->why), "was ended by signal %d", number);
    else
      snprintf(e->why, sizeof(e->why), "exited with status %" PRId64, status);
  }
  if (e->n_open > 0)
    uv_timer_start(&e->timer, on_grace, GRACE_MS, 0);
  else
    finish(e);
}

static void on_term_passed(uv_timer_t *timer) {
  kill_group(timer->data, SIGKILL);
}

static void ask_to_end(rl_environment_t *e, rl_end_t end) {
  if (!e->is_running || e->is_asked)
    return;
  e->is_asked = 1;
  e->end = end;
  kill_group(e, SIGTERM);
  uv_timer_start(&e->timer, on_term_passed, TERM_MS, 0);
}

static void on_late(uv_timer_t *timer) {
  rl_environment_t *e = timer->data;

  snprintf(e->why, sizeof(e->why), "did not end within %" PRIu64 " s",
           e->timeout_ms / 1000);
  ask_to_end(e, RL_TIMED_OUT);
}

void rl_environment_stop(rl_environment_t *e) {
  ask_to_end(e, RL_STOPPED);
}

/* ---- Output ---- */

static void on_room(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  /* One buffer is enough: libuv calls the reader before it asks for the next
   * buffer. */
  static char room[65536];

  (void)handle;
  (void)hint;
  *buf = uv_buf_init(room, sizeof(room));
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  rl_environment_t *e = stream->data;

  if (n > 0) {
    rl_tail_add(stream == (uv_stream_t *)&e->pipes[0] ? &e->said
                                                      : &e->complained,
                buf->base, (size_t)n);
  } else if (n < 0) {
    uv_read_stop(stream);
    if (--e->n_open == 0 && !e->is_running)
      finish(e);
  }
}

/* ---- The start ---- */

static void on_failed(uv_timer_t *timer) {
  finish(timer->data);
}

static void hold(rl_environment_t *e, uv_handle_t *handle) {
  handle->data = e;
  e->n_handles++;
}

static int spawn(rl_environment_t *e, char **variables) {
  char *args[] = {"sh", "-c", (char *)(uintptr_t)e->command, NULL};
  uv_stdio_container_t stdio[] = {{.flags = UV_IGNORE},
                                  {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                                   .data.stream = (uv_stream_t *)&e->pipes[0]},
                                  {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                                   .data.stream = (uv_stream_t *)&e->pipes[1]}};
  const uv_process_options_t options = {.exit_cb = on_exit,
                                        .file = "/bin/sh",
                                        .args = args,
                                        .env = variables,
                                        .flags = UV_PROCESS_DETACHED,
                                        .stdio_count = 3,
                                        .stdio = stdio};
  int err = uv_spawn(e->loop, &e->process, &options);

  e->is_running = err == 0;
  for (size_t i = 0; i < 2 && err == 0; i++) {
    err = uv_read_start((uv_stream_t *)&e->pipes[i], on_room, on_output);
    e->n_open += err == 0;
  }
  return err;
}

void rl_environment_start(rl_environment_t *e) {
  variables_t *v = new_variables(e);
  int err = UV_ENOMEM;

  for (size_t i = 0; i < 2; i++) {
    uv_pipe_init(e->loop, &e->pipes[i], 0);
    hold(e, (uv_handle_t *)&e->pipes[i]);
  }
  uv_timer_init(e->loop, &e->timer);
  hold(e, (uv_handle_t *)&e->timer);
  uv_update_time(e->loop);
  if (v != NULL) {
    err = spawn(e, v->list);
    /* libuv has the handle even if it could not start the process. */
    e->has_process = 1;
    hold(e, (uv_handle_t *)&e->process);
    free_variables(v);
  }
  if (err == 0) {
    uv_timer_start(&e->timer, on_late, e->timeout_ms, 0);
    return;
  }
  snprintf(e->why, sizeof(e->why), "cannot be started: %s", uv_strerror(err));
  if (e->is_running) {
    ask_to_end(e, RL_NOT_STARTED);
    return;
  }
  e->end = RL_NOT_STARTED;
  uv_timer_start(&e->timer, on_failed, 0, 0);
}
