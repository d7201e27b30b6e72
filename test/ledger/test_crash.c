/* SPDX-License-Identifier: MIT */
/*
 * A disk that fails, or with which the program ends, at each of the things that
 * a ledger does to it. What was promised is there at the next start; what is
 * there was saved, or says only that it was to be.
 */
#include "ledger/bench.h"

#include <errno.h>

/* One thread of the pool at a time. */
static struct {
  int n;       /* things done to the disk */
  int fail_at; /* from this one on nothing happens any more; 0: never */
  int once;    /* only this one */
  int half;    /* of a write that fails something is there */
  int code;
  uint64_t synced; /* so many bytes are safe */
  int fd;
} disk;

static int is_failing(void) {
  disk.n++;
  return disk.fail_at > 0 &&
         (disk.once ? disk.n == disk.fail_at : disk.n >= disk.fail_at);
}

static int64_t bad_write(int fd, const void *data, size_t n) {
  disk.fd = fd;
  if (!is_failing())
    return tnk__ledger_disk.write(fd, data, n);
  if (disk.half && n > 1)
    (void)tnk__ledger_disk.write(fd, data, n / 2);
  return disk.code;
}

static int bad_sync(int fd) {
  struct stat about;

  if (is_failing())
    return disk.code;
  CHECK_INT(fstat(fd, &about), 0);
  disk.synced = (uint64_t)about.st_size;
  return tnk__ledger_disk.sync(fd);
}

static int bad_cut(int fd, uint64_t size) {
  return is_failing() ? disk.code : tnk__ledger_disk.cut(fd, size);
}

static int bad_folder(const char *path) {
  return is_failing() ? disk.code : tnk__ledger_disk.sync_folder(path);
}

static int lock_at_once(int fd) {
  return tnk__ledger_disk.lock(fd);
}

static const tnk__ledger_disk_t bad_disk = {bad_write, bad_sync, bad_cut,
                                            bad_folder, lock_at_once};

static void start_failing(bench_t *bench, int at, int once, int half,
                          int code) {
  bench->script.service->ledgers.disk = &bad_disk;
  memset(&disk, 0, sizeof(disk));
  disk.fail_at = at;
  disk.once = once;
  disk.half = half;
  disk.code = code;
}

enum { N_SAVES = 3 };

typedef struct {
  int n_ok;      /* saves that were promised */
  size_t n_sent; /* that the service was asked for */
  int is_opened;
} life_t;

/* A run of some saves on a disk that may fail. */
static life_t live(bench_t *bench) {
  life_t life = {0, 0, 0};
  outcome_t outcome;
  char name[16];

  outcome_of(&bench->opened,
             tnk_ledger_open(bench->script.service, bench->run, NULL));
  outcome_wait(&bench->script, &bench->opened);
  bench->ledger = tnk_promise_ledger(bench->opened.promise);
  life.is_opened = bench->ledger != NULL;
  for (int i = 0; i < N_SAVES && life.is_opened; i++) {
    snprintf(name, sizeof(name), "n%d", i);
    outcome_of(&outcome, bench_save(bench, name, name));
    outcome_wait(&bench->script, &outcome);
    CHECK(outcome.status == TNK_OK || outcome.status == TNK_EFILE);
    life.n_ok += outcome.status == TNK_OK;
    outcome_drop(&outcome);
  }
  life.n_sent = bench->script.n_sent;
  return life;
}

static size_t n_announced(const bench_t *bench) {
  static const char intent[] = "\"tnk\":\"intent\"";
  char *text = bench_read(bench);
  size_t n = 0;

  for (const char *at = text; (at = strstr(at, intent)) != NULL; at++)
    n++;
  free(text);
  return n;
}

/* What the next program finds. */
static void check_after(bench_t *bench, const life_t *life, int exact) {
  size_t n;

  bench_begin(bench);
  bench_open_ledger(bench);
  n = tnk_ledger_count(bench->ledger);
  CHECK(n >= (size_t)life->n_ok);
  if (exact)
    CHECK_INT(n, life->n_ok);
  /* Nothing is there that the service was not asked for, and nothing was asked
   * for that is not announced. */
  CHECK(n <= life->n_sent);
  CHECK(n_announced(bench) >= life->n_sent);
  for (size_t i = 0; i < n; i++)
    CHECK(tnk_ledger_entry(bench->ledger, i)->cursor != NULL);
  bench_close(bench);
}

/* The number of things that a whole life does. */
static int count_all(void) {
  bench_t bench;
  life_t life;
  int n;

  bench_folder(&bench);
  bench_begin(&bench);
  start_failing(&bench, 0, 0, 0, 0);
  life = live(&bench);
  CHECK_INT(life.n_ok, N_SAVES);
  n = disk.n;
  bench_close(&bench);
  CHECK(n >= 1 + N_SAVES * 4);
  return n;
}

/* The program ends at the i-th thing; of what was written and not synchronized
 * there is all, nothing, or some. */
TEST(a_crash_at_each_write_and_sync_loses_nothing_that_was_promised) {
  const int n = count_all();

  for (int i = 1; i <= n; i++)
    for (int kept = 0; kept < 3; kept++) {
      bench_t bench;
      life_t life;
      struct stat about;

      bench_folder(&bench);
      bench_begin(&bench);
      start_failing(&bench, i, 0, kept == 1, -EIO);
      life = live(&bench);
      bench_end(&bench);
      if (kept > 0 && stat(bench.file, &about) == 0 &&
          (uint64_t)about.st_size > disk.synced)
        CHECK_INT(
            truncate(bench.file, (off_t)(kept == 2 ? disk.synced
                                                   : ((uint64_t)about.st_size +
                                                      disk.synced) /
                                                         2)),
            0);
      check_after(&bench, &life, 0);
    }
}

TEST(a_disk_that_is_full_for_a_moment_costs_one_save) {
  const int n = count_all();

  for (int i = 2; i <= n; i++) {
    bench_t bench;
    life_t life;

    bench_folder(&bench);
    bench_begin(&bench);
    start_failing(&bench, i, 1, i % 2, -ENOSPC);
    life = live(&bench);
    CHECK(life.is_opened);
    CHECK_INT(life.n_ok, N_SAVES - 1);
    CHECK(!bench_has(&bench, "}{"));
    bench_end(&bench);
    check_after(&bench, &life, 1);
  }
}

TEST(a_disk_that_refuses_an_intent_keeps_the_service_unasked) {
  bench_t bench;
  outcome_t outcome;

  bench_folder(&bench);
  bench_begin(&bench);
  start_failing(&bench, 0, 0, 1, -EROFS);
  bench_open_ledger(&bench);
  disk.fail_at = disk.n + 1;
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", NULL),
               TNK_EFILE);
  CHECK(strstr(outcome.text, "nothing was saved") != NULL);
  CHECK(strstr(outcome.text, "read-only") != NULL);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_EROFS);
  CHECK_INT(bench.script.n_sent, 0);
  outcome_drop(&outcome);
  /* The model goes on. */
  script_ok(&bench.script, &outcome, script_step(&bench.script));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_disk_that_refuses_a_result_says_where_the_state_is) {
  bench_t bench;
  outcome_t outcome;

  bench_folder(&bench);
  bench_begin(&bench);
  start_failing(&bench, 0, 0, 1, -ENOSPC);
  bench_open_ledger(&bench);
  disk.fail_at = disk.n + 4; /* the folder and the intent come before */
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", NULL),
               TNK_EFILE);
  CHECK(strstr(outcome.text, "tinker://run/save_weights") != NULL);
  CHECK_INT(bench.script.n_sent, 1);
  outcome_drop(&outcome);
  bench_close(&bench);
}
