/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"

#include <limits.h>
#include <time.h>

static void open_with(bench_t *bench, const char *text) {
  bench_folder(bench);
  bench_write(bench, text);
  bench_begin(bench);
  bench_open_ledger(bench);
}

#define LINE(name, batch)                                                      \
  "{\"name\": \"" name "\", \"batch\": " batch                                 \
  ", \"epoch\": 1, \"state_path\": \"tinker://r/weights/" name                 \
  "\", \"loss\": 0.5}\n"

TEST(lines_of_the_cookbook_are_read) {
  bench_t bench;
  const tnk_ledger_entry_t *entry;

  open_with(
      &bench,
      LINE("000010", "10") LINE(
          "000020",
          "20") "{\"name\": \"eval\", \"sampler_path\": \"tinker://r/s/e\"}\n");
  CHECK_INT(tnk_ledger_count(bench.ledger), 3);
  entry = tnk_ledger_last(bench.ledger);
  CHECK_STR(entry->state_path, "tinker://r/weights/000020");
  CHECK_INT(entry->batch, 20);
  CHECK_INT(entry->n_steps, 20);
  CHECK_INT(entry->epoch, 1);
  CHECK(strstr(entry->json, "\"loss\": 0.5") != NULL);
  CHECK(entry->cursor == NULL);
  CHECK_STR(tnk_ledger_entry(bench.ledger, 2)->sampler_path, "tinker://r/s/e");
  CHECK_INT(bench.script.n_warnings, 0);
  bench_close(&bench);
}

TEST(a_line_that_was_cut_off_anywhere_counts_for_nothing) {
  static const char whole[] = LINE("000010", "10");
  static const char next[] = LINE("000020", "20");
  bench_t bench;
  outcome_t outcome;
  char text[400];
  char *file;

  for (size_t n = 0; n < sizeof(next) - 1; n += n + 9 < sizeof(next) ? 7 : 1) {
    snprintf(text, sizeof(text), "%s%.*s", whole, (int)n, next);
    open_with(&bench, text);
    /* Only its end is missing: it counts. */
    CHECK_INT(tnk_ledger_last(bench.ledger)->batch,
              n + 2 == sizeof(next) ? 20 : 10);
    CHECK_INT(bench.script.n_warnings, n > 0);
    script_ok(&bench.script, &outcome, bench_save(&bench, "a", NULL));
    outcome_drop(&outcome);
    file = bench_read(&bench);
    /* Each line is one that Python's json can read. */
    for (char *at = file; *at != '\0'; at = strchr(at, '\n') + 1)
      CHECK(at[0] == '{' && strchr(at, '\n') != NULL &&
            strchr(at, '\n')[-1] == '}');
    free(file);
    bench_close(&bench);
  }
}

TEST(lines_that_cannot_be_read_are_told_and_let_be) {
  bench_t bench;

  open_with(&bench,
            LINE("000010", "10") "garbage\n[1]\n{\"batch\":3}\n\n"
                                 "{\"name\":\"x\",\"tnk\":\"later\"}\n");
  CHECK_INT(tnk_ledger_count(bench.ledger), 1);
  CHECK_INT(bench.script.n_warnings, 1);
  CHECK(strstr(bench.script.last_log, "3 lines cannot be read") != NULL);
  CHECK(bench_has(&bench, "garbage"));
  bench_close(&bench);
}

TEST(intents_without_an_end_are_remembered) {
  bench_t bench;

  open_with(&bench,
            "{\"name\":\"a\",\"tnk\":\"intent\",\"tnk_attempt\":3,\"tnk_save\":"
            "1}\n"
            "{\"name\":\"b\",\"tnk\":\"intent\",\"tnk_attempt\":3,\"tnk_save\":"
            "2}\n"
            "{\"name\":\"a\",\"tnk\":\"saved\",\"tnk_attempt\":3,\"tnk_save\":"
            "1,\"state_path\":\"tinker://r/weights/a\"}\n");
  CHECK_INT(bench.ledger->n_intents, 1);
  CHECK_STR(bench.ledger->intents[0].name, "b");
  CHECK_INT(bench.ledger->attempt, 4);
  bench_close(&bench);
}

TEST(many_intents_do_not_cost_more_than_their_place) {
  bench_t bench;
  char *text = malloc(4000 * 80);
  size_t n = 0;

  CHECK(text != NULL);
  for (int i = 1; i <= 3000; i++)
    n += (size_t)snprintf(text + n, 4000 * 80 - n,
                          "{\"name\":\"a\",\"tnk\":\"intent\",\"tnk_attempt\":"
                          "1,\"tnk_save\":%d}\n",
                          i);
  open_with(&bench, text);
  free(text);
  CHECK_INT(bench.ledger->n_intents, 1024);
  CHECK_INT(bench.ledger->intents[1023].save, 3000);
  bench_close(&bench);
}

/* Opening reads; what a new file needs is done with its first line. */
static int n_syncs;

static int counted_sync(int fd) {
  n_syncs++;
  return tnk__ledger_disk.sync(fd);
}

static int counted_folder(const char *path) {
  n_syncs++;
  return tnk__ledger_disk.sync_folder(path);
}

TEST(a_ledger_that_is_only_opened_waits_for_no_disk) {
  tnk__ledger_disk_t disk = tnk__ledger_disk;
  bench_t bench;
  outcome_t outcome;

  n_syncs = 0;
  disk.sync = counted_sync;
  disk.sync_folder = counted_folder;
  bench_folder(&bench);
  bench_write(&bench, LINE("000010", "10"));
  bench_begin(&bench);
  bench.script.service->ledgers.disk = &disk;
  bench_open_ledger(&bench);
  CHECK_INT(n_syncs, 0);
  script_ok(&bench.script, &outcome, bench_save(&bench, "a", NULL));
  outcome_drop(&outcome);
  CHECK_INT(n_syncs, 3); /* the folder, the intent, the result */
  bench_close(&bench);
}

/* ---- A file that is replaced between opening and locking ---- */

static struct {
  const char *path;
  int n_left; /* so often it is replaced, or removed */
  int is_removed;
  int n_locks;
} thief;

static void put_another(void) {
  char other[160];
  FILE *file;

  snprintf(other, sizeof(other), "%s.new", thief.path);
  file = fopen(other, "w");
  CHECK(file != NULL);
  fprintf(
      file,
      "{\"name\":\"n\",\"batch\":%d,\"state_path\":\"tinker://r/weights/n\"}"
      "\n",
      100 + thief.n_left % 1000);
  CHECK_INT(fclose(file), 0);
  CHECK_INT(rename(other, thief.path), 0);
}

static int late_lock(int fd) {
  thief.n_locks++;
  if (thief.n_left > 0) {
    thief.n_left--;
    if (thief.is_removed)
      CHECK_INT(unlink(thief.path), 0);
    else
      put_another();
  }
  return tnk__ledger_disk.lock(fd);
}

static void open_while_replaced(bench_t *bench, int n_left, int is_removed) {
  static tnk__ledger_disk_t disk;

  disk = tnk__ledger_disk;
  disk.lock = late_lock;
  bench_folder(bench);
  bench_write(bench, LINE("000010", "10"));
  bench_begin(bench);
  bench->script.service->ledgers.disk = &disk;
  memset(&thief, 0, sizeof(thief));
  thief.path = bench->file;
  thief.n_left = n_left;
  thief.is_removed = is_removed;
}

TEST(a_file_that_is_replaced_before_it_is_locked_is_not_the_ledger) {
  static const struct {
    int n_times;
    int is_removed;
    long batch; /* of the last line; 0: there is none */
  } rows[] = {{0, 0, 10}, {1, 0, 100}, {3, 0, 100}, {1, 1, 0}, {3, 1, 0}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const tnk_ledger_entry_t *last;
    bench_t bench;
    outcome_t outcome;

    open_while_replaced(&bench, rows[i].n_times, rows[i].is_removed);
    bench_open_ledger(&bench);
    CHECK_INT(thief.n_locks, rows[i].n_times + 1);
    last = tnk_ledger_last(bench.ledger);
    CHECK_INT(last != NULL ? last->batch : 0, rows[i].batch);
    /* Saves go to the file that is there. */
    script_ok(&bench.script, &outcome, bench_save(&bench, "mine", NULL));
    outcome_drop(&outcome);
    CHECK(bench_has(&bench, "\"name\":\"mine\""));
    bench_close(&bench);
  }
}

TEST(a_file_that_is_replaced_all_the_time_is_refused) {
  bench_t bench;
  outcome_t outcome;

  open_while_replaced(&bench, INT_MAX, 0);
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, bench.run, NULL),
               TNK_ECONFLICT);
  CHECK(strstr(outcome.text, bench.file) != NULL);
  CHECK(thief.n_locks < 20);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* How long many lines take: `TNK_TEST_LEDGER_LINES=100000` tells it. */
TEST(many_lines_are_read) {
  const char *wanted = getenv("TNK_TEST_LEDGER_LINES");
  const int n_lines = wanted != NULL ? atoi(wanted) : 1000;
  bench_t bench;
  FILE *file;
  clock_t cpu_begun;
  uint64_t begun;

  bench_folder(&bench);
  bench_write(&bench, "");
  file = fopen(bench.file, "w");
  CHECK(file != NULL);
  for (int i = 0; i < n_lines / 2; i++)
    fprintf(file,
            "{\"name\":\"%06d\",\"tnk\":\"intent\",\"tnk_attempt\":1,"
            "\"tnk_save\":%d,\"tnk_run\":\"r\"}\n"
            "{\"name\":\"%06d\",\"batch\":%d,\"epoch\":0,\"state_path\":"
            "\"tinker://r/weights/%06d\",\"tnk\":\"saved\",\"tnk_attempt\":1,"
            "\"tnk_save\":%d,\"tnk_steps\":%d,\"tnk_cursor\":\"{}\","
            "\"tnk_prompt_tokens\":%d,\"tnk_sampled_tokens\":10012,"
            "\"tnk_trained_tokens\":8322,\"tnk_unpriced_tokens\":18520,"
            "\"tnk_requests\":%d,\"tnk_bytes_sent\":245833,"
            "\"tnk_bytes_received\":138690}\n",
            i, i + 1, i, i, i, i + 1, i, i, i + 1);
  CHECK(fclose(file) == 0);
  bench_begin(&bench);
  begun = uv_hrtime();
  cpu_begun = clock();
  bench_open_ledger(&bench);
  if (wanted != NULL)
    printf("# %d lines: %.2f ms, of which the processor %.2f\n", n_lines,
           (double)(uv_hrtime() - begun) / 1e6,
           (double)(clock() - cpu_begun) * 1e3 / CLOCKS_PER_SEC);
  CHECK_INT(tnk_ledger_count(bench.ledger), n_lines / 2);
  CHECK_INT(bench.ledger->n_intents, 0);
  bench_close(&bench);
}
