/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "gateway/record/journal.h"
#include "record.h"

/* What is recorded, and what is left of it for the next process. */

TEST(a_turn_goes_on_from_the_ids_of_another_one) {
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 0, 0, 0), TNK_OK);
  add_tree(&rig);
  CHECK_INT(tnk__gw_record_find(rig.record, "a", 1)->by_number.key, 100);
  CHECK_INT(tnk__gw_record_find(rig.record, "b", 1)->by_number.key, 103);
  CHECK(tnk__gw_record_find(rig.record, "c", 1) == NULL);
  CHECK(tnk__gw_record_find(rig.record, "a", 4) == NULL);
  close_record(&rig);
  rig_close(&rig);
}

static int last_byte(const char *path) {
  FILE *file = fopen(path, "r");
  int c;

  CHECK(file != NULL && fseek(file, -1, SEEK_END) == 0);
  c = getc(file);
  fclose(file);
  return c;
}

/* Everything is there again, also when the file ends within a line. */
TEST(a_record_is_gone_on_with) {
  tnk__gw_turn_t *turn;
  rig_t rig;
  FILE *file;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  add_tree(&rig);
  turn = tnk__gw_record_find(rig.record, "a", 2);
  CHECK_INT(tnk__gw_record_reward(rig.record, turn, 0.5), TNK_OK);
  close_record(&rig);
  file = fopen(rig.path, "a");
  CHECK(file != NULL);
  fputs("{\"type\":\"turn\",\"turn\":104,\"session\":\"", file);
  /* Longer than what takes its place. */
  for (int i = 0; i < 4096; i++)
    putc('x', file);
  fclose(file);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  turn = tnk__gw_record_find(rig.record, "a", 2);
  CHECK(turn != NULL);
  CHECK_NEAR(turn->reward, 0.5, 0);
  check_ids(&rig, turn, chain, 10);
  CHECK_INT(tnk__gw_record_next(rig.record), 104);
  CHECK_INT(tnk__gw_record_version(rig.record), 1);
  added(&rig, "a", turn, 5, 50);
  close_record(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  CHECK_INT(tnk__gw_turn_n_ids(tnk__gw_record_find(rig.record, "a", 5)), 15);
  close_record(&rig);
  CHECK_INT(last_byte(rig.path), '\n');
  rig_close(&rig);
}

TEST(one_process_at_a_time_writes) {
  rig_t rig;
  tnk__gw_record_t *first;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  first = rig.record;
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
  CHECK(strstr(rig.why, "another process writes to it") != NULL);
  rig.record = first;
  close_record(&rig);
  rig_close(&rig);
}

/* It goes on from a turn that is not there. */
#define ORPHAN                                                                 \
  "{\"type\":\"turn\",\"turn\":5,\"parent\":4,\"session\":\"a\",\"key\":"      \
  "\"1\",\"version\":1,\"prompt\":[1],\"sampled\":[2]}\n"

TEST(a_file_of_something_else_is_refused) {
  static const char *const lines[] = {"hello\n", "{}\n",
                                      "{\"type\":\"turn\"}\n", ORPHAN,
                                      "{\"type\":\"reward\",\"turn\":1}\n"};
  rig_t rig;

  rig_open(&rig);
  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    FILE *file = fopen(rig.path, "w");

    CHECK(file != NULL);
    fputs(lines[i], file);
    fclose(file);
    CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
    CHECK(strncmp(rig.why, rig.path, strlen(rig.path)) == 0);
    CHECK(strstr(rig.why, ": line 1: ") != NULL);
  }
  rig_close(&rig);
}

#define TURN_OF(session, number, parent)                                       \
  "{\"type\":\"turn\",\"turn\":" number ",\"session\":\"" session              \
  "\",\"key\":\"1\",\"version\":1,\"prompt\":[1],\"sampled\":[2]" parent "}\n"

/* The two would not be forgotten together. */
TEST(a_turn_of_another_session_is_not_gone_on_from) {
  rig_t rig;
  FILE *file;

  rig_open(&rig);
  file = fopen(rig.path, "w");
  CHECK(file != NULL);
  fputs(TURN_OF("a", "1", "") TURN_OF("b", "2", ",\"parent\":1"), file);
  fclose(file);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
  CHECK(strstr(rig.why, "line 2: continues a turn of another session"));
  rig_close(&rig);
}

/* Whatever it is, it stays as it is, also without a line feed at its end. */
TEST(a_file_of_something_else_is_not_cut) {
  static const char *const texts[] = {"my notes", "{\"a\":1}", "x"};
  char found[64];
  rig_t rig;

  rig_open(&rig);
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
    FILE *file = fopen(rig.path, "w");

    CHECK(file != NULL);
    fputs(texts[i], file);
    fclose(file);
    CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
    CHECK(strstr(rig.why, "line 1") != NULL);
    file = fopen(rig.path, "r");
    CHECK(file != NULL && fgets(found, sizeof(found), file) != NULL);
    fclose(file);
    CHECK_STR(found, texts[i]);
  }
  rig_close(&rig);
}

/* What never ends, or keeps nothing. */
TEST(a_file_that_is_none_is_refused) {
  char path[64];
  rig_t rig;

  rig_open(&rig);
  unlink(rig.path);
  CHECK_INT(mkfifo(rig.path, 0600), 0);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
  CHECK(strstr(rig.why, "is no regular file") != NULL);
  snprintf(path, sizeof(path), "%s", rig.path);
  snprintf(rig.path, sizeof(rig.path), "/dev/null");
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_EFILE);
  CHECK_STR(rig.why, "/dev/null: is no regular file");
  snprintf(rig.path, sizeof(rig.path), "%s", path);
  rig_close(&rig);
}

/* ---- What waits ---- */

typedef struct {
  tnk__gw_waiter_t waiter;
  int n;
  int err;
} wait_t;

static void on_done(tnk__gw_waiter_t *waiter, int err) {
  wait_t *wait = (wait_t *)(void *)waiter;

  wait->n++;
  wait->err = err;
}

static size_t n_lines(const char *path) {
  FILE *file = fopen(path, "r");
  size_t n = 0;
  int c;

  CHECK(file != NULL);
  while ((c = getc(file)) != EOF)
    n += c == '\n';
  fclose(file);
  return n;
}

TEST(lines_are_written_before_who_waits_goes_on) {
  wait_t waits[2] = {{.waiter.done = on_done}, {.waiter.done = on_done}};
  tnk__gw_journal_t *journal;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  journal = rig.record->journal;
  CHECK_INT(tnk__gw_journal_wait(journal, &waits[0].waiter), 1);
  added(&rig, "a", NULL, 1, 10);
  CHECK_INT(tnk__gw_journal_wait(journal, &waits[0].waiter), 0);
  added(&rig, "a", NULL, 2, 20);
  CHECK_INT(tnk__gw_journal_wait(journal, &waits[1].waiter), 0);
  CHECK_INT(waits[0].n, 0);
  while (waits[0].n == 0)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK(n_lines(rig.path) >= 1);
  while (waits[1].n == 0)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK_INT(n_lines(rig.path), 2);
  CHECK_INT(waits[0].err, TNK_OK);
  CHECK_INT(waits[1].err, TNK_OK);
  CHECK_INT(waits[0].n + waits[1].n, 2);
  close_record(&rig);
  rig_close(&rig);
}

/* In place of the one of the C library; any thread. */
static atomic_int n_syncs;

int fdatasync(int fd) {
  n_syncs++;
  return fsync(fd);
}

static void add_and_wait(rig_t *rig, uint64_t key) {
  wait_t wait = {.waiter.done = on_done};

  added(rig, "a", NULL, key, 10);
  CHECK_INT(tnk__gw_journal_wait(rig->record->journal, &wait.waiter), 0);
  while (wait.n == 0)
    uv_run(&rig->loop, UV_RUN_ONCE);
  CHECK_INT(wait.err, TNK_OK);
}

/* What is written survives the process; the disk is waited for where that is
 * asked for, and at the end. */
TEST(lines_go_to_the_disk_as_is_asked_for) {
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  add_and_wait(&rig, 1);
  CHECK_INT(n_lines(rig.path), 1);
  add_and_wait(&rig, 2);
  CHECK_INT(n_lines(rig.path), 2);
  CHECK_INT(n_syncs, 0);
  close_record(&rig);
  CHECK_INT(n_syncs, 1);
  /* Of nothing new there is nothing to write. */
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  close_record(&rig);
  CHECK_INT(n_syncs, 1);
  rig.syncs = 1;
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  add_and_wait(&rig, 3);
  CHECK_INT(n_syncs, 2);
  add_and_wait(&rig, 4);
  CHECK_INT(n_syncs, 3);
  close_record(&rig);
  CHECK_INT(n_syncs, 3);
  rig_close(&rig);
}

TEST(a_line_is_read_before_it_is_written) {
  tnk__gw_turn_t *turn;
  json_t *line;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 1, 0), TNK_OK);
  turn = added(&rig, "a", NULL, 1, 10);
  CHECK(turn->ids == NULL); /* there is room for nothing */
  check_ids(&rig, turn, chain, 5);
  CHECK_INT(tnk__gw_record_line(rig.record, turn, &line), TNK_OK);
  CHECK_STR(json_string_value(json_object_get(line, "session")), "a");
  json_decref(line);
  close_record(&rig);
  rig_close(&rig);
}

/* The disk is full: nothing more is taken, what was written before is there. */
TEST(a_line_that_cannot_be_written_is_not_read) {
  wait_t wait = {.waiter.done = on_done};
  struct rlimit limit;
  struct rlimit small;
  tnk__gw_turn_t *safe;
  tnk__gw_turn_t *lost[3];
  tnk__gw_turn_t *turn;
  json_t *line;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  added(&rig, "a", NULL, 1, 10);
  close_record(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  safe = tnk__gw_record_find(rig.record, "a", 1);
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 16;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  lost[0] = added(&rig, "a", NULL, 2, 20);
  CHECK_INT(tnk__gw_journal_wait(rig.record->journal, &wait.waiter), 0);
  lost[1] = added(&rig, "a", NULL, 3, 30);
  lost[2] = added(&rig, "a", NULL, 4, 40);
  while (wait.n == 0)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(wait.err, TNK_EFILE);
  /* Who waits for lost lines only now fails at once. */
  CHECK_INT(tnk__gw_journal_wait(rig.record->journal, &wait.waiter), TNK_EFILE);
  for (int i = 0; i < 3; i++)
    CHECK_INT(tnk__gw_record_line(rig.record, lost[i], &line), TNK_EFILE);
  CHECK_INT(tnk__gw_record_line(rig.record, safe, &line), TNK_OK);
  json_decref(line);
  CHECK_INT(add(&rig, "a", NULL, 5, 50, 3, 2, &turn), TNK_EFILE);
  close_record(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  CHECK(tnk__gw_record_find(rig.record, "a", 1) != NULL);
  close_record(&rig);
  rig_close(&rig);
}

/* ---- Ceilings ---- */

/* It could not be read again, and nothing behind it. */
TEST(a_line_that_is_too_long_is_not_written) {
  enum { SIZE = 128 << 20 };
  char *line = malloc(SIZE);
  uint64_t offset;
  rig_t rig;

  CHECK(line != NULL);
  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  CHECK_INT(tnk__gw_journal_add(rig.record->journal, line, SIZE, &offset),
            TNK_ETOOBIG);
  free(line);
  added(&rig, "a", NULL, 1, 10);
  close_record(&rig);
  CHECK_INT(n_lines(rig.path), 1);
  rig_close(&rig);
}

/* Notes of requests that fail one after the other. */
TEST(lines_that_nobody_waits_for_are_written_too) {
  tnk__gw_journal_t *journal;
  char line[65536];
  struct stat file;
  uint64_t offset;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
  journal = rig.record->journal;
  memset(line, 'x', sizeof(line));
  for (int i = 0; i < 40; i++)
    CHECK_INT(tnk__gw_journal_add(journal, line, sizeof(line), &offset),
              TNK_OK);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK(stat(rig.path, &file) == 0 && file.st_size > (off_t)sizeof(line));
  close_record(&rig);
  rig_close(&rig);
}

TEST(ids_are_read_again_from_the_file) {
  tnk__gw_turn_t *turn = NULL;
  wait_t wait = {.waiter.done = on_done};
  tnk__buf_t found;
  rig_t rig;

  rig_open(&rig);
  CHECK_INT(open_record(&rig, 1, 200, 0), TNK_OK);
  for (int i = 0; i < 50; i++)
    turn = added(&rig, "a", turn, (uint64_t)i, 10 * i);
  if (tnk__gw_journal_wait(rig.record->journal, &wait.waiter) == 0)
    while (wait.n == 0)
      uv_run(&rig.loop, UV_RUN_ONCE);
  tnk__buf_init(&found, test_allocator(), SIZE_MAX);
  CHECK_INT(tnk__gw_record_ids(rig.record, turn, &found), TNK_OK);
  CHECK_INT(found.len, 250 * sizeof(int32_t));
  for (int i = 0; i < 250; i++)
    CHECK_INT(((int32_t *)(void *)found.data)[i], 10 * (i / 5) + i % 5);
  tnk__buf_deinit(&found);
  close_record(&rig);
  rig_close(&rig);
}

static const char first_line[] = "{\"type\":\"a\"}\n";
static const char second_line[] = "{\"type\":\"another\"}\n";

typedef struct {
  const char *path;
  int n;
} seen_t;

/* While a line is read, a gateway that starts cuts off what follows, and writes
 * another line there, and a part of a third. */
static int on_seen_line(void *user, const char *line, size_t n,
                        uint64_t offset) {
  const char *expected[] = {first_line, second_line};
  seen_t *seen = user;
  FILE *file;

  CHECK(seen->n < 2 && n + 1 == strlen(expected[seen->n]));
  CHECK(memcmp(line, expected[seen->n], n) == 0);
  CHECK_INT(offset, seen->n == 0 ? 0 : sizeof(first_line) - 1);
  if (seen->n++ > 0)
    return TNK_OK;
  CHECK(truncate(seen->path, sizeof(first_line) - 1) == 0);
  file = fopen(seen->path, "a");
  CHECK(file != NULL);
  fprintf(file, "%s{\"type\":\"a", second_line);
  fclose(file);
  return TNK_OK;
}

TEST(a_line_that_takes_the_place_of_a_piece_is_read_whole) {
  seen_t seen = {.n = 0};
  tnk__gw_journal_t *journal;
  char why[200];
  rig_t rig;
  FILE *file;

  rig_open(&rig);
  seen.path = rig.path;
  file = fopen(rig.path, "w");
  CHECK(file != NULL);
  fprintf(file, "%s{\"type\":\"b\",\"n\":", first_line);
  fclose(file);
  CHECK_INT(tnk__gw_journal_open(&journal, NULL, test_allocator(), rig.path, 0,
                                 on_seen_line, &seen, why, sizeof(why)),
            TNK_OK);
  CHECK_INT(seen.n, 2);
  tnk__gw_journal_close(journal, NULL, NULL);
  rig_close(&rig);
}

TEST(the_oldest_sessions_are_forgotten) {
  char name[16];
  rig_t rig;

  rig_open(&rig);
  for (int has_file = 0; has_file < 2; has_file++) {
    CHECK_INT(open_record(&rig, has_file, 0, 10), TNK_OK);
    for (int i = 0; i < 30; i++) {
      snprintf(name, sizeof(name), "s%d", i % 20);
      added(&rig, name, NULL, (uint64_t)i, i);
    }
    CHECK(tnk__gw_record_session(rig.record, "s10") == NULL);
    CHECK(tnk__gw_record_session(rig.record, "s9") != NULL);
    close_record(&rig);
  }
  /* What went on from those that are forgotten is no mistake of the file. */
  CHECK_INT(open_record(&rig, 1, 0, 3), TNK_OK);
  CHECK(tnk__gw_record_session(rig.record, "s9") != NULL);
  close_record(&rig);
  rig_close(&rig);
}

/* Of one session as well, but not those that go on. */
TEST(idle_conversations_are_forgotten) {
  tnk__gw_turn_t *long_one;
  rig_t rig;

  rig_open(&rig);
  for (int has_file = 0; has_file < 2; has_file++) {
    CHECK_INT(open_record(&rig, has_file, 0, 60), TNK_OK);
    long_one = added(&rig, "a", NULL, 1000, 1);
    for (int i = 0; i < 200; i++) {
      tnk__gw_turn_t *turn = added(&rig, "a", NULL, (uint64_t)i, i);

      added(&rig, "a", turn, 200 + (uint64_t)i, i);
      if (i % 10 == 0)
        long_one = added(&rig, "a", long_one, 1001 + (uint64_t)i, i);
      CHECK(tnk__gw_record_session(rig.record, "a")->n_turns <= 60);
    }
    CHECK(tnk__gw_record_find(rig.record, "a", 100) == NULL);
    CHECK(tnk__gw_record_find(rig.record, "a", 300) == NULL);
    CHECK(tnk__gw_record_find(rig.record, "a", 399) != NULL);
    CHECK(tnk__gw_record_find(rig.record, "a", 1191) == long_one);
    CHECK_INT(tnk__gw_turn_n_ids(long_one), 105);
    close_record(&rig);
  }
  CHECK_INT(open_record(&rig, 1, 0, 60), TNK_OK);
  long_one = tnk__gw_record_find(rig.record, "a", 1191);
  CHECK_INT(tnk__gw_turn_n_ids(long_one), 105);
  close_record(&rig);
  rig_close(&rig);
}

/* ---- Memory ---- */

/* Nothing of a turn that failed is known, and the file can be read. */
TEST(each_allocation_fails_in_turn) {
  tnk__gw_turn_t *turn;
  rig_t rig;
  long n = 0;
  int did_fail = 1;

  rig_open(&rig);
  for (; did_fail; n++) {
    int err;

    test_alloc_fail_at(n);
    err = open_record(&rig, 1, 0, 0);
    if (err == TNK_OK) {
      err = add(&rig, "a", NULL, 1, 10, 3, 2, &turn);
      if (err == TNK_OK)
        err = add(&rig, "a", turn, 2, 20, 3, 2, &turn);
      CHECK((tnk__gw_record_find(rig.record, "a", 2) != NULL) ==
            (err == TNK_OK));
    }
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (rig.record != NULL)
      close_record(&rig);
    CHECK_INT(open_record(&rig, 1, 0, 0), TNK_OK);
    close_record(&rig);
    unlink(rig.path);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
  }
  CHECK(n > 10);
  rig_close(&rig);
}
