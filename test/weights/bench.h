/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_WEIGHTS_BENCH_H
#define TNK_TEST_WEIGHTS_BENCH_H

#define _DEFAULT_SOURCE /* flock() */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/files/weights/job.h"
#include "support/tree.h"
#include "task/script.h"
#include "tnk/weights.h"

#define PATH "tinker://r:1/external_weights/hf"
#define URLS                                                                   \
  "/api/v1/training_runs/r:1/checkpoints/external_weights/hf/"                 \
  "external_weights_urls"
/* Part of every signed URL, and of nothing that is logged or told. */
#define SIGNATURE "canary-signature"
#define LATER "2100-01-01T00:00:00Z"

enum { STORE_FILES = 12, BIG = 1500000, ASKED_TURNS = 100 };

/* One file of the store. */
typedef struct {
  const char *name;
  const char *data;
  size_t n;
  const char *etag; /* with its quotes; NULL: there is none */
  size_t cut_at;    /* of the next answer's body; 0: it is whole */
  int status;       /* in place of an answer, `n_status` times; -1: always */
  int n_status;
} store_file_t;

/*
 * A service that gives signed URLs and a store of files at another origin, with
 * Range and If-Range as those of object stores; and a folder to download to.
 */
typedef struct {
  script_t script;
  mock_server_t *store;
  store_file_t files[STORE_FILES];
  size_t n_files;
  int n_signed; /* answers with URLs, which number the signatures */
  int oldest;   /* signatures before this one are refused */
  const char *expires;
  int ignores_range;
  int n_asked;     /* turns of the loop that a question has taken */
  uint64_t n_sent; /* bytes of files, as far as they were meant to come */
  char dir[64];
  char target[100];
} bench_t;

static char bench_big[BIG];

static inline void bench_add(bench_t *bench, const char *name, const char *data,
                             size_t n, const char *etag) {
  bench->files[bench->n_files++] =
      (store_file_t){.name = name, .data = data, .n = n, .etag = etag};
}

static inline void bench_urls(mock_request_t *request, void *user) {
  bench_t *bench = user;
  char text[4096];
  size_t n = 0;

  bench->n_signed++;
  n += (size_t)snprintf(text, sizeof(text), "{\"urls\":{");
  for (size_t i = 0; i < bench->n_files; i++)
    n += (size_t)snprintf(
        text + n, sizeof(text) - n, "%s\"%s\":\"%s/w/%s?s=" SIGNATURE "&n=%d\"",
        i > 0 ? "," : "", bench->files[i].name, mock_url(bench->store),
        bench->files[i].name, bench->n_signed);
  snprintf(text + n, sizeof(text) - n, "},\"expires\":\"%s\"}", bench->expires);
  mock_reply_json(request, 200, text);
}

static inline store_file_t *store_find(bench_t *bench, const char *path) {
  for (size_t i = 0; i < bench->n_files; i++)
    if (strcmp(path + strlen("/w/"), bench->files[i].name) == 0)
      return &bench->files[i];
  return NULL;
}

/* Whether the rest of the file is asked for, and from where. */
static inline int store_wants_rest(const bench_t *bench,
                                   const mock_request_t *request,
                                   const store_file_t *file, size_t *from) {
  const char *range = mock_header(request, "range");
  const char *is = mock_header(request, "if-range");

  *from = 0;
  if (range == NULL || bench->ignores_range)
    return 0;
  CHECK(strncmp(range, "bytes=", 6) == 0);
  if (is != NULL && (file->etag == NULL || strcmp(is, file->etag) != 0))
    return 0;
  *from = (size_t)strtoull(range + 6, NULL, 10);
  return *from < file->n;
}

/* That nothing of ours but the URL comes to the store. */
static inline void store_check(const mock_request_t *request) {
  CHECK_STR(request->method, "GET");
  CHECK(mock_header(request, "x-api-key") == NULL);
  CHECK(mock_header(request, "authorization") == NULL);
  CHECK(mock_header(request, "cookie") == NULL);
  CHECK(strstr(request->target, script_key()) == NULL);
}

static inline void store_get(mock_request_t *request, void *user) {
  bench_t *bench = user;
  store_file_t *file = store_find(bench, request->path);
  const char *number = strstr(request->target, "&n=");
  char headers[300];
  size_t n_headers = 0;
  size_t from;
  int is_rest;

  store_check(request);
  if (file == NULL || number == NULL || atoi(number + 3) < bench->oldest) {
    mock_reply(request, 403, NULL, "expired: " SIGNATURE, 9);
    return;
  }
  if (file->n_status != 0) {
    file->n_status -= file->n_status > 0;
    mock_reply(request, file->status, NULL, NULL, 0);
    return;
  }
  is_rest = store_wants_rest(bench, request, file, &from);
  headers[0] = '\0';
  if (file->etag != NULL)
    n_headers =
        (size_t)snprintf(headers, sizeof(headers), "ETag: %s\r\n", file->etag);
  if (is_rest)
    snprintf(headers + n_headers, sizeof(headers) - n_headers,
             "Content-Range: bytes %zu-%zu/%zu\r\n", from, file->n - 1,
             file->n);
  if (file->cut_at > 0) {
    bench->n_sent += file->cut_at;
    mock_reply_cut(request, is_rest ? 206 : 200, headers, file->data + from,
                   file->n - from, 200 + file->cut_at);
    file->cut_at = 0;
    return;
  }
  bench->n_sent += file->n - from;
  mock_reply(request, is_rest ? 206 : 200, headers, file->data + from,
             file->n - from);
}

static inline void bench_open_with(bench_t *bench,
                                   tnk_service_options_t options) {
  uint64_t state = 7;

  memset(bench, 0, sizeof(*bench));
  for (size_t i = 0; i < sizeof(bench_big); i++)
    bench_big[i] = (char)test_random(&state);
  script_open_with(&bench->script, options);
  bench->store = mock_open(&bench->script.uv);
  mock_set_clock(bench->store, &bench->script.service->root.context);
  bench->expires = LATER;
  snprintf(bench->dir, sizeof(bench->dir), "/tmp/tnk-weights-XXXXXX");
  CHECK(mkdtemp(bench->dir) != NULL);
  snprintf(bench->target, sizeof(bench->target), "%s/out", bench->dir);
  mock_on(bench->script.mock, "GET", URLS, bench_urls, bench);
  mock_on(bench->store, NULL, NULL, store_get, bench);
}

static inline void bench_open(bench_t *bench) {
  bench_open_with(bench, (tnk_service_options_t)TNK_SERVICE_OPTIONS_INIT);
}

/* An adapter: a small file and a large one. */
static inline void bench_open_adapter(bench_t *bench) {
  bench_open(bench);
  bench_add(bench, "adapter_model.safetensors", bench_big, BIG, "\"big\"");
  bench_add(bench, "adapter_config.json", "{}", 2, "\"small\"");
}

/* ---- Time ---- */

/* Whether nothing goes on by itself: all that is under way pauses. */
static inline int bench_is_idle(bench_t *bench) {
  const tnk__list_t *jobs = &bench->script.service->weights.jobs;
  int is_idle = 0;

  TNK__LIST_FOREACH (node, jobs) {
    const tnk__weights_job_t *job =
        tnk__container_of_const(node, tnk__weights_job_t, link);
    if (job->asked != NULL && ++bench->n_asked > ASKED_TURNS)
      return 1; /* the call pauses: it would have been answered by now */
    if (job->is_busy || job->asked != NULL)
      return 0;
    bench->n_asked = 0;
    is_idle |= tnk__timer_is_active(&job->pause);
    for (size_t i = 0; i < job->n_slots; i++) {
      const tnk__weights_slot_t *slot = &job->slots[i];
      if (slot->file != NULL &&
          !tnk__timer_is_active(&slot->download.fetch.timer))
        return 0;
      is_idle |= slot->file != NULL;
    }
  }
  return is_idle;
}

/* Wait for a promise; time goes on where nothing else would. */
static inline void bench_wait(bench_t *bench, outcome_t *outcome) {
  while (outcome->n_done == 0) {
    uv_run(&bench->script.uv, UV_RUN_NOWAIT);
    if (bench_is_idle(bench))
      tnk__context_advance(&bench->script.service->root.context, 100);
  }
}

static inline tnk_promise_t *bench_start(bench_t *bench,
                                         const tnk_weights_options_t *options) {
  return tnk_weights_download(bench->script.service, PATH, bench->target,
                              options);
}

/* Wait until the pool has let go of what a download has left. */
static inline void bench_settle(bench_t *bench) {
  char path[200];
  int fd;

  snprintf(path, sizeof(path), "%s.incomplete/journal", bench->target);
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0)
    uv_run(&bench->script.uv, UV_RUN_NOWAIT);
  close(fd);
}

static inline void bench_get(bench_t *bench, outcome_t *outcome,
                             const tnk_weights_options_t *options) {
  outcome_of(outcome, bench_start(bench, options));
  bench_wait(bench, outcome);
}

/* A download that is to end so. */
static inline void bench_get_not(bench_t *bench,
                                 const tnk_weights_options_t *options,
                                 int status, const char *text) {
  outcome_t outcome;

  bench_get(bench, &outcome, options);
  if (outcome.status != status || strstr(outcome.text, text) == NULL)
    test_fail(__FILE__, __LINE__, "%d, \"%s\" expected: %d, %s", status, text,
              outcome.status, outcome.text);
  outcome_drop(&outcome);
  bench_settle(bench);
}

/* ---- Files ---- */

static inline int bench_exists(const bench_t *bench, const char *name) {
  char path[300];

  snprintf(path, sizeof(path), "%s/%s", bench->dir, name);
  return access(path, F_OK) == 0;
}

static inline void bench_check_file(const bench_t *bench, const char *name,
                                    const char *data, size_t n) {
  check_below(bench->dir, name, data, n);
}

static inline void bench_write(const bench_t *bench, const char *name,
                               const char *data) {
  write_below(bench->dir, name, data, strlen(data));
}

/* That the target has the files of the store and nothing else is beside it. */
static inline void bench_check(const bench_t *bench) {
  char name[200];

  for (size_t i = 0; i < bench->n_files; i++) {
    snprintf(name, sizeof(name), "out/%s", bench->files[i].name);
    bench_check_file(bench, name, bench->files[i].data, bench->files[i].n);
  }
  CHECK(!bench_exists(bench, "out.incomplete"));
}

/* A download that is to come whole. */
static inline void bench_get_ok(bench_t *bench,
                                const tnk_weights_options_t *options) {
  bench_get_not(bench, options, TNK_OK, "");
  bench_check(bench);
}

static inline void bench_end(bench_t *bench) {
  remove_all(bench->dir);
}

static inline void bench_close(bench_t *bench) {
  mock_close(bench->store);
  script_close(&bench->script);
  bench_end(bench);
}

#endif
