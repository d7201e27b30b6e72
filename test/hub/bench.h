/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HUB_BENCH_H
#define TNK_TEST_HUB_BENCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/api/hub.h"
#include "support/tree.h"
#include "support/mock_server.h"
#include "support/test.h"
#include "tnk/tnk.h"

/* Secrets that must be neither logged nor told. */
#define TOKEN "hf_canary0123456789"
#define SIGNATURE "sigcanary42"

/* A hub and a scripted server on one loop with a fake clock, and a folder. */
typedef struct {
  uv_loop_t uv;
  mock_server_t *mock;
  mock_server_t *cdn; /* another origin */
  tnk_hub_t *hub;
  char dir[64];
  int n_lines; /* logged */
  int is_closed;
  size_t n_own; /* handles that the hub holds while nothing is under way */
} bench_t;

/* How a promise ended. */
typedef struct {
  tnk_promise_t *promise;
  int n_done;
  int status;
  char text[512];
} outcome_t;

static inline void bench_log(tnk_log_level_t level, const char *subject,
                             const char *message, size_t length, void *user) {
  bench_t *bench = user;

  (void)level;
  (void)subject;
  (void)length;
  bench->n_lines++;
  CHECK(strstr(message, TOKEN) == NULL);
  CHECK(strstr(message, SIGNATURE) == NULL);
}

static inline void outcome_done(tnk_promise_t *promise, int status,
                                void *user) {
  outcome_t *outcome = user;

  CHECK(promise == outcome->promise);
  outcome->n_done++;
  outcome->status = status;
  snprintf(outcome->text, sizeof(outcome->text), "%s",
           tnk_promise_text(promise));
  CHECK(strstr(outcome->text, TOKEN) == NULL);
  CHECK(strstr(outcome->text, SIGNATURE) == NULL);
}

static inline void outcome_of(outcome_t *outcome, tnk_promise_t *promise) {
  memset(outcome, 0, sizeof(*outcome));
  CHECK(promise != NULL);
  outcome->promise = promise;
  tnk_then(tnk_promise_ref(promise), outcome_done, outcome);
}

static inline void outcome_drop(outcome_t *outcome) {
  tnk_promise_unref(outcome->promise);
}

static inline void outcome_wait(bench_t *bench, outcome_t *outcome) {
  mock_wait_flag(bench->mock, &outcome->n_done, 1);
  CHECK_INT(outcome->n_done, 1);
}

/* A turn of the loop; time goes on when the hub waits for nothing else. */
static inline void bench_step(bench_t *bench) {
  const tnk__timer_t *next;

  uv_run(&bench->uv, UV_RUN_NOWAIT);
  next = bench->hub->root.context.timers.root;
  if (next != NULL && !tnk__timer_is_background(next) &&
      bench->hub->root.context.n_held <= bench->n_own + 1) /* a connection */
    tnk__context_advance(&bench->hub->root.context, 100);
}

/* The same when pauses are expected. */
static inline void outcome_wait_long(bench_t *bench, outcome_t *outcome) {
  while (outcome->n_done == 0)
    bench_step(bench);
}

static inline void bench_clear_env(void) {
  static const char *const names[] = {"HF_HOME",
                                      "HF_HUB_CACHE",
                                      "HUGGINGFACE_HUB_CACHE",
                                      "HF_ENDPOINT",
                                      "HF_TOKEN",
                                      "HUGGING_FACE_HUB_TOKEN",
                                      "HF_TOKEN_PATH",
                                      "HF_HUB_OFFLINE",
                                      "TRANSFORMERS_OFFLINE",
                                      "HF_HUB_DISABLE_IMPLICIT_TOKEN",
                                      "XDG_CACHE_HOME"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    unsetenv(names[i]);
}

static inline void bench_open_hub(bench_t *bench,
                                  const tnk_hub_options_t *with) {
  const tnk_logger_t logger = {TNK_LOG_TRACE, bench_log, bench};
  tnk_hub_options_t options = *with;
  char cache[80];
  char why[200];

  snprintf(cache, sizeof(cache), "%s/cache", bench->dir);
  options.allocator = test_allocator();
  options.logger = &logger;
  if (options.endpoint == NULL)
    options.endpoint = mock_url(bench->mock);
  if (options.cache_dir == NULL)
    options.cache_dir = cache;
  if (options.token == NULL)
    options.token = TOKEN;
  if (tnk_hub_open(&bench->hub, &bench->uv, &options, why, sizeof(why)) < 0)
    test_fail(__FILE__, __LINE__, "%s", why);
  tnk__context_fake_clock(&bench->hub->root.context, 1000000);
  bench->n_own = bench->hub->root.context.n_held;
}

static inline void bench_open(bench_t *bench) {
  const tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  memset(bench, 0, sizeof(*bench));
  bench_clear_env();
  snprintf(bench->dir, sizeof(bench->dir), "/tmp/tnk-hub-XXXXXX");
  CHECK(mkdtemp(bench->dir) != NULL);
  CHECK_INT(uv_loop_init(&bench->uv), 0);
  bench->mock = mock_open(&bench->uv);
  bench->cdn = mock_open(&bench->uv);
  bench_open_hub(bench, &options);
}

static inline void bench_hub_closed(void *user) {
  ((bench_t *)user)->is_closed++;
}

static inline void bench_close_hub(bench_t *bench) {
  bench->is_closed = 0;
  tnk_hub_close(bench->hub, bench_hub_closed, bench);
  mock_wait_flag(bench->mock, &bench->is_closed, 1);
  bench->hub = NULL;
}

static inline const char *bench_read(const bench_t *bench, const char *name,
                                     size_t *n) {
  return read_below(bench->dir, name, n);
}

static inline void bench_check_file(const bench_t *bench, const char *name,
                                    const char *text) {
  size_t n;

  if (text == NULL)
    CHECK(bench_read(bench, name, &n) == NULL);
  else
    check_below(bench->dir, name, text, strlen(text));
}

/* Answers with the text that is given as `user`. */
static inline void bench_reply(mock_request_t *request, void *user) {
  mock_reply(request, 200, "ETag: \"one\"\r\n", user, strlen(user));
}

/* A download to a file below the bench's folder. */
static inline tnk_promise_t *
bench_download(const bench_t *bench, const mock_server_t *from,
               const char *target, const char *name,
               const tnk_download_options_t *options) {
  char url[300];
  char path[200];

  snprintf(url, sizeof(url), "%s%s", mock_url(from), target);
  snprintf(path, sizeof(path), "%s/%s", bench->dir, name);
  return tnk_hub_download(bench->hub, url, path, options);
}

static inline void bench_get(bench_t *bench, outcome_t *outcome,
                             const char *target,
                             const tnk_download_options_t *options) {
  outcome_of(outcome,
             bench_download(bench, bench->mock, target, "out/file", options));
  outcome_wait_long(bench, outcome);
}

/* The same, which is to end so. */
static inline void bench_get_not(bench_t *bench, const char *target,
                                 const tnk_download_options_t *options,
                                 int status) {
  outcome_t outcome;

  bench_get(bench, &outcome, target, options);
  if (outcome.status != status)
    test_fail(__FILE__, __LINE__, "%d expected: %s", status, outcome.text);
  outcome_drop(&outcome);
}

/* ... and which is to bring this text. */
static inline void bench_get_ok(bench_t *bench, const char *target,
                                const tnk_download_options_t *options,
                                const char *text) {
  bench_get_not(bench, target, options, TNK_OK);
  bench_check_file(bench, "out/file", text);
}

static inline void bench_reopen_hub(bench_t *bench,
                                    const tnk_hub_options_t *options) {
  bench_close_hub(bench);
  bench_open_hub(bench, options);
}

static inline void bench_close(bench_t *bench) {
  if (bench->hub != NULL)
    bench_close_hub(bench);
  mock_close(bench->mock);
  mock_close(bench->cdn);
  uv_run(&bench->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&bench->uv), 0);
  remove_all(bench->dir);
}

/* Run a scenario with each of its allocations failing in turn. It returns 1
 * when it came to its end without that. */
static inline void bench_without_memory(int (*run)(long n)) {
  long n = 0;

  while (!run(n))
    CHECK(++n < 1000);
  CHECK(n > 10);
}

/* Run a scenario that is ended after so many turns of the loop, in both ways.
 * It returns 1 when it was over before. */
static inline void bench_end_everywhere(int (*run)(int n_turns, int closes)) {
  for (int closes = 0; closes < 2; closes++) {
    int n = 0;
    while (!run(n, closes))
      CHECK(++n < 2000);
    CHECK(n > 5);
  }
}

/* One such end, by closing the hub or by canceling. 1: the first of them was
 * over before. The others may be over earlier or later than it. */
static inline int bench_end_after(bench_t *bench, int n_turns, int closes,
                                  outcome_t *outcomes, int n) {
  const int status = closes ? TNK_ECLOSED : TNK_ECANCELED;
  int was_done[8];

  CHECK(n <= 8);
  for (int i = 0; i < n_turns && outcomes[0].n_done == 0; i++)
    uv_run(&bench->uv, UV_RUN_ONCE);
  for (int i = 0; i < n; i++)
    was_done[i] = tnk_promise_state(outcomes[i].promise) != TNK_PENDING;
  if (closes)
    bench_close_hub(bench);
  for (int i = 0; i < n && !closes; i++)
    tnk_promise_cancel(outcomes[i].promise);
  for (int i = 0; i < n; i++) {
    outcome_wait(bench, &outcomes[i]);
    CHECK_INT(outcomes[i].status, was_done[i] ? TNK_OK : status);
  }
  return was_done[0];
}

/* Whether an operation did what it should with the n-th allocation failing. */
static inline int bench_check_memory(const outcome_t *outcome, long n) {
  const int did_fail = test_alloc_did_fail();

  test_alloc_fail_at(-1);
  if (outcome->status != TNK_OK && (outcome->status != TNK_ENOMEM || !did_fail))
    test_fail(__FILE__, __LINE__, "allocation %ld: %s", n, outcome->text);
  return !did_fail;
}

/* Entries of a folder below the bench's that are not hidden. */
static inline int bench_count(const bench_t *bench, const char *folder) {
  char path[256];
  struct dirent *entry;
  DIR *dir;
  int n = 0;

  snprintf(path, sizeof(path), "%s/%s", bench->dir, folder);
  dir = opendir(path);
  if (dir == NULL)
    return 0;
  while ((entry = readdir(dir)) != NULL)
    n += entry->d_name[0] != '.';
  closedir(dir);
  return n;
}

static inline void bench_write(const bench_t *bench, const char *name,
                               const char *text) {
  write_below(bench->dir, name, text, strlen(text));
}

#endif
