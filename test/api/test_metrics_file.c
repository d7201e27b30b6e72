/* SPDX-License-Identifier: MIT */
/*
 * The file of metrics of a run that continues: where it is cut, which step it
 * has, and when it is on the disk.
 */
#define _DEFAULT_SOURCE /* mkdtemp() */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "task/script.h"

static char folder[32];
static char path[64];

static void make_folder(void) {
  snprintf(folder, sizeof(folder), "/tmp/tnk-metrics-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
}

static void remove_folder(void) {
  CHECK(unlink(path) == 0 || errno == ENOENT);
  CHECK_INT(rmdir(folder), 0);
}

static void write_file(const char *text, size_t n) {
  FILE *file = fopen(path, "wb");

  CHECK(file != NULL);
  CHECK_INT(fwrite(text, 1, n, file), n);
  CHECK_INT(fclose(file), 0);
}

static void check_file(const char *text, size_t n) {
  char *found = malloc(n + 2);
  FILE *file = fopen(path, "rb");

  CHECK(file != NULL && found != NULL);
  CHECK_MEM(found, fread(found, 1, n + 2, file), text, n);
  fclose(file);
  free(found);
}

/* ---- Where it is cut ---- */

#define S(n, rest) "{\"step\":" #n rest "}\n"
#define MANY 18446744073709551615u

typedef struct {
  const char *name;
  const char *before;
  uint64_t n_steps;
  const char *after;
  uint64_t last; /* of the whole file */
} cut_t;

static const cut_t cuts[] = {
    {"empty", "", 5, "", 0},
    {"all steps stay", S(1, ",\"a\":1") S(2, ""), 2, S(1, ",\"a\":1") S(2, ""),
     2},
    {"a limit behind the end", S(1, "") S(2, ""), MANY, S(1, "") S(2, ""), 2},
    {"the last step goes", S(1, "") S(2, "") S(3, ""), 2, S(1, "") S(2, ""), 3},
    {"all steps go", S(1, "") S(2, ""), 0, "", 2},
    {"a gap", S(10, "") S(20, "") S(30, ""), 25, S(10, "") S(20, ""), 30},
    {"long numbers", S(123456, "") S(18446744073709551614, ",\"a\":1"), 123456,
     S(123456, ""), MANY - 1},
    {"several lines of a step",
     S(1, "") S(2, ",\"a\":1") S(2, ",\"b\":2") S(3, ""), 2,
     S(1, "") S(2, ",\"a\":1") S(2, ",\"b\":2"), 3},
    {"torn in a value", S(1, "") "{\"step\":2,\"tra", 9, S(1, ""), 1},
    {"torn in the step", S(1, "") "{\"step\":1", 9, S(1, ""), 1},
    {"torn before its newline", S(1, "") "{\"step\":2}", 9, S(1, ""), 1},
    {"only a torn line", "{\"step\":1", 9, "", 0},
    {"torn, and appended to", S(1, "") "{\"ste\n" S(2, ""), 2,
     S(1, "") "{\"ste\n" S(2, ""), 2},
    /* The cookbook writes blanks, and lines without a step. */
    {"blanks", "{\"step\": 7, \"a\": 1}\n{\"step\": 8}\n", 7,
     "{\"step\": 7, \"a\": 1}\n", 8},
    {"no step", "{\"a\":1}\n" S(1, "") "{\"a\":2}\n" S(2, "") "{\"a\":3}\n", 1,
     "{\"a\":1}\n" S(1, "") "{\"a\":2}\n", 2},
    {"step 0", S(0, "") S(1, ""), 0, S(0, ""), 1},
    {"empty lines", "\n\n" S(1, "") "\n" S(2, ""), 1, "\n\n" S(1, "") "\n", 2},
    {"the step is not first", "{\"a\":1,\"step\":9}\n" S(1, ""), 1,
     "{\"a\":1,\"step\":9}\n" S(1, ""), 1},
};

TEST(each_file_is_cut_and_has_its_last_step) {
  make_folder();
  for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
    uint64_t last = 77;

    test_context(cuts[i].name);
    write_file(cuts[i].before, strlen(cuts[i].before));
    CHECK_INT(tnk_numbers_last(path, &last), TNK_OK);
    CHECK_INT(last, cuts[i].last);
    check_file(cuts[i].before, strlen(cuts[i].before));
    CHECK_INT(tnk_numbers_rewind(path, cuts[i].n_steps), TNK_OK);
    check_file(cuts[i].after, strlen(cuts[i].after));
    /* A second time changes nothing. */
    CHECK_INT(tnk_numbers_rewind(path, cuts[i].n_steps), TNK_OK);
    check_file(cuts[i].after, strlen(cuts[i].after));
  }
  remove_folder();
}

/* A long line, so that the next ones lie anywhere in a piece that is read. */
TEST(lines_of_any_length_are_read) {
  static char text[70000];

  make_folder();
  for (size_t n = 16 * 1024 - 40;
       n<64 * 1024 + 40; n += n % (16 * 1024)> 16 * 1024 - 41 ||
               n % (16 * 1024) < 40
           ? 1
           : 16304) {
    size_t kept = (size_t)snprintf(text, sizeof(text), "{\"step\":1,\"");
    uint64_t last = 0;
    size_t all;

    memset(text + kept, 'x', n - kept);
    kept = n + (size_t)snprintf(text + n, sizeof(text) - n, "\":1}\n%s",
                                S(2, ",\"a\":1"));
    all = kept + (size_t)snprintf(text + kept, sizeof(text) - kept, "%s%s",
                                  S(3, ""), S(4, ""));
    write_file(text, all);
    CHECK_INT(tnk_numbers_last(path, &last), TNK_OK);
    CHECK_INT(last, 4);
    CHECK_INT(tnk_numbers_rewind(path, 2), TNK_OK);
    check_file(text, kept);
  }
  remove_folder();
}

TEST(bytes_that_are_no_text_are_kept) {
  static const char before[] =
      "\0{\"step\":9}\n\xff\n{\"step\":1}\0\n{\"step\":2}\n";

  make_folder();
  write_file(before, sizeof(before) - 1);
  CHECK_INT(tnk_numbers_rewind(path, 1), TNK_OK);
  check_file(before, sizeof(before) - 1 - strlen("{\"step\":2}\n"));
  remove_folder();
}

/* What tnk_numbers_append() writes is read. */
TEST(a_run_that_continues_has_each_step_once) {
  static const char expected[] = S(1, ",\"a\":0.5") S(2, ",\"a\":0.5")
      S(3, ",\"a\":0.5") S(4, ",\"a\":0.5");
  const tnk_number_t number = {"a", 0.5};
  uint64_t last = 0;
  FILE *file;

  make_folder();
  for (int64_t step = 1; step <= 3; step++)
    CHECK_INT(tnk_numbers_append(path, step, &number, 1), TNK_OK);
  file = fopen(path, "ab");
  CHECK(file != NULL && fputs("{\"step\":4,\"a", file) >= 0);
  fclose(file);
  CHECK_INT(tnk_numbers_last(path, &last), TNK_OK);
  CHECK_INT(last, 3);
  CHECK_INT(tnk_numbers_rewind(path, 2), TNK_OK);
  for (int64_t step = 3; step <= 4; step++)
    CHECK_INT(tnk_numbers_append(path, step, &number, 1), TNK_OK);
  check_file(expected, sizeof(expected) - 1);
  remove_folder();
}

/* ---- Files that cannot be used ---- */

typedef struct {
  const char *path;
  int err;
  int cause; /* errno of TNK_EFILE */
} failure_t;

TEST(each_failure_has_its_reason) {
  static const failure_t rows[] = {
      {NULL, TNK_EINVAL, 0},
      {"/dev/null/x", TNK_EFILE, ENOTDIR},
      /* Without an end, or without a length. */
      {"/dev/zero", TNK_EFILE, EINVAL},
      {"/dev/full", TNK_EFILE, EINVAL},
      {"/dev/null", TNK_EFILE, EINVAL},
      {"no-folder/metrics.jsonl", TNK_OK, 0},
  };
  char fifo[64];
  uint64_t last;

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    test_context(rows[i].path != NULL ? rows[i].path : "NULL");
    last = 77;
    errno = 0;
    CHECK_INT(tnk_numbers_last(rows[i].path, &last), rows[i].err);
    CHECK_INT(last, 0);
    if (rows[i].err == TNK_EFILE)
      CHECK_INT(errno, rows[i].cause);
    errno = 0;
    CHECK_INT(tnk_numbers_rewind(rows[i].path, 1), rows[i].err);
    if (rows[i].err == TNK_EFILE)
      CHECK_INT(errno, rows[i].cause);
  }
  CHECK_INT(tnk_numbers_last("/dev/null/x", NULL), TNK_EINVAL);
  make_folder();
  CHECK_INT(tnk_numbers_rewind(folder, 1), TNK_EFILE);
  CHECK_INT(errno, EISDIR);
  CHECK_INT(tnk_numbers_last(folder, &last), TNK_EFILE);
  /* Nobody writes to it, and nobody must be waited for. */
  snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
  CHECK_INT(mkfifo(fifo, 0600), 0);
  CHECK_INT(tnk_numbers_last(fifo, &last), TNK_EFILE);
  CHECK_INT(tnk_numbers_rewind(fifo, 1), TNK_EFILE);
  CHECK_INT(unlink(fifo), 0);
  remove_folder();
}

TEST(a_full_disk_is_reported) {
  const tnk_number_t number = {"a", 0.5};

  errno = 0;
  CHECK_INT(tnk_numbers_append("/dev/full", 1, &number, 1), TNK_EFILE);
  CHECK_INT(errno, ENOSPC);
}

/* ---- The disk ---- */

typedef enum { FILE_GOOD, FILE_MISSING, FILE_BAD, N_FILES } file_t;

/* When the program does something, and what. */
typedef enum {
  DO_NOTHING,
  CANCEL_AT_ONCE,
  CANCEL_AFTER_A_TURN,
  CANCEL_AFTERWARDS,
  DROP_AT_ONCE,
  CLOSE_AT_ONCE,
  CLOSE_AFTER_A_TURN,
  N_DEEDS
} deed_t;

static const char *file_of(file_t file) {
  if (file == FILE_BAD)
    return "/dev/null"; /* a device cannot be synchronized */
  return file == FILE_GOOD ? path : "/tmp/tnk-no-such-folder/metrics.jsonl";
}

static int expected_of(file_t file) {
  return file == FILE_BAD ? TNK_EFILE : TNK_OK;
}

static void act(script_t *script, tnk_promise_t *promise, deed_t deed) {
  if (deed == CANCEL_AFTER_A_TURN || deed == CLOSE_AFTER_A_TURN)
    uv_run(&script->uv, UV_RUN_NOWAIT);
  if (deed == CANCEL_AT_ONCE || deed == CANCEL_AFTER_A_TURN)
    tnk_promise_cancel(promise);
  if (deed == CLOSE_AT_ONCE || deed == CLOSE_AFTER_A_TURN)
    tnk_service_close(script->service, script_closed, script);
}

static void run_sync(file_t file, deed_t deed) {
  tnk_promise_t *promise;
  outcome_t outcome;
  script_t script;

  script_open(&script);
  promise = tnk_numbers_sync(script.service, file_of(file));
  CHECK_INT(tnk_promise_status(promise), TNK_EPENDING);
  outcome_of(&outcome, tnk_promise_ref(promise));
  if (deed == DROP_AT_ONCE) {
    tnk_promise_unref(promise);
    promise = NULL;
  }
  act(&script, promise, deed);
  CHECK_INT(outcome.n_done, 0); /* at the earliest in a turn of the loop */
  while (outcome.n_done == 0)
    uv_run(&script.uv, UV_RUN_ONCE);
  if (deed == CANCEL_AT_ONCE)
    CHECK_INT(outcome.status, TNK_ECANCELED);
  else if (deed != CANCEL_AFTER_A_TURN || outcome.status != TNK_ECANCELED)
    CHECK_INT(outcome.status, expected_of(file));
  if (outcome.status == TNK_EFILE) {
    CHECK_STR(outcome.text, "numbers_sync: /dev/null: invalid argument");
    CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_EINVAL);
  }
  if (deed == CANCEL_AFTERWARDS)
    tnk_promise_cancel(promise);
  outcome_drop(&outcome);
  tnk_promise_unref(promise);
  if (deed == CLOSE_AT_ONCE || deed == CLOSE_AFTER_A_TURN)
    script_end(&script);
  else
    script_close(&script);
  CHECK_INT(outcome.n_done, 1);
  CHECK_INT(test_alloc_live(), 0);
}

TEST(each_file_and_each_deed_settle_once) {
  char text[64];

  make_folder();
  write_file("{}\n", 3);
  for (int file = 0; file < N_FILES; file++)
    for (int deed = 0; deed < N_DEEDS; deed++) {
      snprintf(text, sizeof(text), "file %d, deed %d", file, deed);
      test_context(text);
      run_sync((file_t)file, (deed_t)deed);
    }
  remove_folder();
}

TEST(a_file_on_its_way_to_the_disk_is_explained) {
  char text[256];
  outcome_t outcome;
  script_t script;
  tnk_promise_t *promise;

  script_open(&script);
  promise = tnk_numbers_sync(script.service, "/dev/null");
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK_STR(text, "numbers_sync: waits until /dev/null is written to the disk");
  outcome_of(&outcome, promise);
  outcome_fails(&script, &outcome, TNK_EFILE);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(each_bad_path_is_refused) {
  static char longest[4097];
  static const struct {
    const char *path, *why;
  } rows[] = {{NULL, "numbers_sync: path is NULL"},
              {"", "numbers_sync: path is empty"},
              {longest, "numbers_sync: path is too long"}};
  outcome_t outcome;
  script_t script;

  memset(longest, 'x', sizeof(longest) - 1);
  script_open(&script);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    script_fails(&script, &outcome,
                 tnk_numbers_sync(script.service, rows[i].path), TNK_EINVAL);
    CHECK(strncmp(outcome.text, rows[i].why, strlen(rows[i].why)) == 0);
    outcome_drop(&outcome);
  }
  CHECK(tnk_numbers_sync(NULL, "x") == NULL);
  script_close(&script);
}

/* Returns whether there were so many allocations. */
static int run_without(long n) {
  outcome_t outcome;
  script_t script;
  int did_fail;

  script_open(&script);
  test_alloc_fail_at(n);
  outcome_of(&outcome, tnk_numbers_sync(script.service, "/dev/null"));
  while (outcome.n_done == 0)
    uv_run(&script.uv, UV_RUN_ONCE);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  /* A failure that has no memory for its sentence is reported without it. */
  CHECK(outcome.status == TNK_EFILE ||
        (did_fail && outcome.status == TNK_ENOMEM));
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST(each_allocation_fails_once) {
  long n = 0;

  while (run_without(n))
    CHECK(++n < 100);
  CHECK(n > 2);
}
