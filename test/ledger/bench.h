/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LEDGER_BENCH_H
#define TNK_TEST_LEDGER_BENCH_H

#define _DEFAULT_SOURCE /* mkdtemp() */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/ledger/ledger.h"
#include "support/tree.h"
#include "task/script.h"
#include "tnk/ledger.h"

/* A service with a model, a folder, and a ledger in it. */
typedef struct {
  script_t script;
  outcome_t opened;
  tnk_ledger_t *ledger;
  char dir[64];
  char run[80];
  char file[120];
} bench_t;

static inline void bench_folder(bench_t *bench) {
  memset(bench, 0, sizeof(*bench));
  snprintf(bench->dir, sizeof(bench->dir), "/tmp/tnk-ledger-XXXXXX");
  CHECK(mkdtemp(bench->dir) != NULL);
  snprintf(bench->run, sizeof(bench->run), "%s/runs/a", bench->dir);
  snprintf(bench->file, sizeof(bench->file), "%s/checkpoints.jsonl",
           bench->run);
}

/* A service, which `bench` may have had before. */
static inline void bench_begin(bench_t *bench) {
  script_open_train(&bench->script);
}

static inline void bench_open_ledger(bench_t *bench) {
  script_ok(&bench->script, &bench->opened,
            tnk_ledger_open(bench->script.service, bench->run, NULL));
  bench->ledger = tnk_promise_ledger(bench->opened.promise);
  CHECK(bench->ledger != NULL);
}

static inline void bench_open(bench_t *bench) {
  bench_folder(bench);
  bench_begin(bench);
  bench_open_ledger(bench);
}

static inline void bench_end(bench_t *bench) {
  outcome_drop(&bench->opened);
  script_close(&bench->script);
}

static inline void bench_close(bench_t *bench) {
  bench_end(bench);
  remove_below(bench->dir);
  rmdir(bench->dir);
}

/* The file as text; the caller's to free. */
static inline char *bench_read(const bench_t *bench) {
  FILE *file = fopen(bench->file, "r");
  char *text = calloc(1, 1 << 20);

  CHECK(file != NULL && text != NULL);
  CHECK(fread(text, 1, (1 << 20) - 1, file) > 0 || feof(file));
  fclose(file);
  return text;
}

static inline void bench_write(const bench_t *bench, const char *text) {
  char runs[80];
  FILE *file;

  snprintf(runs, sizeof(runs), "%s/runs", bench->dir);
  (void)mkdir(runs, 0777);
  (void)mkdir(bench->run, 0777);
  file = fopen(bench->file, "w");
  CHECK(file != NULL);
  CHECK(fputs(text, file) >= 0);
  CHECK(fclose(file) == 0);
}

static inline int bench_has(const bench_t *bench, const char *part) {
  char *text = bench_read(bench);
  const int has = strstr(text, part) != NULL;

  free(text);
  return has;
}

static inline tnk_promise_t *bench_save(bench_t *bench, const char *name,
                                        const char *cursor) {
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  how.name = name;
  how.cursor = cursor;
  return tnk_ledger_save(bench->ledger, bench->script.training, &how);
}

#endif
