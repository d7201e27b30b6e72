/* SPDX-License-Identifier: MIT */
/*
 * An idle service in an event loop that is not libuv's:
 *
 *   foreign KIND SECONDS
 *
 * makes a sampling client, does nothing for SECONDS, samples once and closes
 * the service. KIND says who waits: poll, epoll, glib, or sleep (uv_run() at
 * fixed intervals).
 * `foreign layout` prints the numbers that foreign.py needs.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <tnk/tnk.h>
#include <unistd.h>
#include <uv.h>

enum { SLEEP_MS = 20, SKIPPED = 77 };

static int epoll_fd = -1;

static void wait_poll(int fd, int timeout_ms) {
  struct pollfd watched = {.fd = fd, .events = POLLIN};

  poll(&watched, 1, timeout_ms);
}

static void wait_epoll(int fd, int timeout_ms) {
  struct epoll_event event = {.events = EPOLLIN};

  if (epoll_fd < 0) {
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
  }
  epoll_wait(epoll_fd, &event, 1, timeout_ms);
}

static void wait_sleep(int fd, int timeout_ms) {
  const struct timespec pause = {.tv_nsec = SLEEP_MS * 1000000L};

  (void)fd;
  (void)timeout_ms;
  nanosleep(&pause, NULL);
}

/* GLib without its headers: four functions, with its types written out. */
static struct {
  unsigned (*fd_add)(int fd, int condition,
                     int (*fn)(int fd, int condition, void *user), void *user);
  unsigned (*timeout_add)(unsigned ms, int (*fn)(void *user), void *user);
  int (*remove)(unsigned id);
  int (*iterate)(void *context, int may_block);
  unsigned watch;
  int is_over;
} glib;

static int on_glib_fd(int fd, int condition, void *user) {
  (void)fd;
  (void)condition;
  (void)user;
  return 1;
}

static int on_glib_timeout(void *user) {
  (void)user;
  glib.is_over = 1;
  return 0;
}

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);

  if (found == NULL) {
    fprintf(stderr, "foreign: GLib has no %s\n", name);
    exit(SKIPPED);
  }
  return found;
}

static void load_glib(void) {
  void *library = dlopen("libglib-2.0.so.0", RTLD_NOW);

  if (library == NULL)
    exit(SKIPPED);
  *(void **)&glib.fd_add = symbol(library, "g_unix_fd_add");
  *(void **)&glib.timeout_add = symbol(library, "g_timeout_add");
  *(void **)&glib.remove = symbol(library, "g_source_remove");
  *(void **)&glib.iterate = symbol(library, "g_main_context_iteration");
}

static void wait_glib(int fd, int timeout_ms) {
  unsigned timeout = 0;

  if (glib.watch == 0)
    glib.watch = glib.fd_add(fd, POLLIN, on_glib_fd, NULL);
  glib.is_over = 0;
  if (timeout_ms > 0)
    timeout = glib.timeout_add((unsigned)timeout_ms, on_glib_timeout, NULL);
  glib.iterate(NULL, timeout_ms != 0);
  if (timeout_ms > 0 && !glib.is_over)
    glib.remove(timeout);
}

static const struct {
  const char *name;
  void (*wait)(int fd, int timeout_ms);
} kinds[] = {{"poll", wait_poll},
             {"epoll", wait_epoll},
             {"glib", wait_glib},
             {"sleep", wait_sleep}};
static void (*wait_on)(int fd, int timeout_ms);

/* The loop has run since the last call of the library. */
static void turn(uv_loop_t *loop) {
  wait_on(uv_backend_fd(loop), uv_backend_timeout(loop));
  uv_run(loop, UV_RUN_NOWAIT);
}

static void settle(uv_loop_t *loop, const tnk_promise_t *promise) {
  uv_run(loop, UV_RUN_NOWAIT);
  while (tnk_promise_state(promise) == TNK_PENDING)
    turn(loop);
  if (tnk_promise_status(promise) == TNK_OK)
    return;
  fprintf(stderr, "foreign: %s\n", tnk_promise_text(promise));
  exit(1);
}

/* Wakes the loop up, and nothing else. */
static void on_time(uv_timer_t *timer) {
  (void)timer;
}

static void be_idle(uv_loop_t *loop, uint64_t ms) {
  const uint64_t end = uv_hrtime() + ms * 1000000;
  static uv_timer_t timer; /* libuv closes it later */

  uv_timer_init(loop, &timer);
  uv_timer_start(&timer, on_time, ms, 0);
  /* It does not keep the loop alive: the service has to. */
  uv_unref((uv_handle_t *)&timer);
  uv_run(loop, UV_RUN_NOWAIT);
  while (uv_hrtime() < end)
    turn(loop);
  uv_close((uv_handle_t *)&timer, NULL);
}

static int run(uv_loop_t *loop, uint64_t idle_ms) {
  const int32_t text[] = {'H', 'i'};
  const tnk_model_input_t prompt = {.tokens = text, .n_tokens = 2};
  tnk_service_options_t how = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t weights = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_service_t *service;
  tnk_promise_t *made;
  tnk_promise_t *sample;

  how.keep_loop_alive = TNK_YES;
  if (tnk_service_open(&service, loop, &how, NULL, 0) != TNK_OK)
    return 1;
  weights.base_model = "tnk/byte-lm";
  made = tnk_service_create_sampling(service, &weights);
  settle(loop, made);
  be_idle(loop, idle_ms);
  params.max_tokens = 4;
  sample =
      tnk_sampling_sample(tnk_promise_sampling(made), &prompt, &params, NULL);
  settle(loop, sample);
  tnk_promise_unref(sample);
  tnk_promise_unref(made);
  tnk_service_close(service, NULL, NULL);
  uv_run(loop, UV_RUN_NOWAIT);
  while (uv_loop_alive(loop))
    turn(loop);
  return uv_loop_close(loop) != 0;
}

static int print_layout(void) {
  return printf("%zu %zu %zu %zu\n", sizeof(tnk_service_options_t),
                offsetof(tnk_service_options_t, keep_loop_alive),
                sizeof(tnk_sampling_options_t),
                offsetof(tnk_sampling_options_t, base_model)) < 0;
}

int main(int argc, char **argv) {
  uv_loop_t loop;

  if (argc == 2 && strcmp(argv[1], "layout") == 0)
    return print_layout();
  if (argc != 3)
    return 2;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if (strcmp(argv[1], kinds[i].name) == 0)
      wait_on = kinds[i].wait;
  if (wait_on == NULL || uv_loop_init(&loop) != 0)
    return 2;
  if (wait_on == wait_glib)
    load_glib();
  return run(&loop, strtoull(argv[2], NULL, 10) * 1000);
}
