/* SPDX-License-Identifier: MIT */
#include "shared_rig.h"

/* A shared record against a server that fails in many ways. */

/* ---- A server that fails ---- */

static char too_long[8192];

static const row_t rows[] = {
    {"closes before a reply", "EVALSHA", CUT, "", "was closed"},
    {"closes within a reply", "EVALSHA", CUT, "$3\r\n1", "was closed"},
    {"loses a reply", "EVALSHA", LOST, "", "was closed"},
    {"does not reply", "EVALSHA", SILENT, "", "does not answer"},
    {"is a replica", "EVALSHA", REPLY, "-READONLY You can't write\r\n",
     "READONLY"},
    {"is full", "EVALSHA", REPLY, "-OOM command not allowed\r\n", "OOM"},
    {"is too old", "EVALSHA", REPLY, "-ERR unknown command 'EVALSHA'\r\n",
     "the error ERR"},
    {"has no disk", "EVALSHA", REPLY, "-MISCONF Errors writing\r\n", "MISCONF"},
    {"sends garbage", "EVALSHA", REPLY, "HTTP/1.1 400 Bad Request\r\n",
     "not of Valkey"},
    {"sends another reply", "EVALSHA", REPLY, "+OK\r\n", "unexpected reply"},
    {"loads its file", "GET", REPLY, "-LOADING the dataset\r\n", "LOADING"},
    {"does not greet", "GET", SILENT, "", "does not answer"},
    {"has an older layout", "GET", REPLY, "$1\r\n1\r\n", "another layout"},
    {"has a newer layout", "GET", REPLY, "$1\r\n3\r\n", "another layout"},
    {"has no scripts", "SCRIPT", REPLY, "-ERR unknown command 'SCRIPT'\r\n",
     "the error ERR"},
    {"forbids scripts", "SCRIPT", REPLY, "-NOPERM User has no\r\n", "NOPERM"},
    {"has another script", "SCRIPT", REPLY, "+OK\r\n", "unexpected reply"},
    {"needs a password", "GET", REPLY, "-NOAUTH needed\r\n", "NOAUTH"},
    {"tells the password", "AUTH", REPLY,
     "-ERR unknown command, with args beginning with: 'canary'\r\n",
     "was rejected"},
    {"tells it in a code", "GET", REPLY, "-canary canary\r\n",
     "reports an error"},
    {"holds another type", "XREAD", REPLY, "-WRONGTYPE Operation\r\n",
     "WRONGTYPE"},
    {"sends too long a reply", "XREAD", REPLY, too_long, "too long"},
    {"is silent when it is read", "XREAD", SILENT, "", "does not answer"},
};

/* Let the server fail once more, and wait for the end of that connection. */
static void fail_once(const row_t *row) {
  size_t n_bad = rig.mock.n_bad;

  SPIN(rig.mock.n_bad > n_bad);
  if (row->manner == SILENT)
    tick(5000);
  SPIN(rig.mock.n_closed == rig.mock.n_conns);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why(row->why);
}

/* `session`: NULL for a line of none. */
static void try_row(const row_t *row, const char *session) {
  int is_add = strcmp(row->command, "EVALSHA") == 0;
  row_t bad = *row;
  wait_t wait, sync, again;

  rig_open();
  /* The next connection fails. */
  rig.mock.bad = &bad;
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  add_about(session, "one");
  begin_wait(tnk__gw_shared_wait, &wait);
  begin_sync(&sync, 0);
  tick(100);
  fail_once(row);
  if (row->manner != LOST)
    CHECK_INT(wait.n_done, 0);
  CHECK(sync.n_done == 0 || is_add);
  /* Nobody waits for longer than this. */
  tick(30000);
  CHECK_INT(wait.n_done, 1);
  CHECK_INT(sync.n_done, 1);
  CHECK_INT(wait.err, TNK_ECONN);
  if (row->manner == LOST) {
    /* The line is found in the stream, so it is not sent again. */
    SPIN(tnk__gw_shared_why(rig.shared) == NULL);
    begin_sync(&again, 0);
    SPIN(again.n_done || rig.mock.n_stored > 1);
  } else {
    fail_once(row);
    rig.mock.bad = NULL;
    begin_wait(tnk__gw_shared_wait, &again);
    SPIN((tick(1), again.n_done));
    CHECK_INT(again.err, TNK_OK);
    SPIN((tick(1), tnk__gw_shared_why(rig.shared) == NULL));
  }
  CHECK_INT(rig.mock.n_stored, 1);
  CHECK_STR(rig.mock.stored[0][2], "one");
  rig_close();
}

TEST(a_failing_server_holds_what_waits_for_it) {
  memset(too_long, 'x', sizeof(too_long) - 1);
  memcpy(too_long, "$100000\r\n", 9);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    test_context(rows[i].name);
    try_row(&rows[i], NULL);
    try_row(&rows[i], "s");
  }
}

TEST(a_slow_server_is_waited_for) {
  wait_t wait, sync;

  rig_open();
  rig.mock.is_held = 1;
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(rig.mock.n_stored == 1);
  tick(2000);
  begin_sync(&sync, 0);
  CHECK_INT(wait.n_done, 0);
  rig.mock.is_held = 0;
  send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held, rig.mock.n_held);
  SPIN(wait.n_done && sync.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_INT(sync.err, TNK_OK);
  CHECK_INT(rig.mock.n_conns, 1);
  rig_close();
}

TEST(a_reply_without_a_command_ends_the_connection) {
  rig_open();
  send_text((uv_stream_t *)&rig.mock.conns[0], "$3\r\n1-0\r\n", 9);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why("unexpected reply");
  rig_close();
}

/* ---- Sessions that are removed ---- */

TEST(a_line_of_a_removed_session_is_refused) {
  wait_t wait;

  rig_open();
  rig.mock.removed = "gone";
  add_about("gone", "one");
  add_about("here", "two");
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_STR(rig.refused, "gone");
  CHECK_INT(rig.mock.n_stored, 1);
  CHECK_STR(rig.mock.stored[0][2], "two");
  CHECK_STR(rig.mock.stored[0][1], "2");
  CHECK_INT(rig.mock.n_conns, 1);
  rig_close();
}

/* Nobody may learn that a refused line was written. */
TEST(a_refusal_without_memory_is_asked_for_again) {
  wait_t wait;

  rig_open();
  rig.mock.removed = "gone";
  add_about("gone", "one");
  begin_wait(tnk__gw_shared_wait, &wait);
  test_alloc_fail_at(0);
  CHECK(tnk__malloc(test_allocator(), 1) == NULL);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why("out of memory");
  CHECK_INT(wait.n_done, 0);
  test_alloc_fail_at(-1);
  tick(100);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_STR(rig.refused, "gone");
  CHECK_INT(rig.mock.n_conns, 2);
  rig_close();
}

/* A line of no session cannot be refused. */
TEST(a_refusal_without_a_session_ends_the_connection) {
  static const row_t row = {"", "EVALSHA", REPLY, "$-1\r\n", ""};
  wait_t wait;

  rig_open();
  rig.mock.bad = &row;
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why("unexpected reply");
  CHECK_INT(wait.n_done, 0);
  rig.mock.bad = NULL;
  tick(100);
  SPIN(wait.n_done);
  CHECK_INT(rig.mock.n_stored, 1);
  rig_close();
}

/* The removal is not needed for what is recorded. */
TEST(a_refused_removal_does_not_stop_the_record) {
  static const tnk__gw_keep_t keep = {.max_sessions = 1};
  static const row_t row = {"", "EVAL", REPLY, "-NOPERM canary\r\n", ""};
  size_t n_bad = 0;

  rig_open_with(&keep);
  rig.mock.bad = &row;
  rig.mock.next_rank = -1;
  for (int ms = 0; ms < 600000; ms += 50) {
    if (ms == 300000) {
      wait_t wait;

      add("one");
      begin_wait(tnk__gw_shared_wait, &wait);
      SPIN(wait.n_done);
      CHECK_INT(wait.err, TNK_OK);
      n_bad = rig.mock.n_bad;
    }
    tick(50);
    for (int k = 0; k < 3; k++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    if (tnk__gw_shared_why(rig.shared) != NULL)
      test_fail(__FILE__, __LINE__, "%d ms: %s", ms,
                tnk__gw_shared_why(rig.shared));
  }
  /* After 1, 2, 4 ... 32 s, then each minute. */
  CHECK(n_bad >= 6 && n_bad < 12);
  CHECK(rig.mock.n_bad - n_bad >= 4 && rig.mock.n_bad - n_bad <= 5);
  CHECK_INT(rig.mock.n_conns, 1);
  CHECK_INT(rig.n_logged, 1);
  CHECK(strstr(rig.logged, "no sessions can be removed: the server reports the "
                           "error NOPERM") != NULL);
  rig.mock.bad = NULL;
  SPIN((tick(50), rig.n_logged == 2));
  CHECK(strstr(rig.logged, "can be removed again") != NULL);
  rig_close();
}

/* Each second it looks at the first sessions. If the server has looked at some
 * of them only, it continues with the next tick. */
TEST(sessions_are_removed_in_steps) {
  static const tnk__gw_keep_t all[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

  for (size_t i = 0; i < 3; i++) {
    rig_open_with(&all[i]);
    rig.mock.next_rank = 70;
    tick(1000);
    SPIN(rig.mock.n_removals == 1);
    CHECK_STR(rig.mock.rank, "0");
    SPIN((tick(50), rig.mock.n_removals == 2));
    CHECK_STR(rig.mock.rank, "70");
    rig.mock.next_rank = 0; /* those before are all removed */
    SPIN((tick(50), rig.mock.n_removals == 3));
    CHECK_STR(rig.mock.rank, "70");
    rig.mock.next_rank = -1;
    SPIN((tick(50), rig.mock.n_removals == 4));
    CHECK_STR(rig.mock.rank, "0");
    for (int k = 0; k < 5; k++) {
      tick(50);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    CHECK_INT(rig.mock.n_removals, 4);
    rig_close();
  }
}

TEST(without_a_policy_nothing_is_removed) {
  wait_t sync;

  rig_open();
  tick(100000);
  begin_sync(&sync, 0);
  SPIN(sync.n_done);
  CHECK_INT(rig.mock.n_removals, 0);
  rig_close();
}

/* What was removed and forgotten while it did not read may be in its memory. It
 * has read of what was forgotten before. */
TEST(a_process_that_was_away_for_too_long_ends) {
  static const struct {
    const char *before, *after;
    int err;
  } all[] = {{NULL, NULL, TNK_OK},
             {"5", "5", TNK_OK},
             {"5", "6", TNK_EFILE},
             {NULL, "1", TNK_OK},
             {NULL, "2", TNK_EFILE}};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    wait_t sync;

    rig_open();
    rig.mock.forgotten = all[i].before;
    drop_conn((uv_stream_t *)&rig.mock.conns[0]);
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
    tick(100);
    SPIN(tnk__gw_shared_why(rig.shared) == NULL);
    store_line("2", "1", "a"); /* of time 1 */
    begin_sync(&sync, 0);
    SPIN(sync.n_done);
    rig.mock.forgotten = all[i].after;
    drop_conn((uv_stream_t *)&rig.mock.conns[1]);
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
    tick(100);
    SPIN(tnk__gw_shared_error(rig.shared) != TNK_OK ||
         tnk__gw_shared_why(rig.shared) == NULL);
    CHECK_INT(tnk__gw_shared_error(rig.shared), all[i].err);
    if (all[i].err != TNK_OK)
      check_why("more than a day ago");
    rig_close();
  }
}

/* ---- Each line once and in order ---- */

enum { N_BATCH = 5 };

/* Look at the answers so far. Returns how many there are. */
static size_t look(answer_t answers[N_BATCH], const char *const *lines,
                   int is_refused) {
  size_t n = 0;

  for (size_t i = 0; i < N_BATCH; i++) {
    if (!answers[i].is_safe && answers[i].wait.n_done > 0) {
      answers[i].is_safe = answers[i].wait.err == TNK_OK;
      if (!answers[i].is_safe)
        wait_again(&answers[i]);
    }
    if (answers[i].is_safe && !is_refused)
      CHECK_INT(stored(lines[i]), 1);
    n += (size_t)answers[i].is_safe;
  }
  return n;
}

/* A store that does not answer is left. What it does later with what it was
 * sent comes after the next connection has read. */
static void be_late(size_t n) {
  SPIN(rig.mock.n_late == n);
  tick(5000);
  rig.mock.ill = WELL;
}

/* `session`: NULL for lines of none. */
static void try_ill(ill_t ill, size_t at, const char *session, int is_removed) {
  static const char *const lines[N_BATCH] = {"1", "2", "3", "4", "5"};
  answer_t answers[N_BATCH];
  wait_t sync;

  rig_open();
  rig.mock.removed = is_removed ? session : NULL;
  rig.mock.ill = (int)ill;
  rig.mock.ill_at = at;
  for (size_t i = 0; i < N_BATCH; i++) {
    add_about(session, lines[i]);
    begin_wait(tnk__gw_shared_wait, &answers[i].wait);
    answers[i].is_safe = 0;
  }
  if (ill == IS_LATE)
    be_late(N_BATCH + 1 - at);
  if (ill == SLOW) {
    SPIN(rig.mock.last == N_BATCH);
    rig.mock.is_held = 0;
    send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held,
              rig.mock.n_held);
  }
  SPIN((tick(1),
        look(answers, lines, is_removed || ill == IS_OLDER) == N_BATCH));
  begin_sync(&sync, 0);
  SPIN((tick(1), sync.n_done && rig.mock.last == N_BATCH));
  CHECK(tnk__gw_shared_why(rig.shared) == NULL);
  CHECK_INT(rig.mock.last, N_BATCH);
  CHECK_INT(rig.mock.n_stored, is_removed ? 0 : N_BATCH);
  for (size_t i = 0; i < rig.mock.n_stored; i++)
    CHECK_STR(rig.mock.stored[i][2], lines[i]);
  CHECK(!is_removed || rig.n_refused >= N_BATCH);
  CHECK(ill == WELL || ill == IS_LATE || rig.mock.n_ill > 0);
  rig_close();
}

TEST(each_answered_line_is_stored_once_and_in_order) {
  static const size_t moments[] = {1, 3, N_BATCH};
  char context[64];

  for (int ill = WELL; ill < N_ILLS; ill++)
    for (size_t m = 0; m < 3; m++)
      for (int kind = 0; kind < 3; kind++) {
        snprintf(context, sizeof(context), "%s, line %zu, kind %d",
                 ill_names[ill], moments[m], kind);
        test_context(context);
        try_ill((ill_t)ill, moments[m], kind > 0 ? "s" : NULL, kind == 2);
      }
}

/* Otherwise a full store would get all of them again and again. */
TEST(a_store_that_refuses_gets_one_line_at_a_time) {
  static const row_t all[] = {
      {"full", "EVALSHA", REPLY, "-OOM command not allowed\r\n", "OOM"},
      {"read-only", "EVALSHA", REPLY, "-READONLY You can't\r\n", "READONLY"},
      {"a line is missing", "EVALSHA", REPLY, ":0\r\n",
       "lacks an earlier line"},
      {"fails at lines", "EVALSHA", CUT, "", "was closed"},
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    answer_t last;

    test_context(all[i].name);
    rig_open();
    rig.mock.bad = &all[i];
    for (int k = 0; k < 8; k++)
      add("line");
    /* 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 s and then every 5 s. */
    for (int ms = 0; ms < 60000; ms += 10) {
      tick(10);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    CHECK(rig.mock.n_conns >= 8 && rig.mock.n_conns < 24);
    CHECK(rig.mock.n_bad < 8 + rig.mock.n_conns);
    check_why(all[i].why);
    rig.mock.bad = NULL;
    wait_again(&last);
    SPIN((tick(10), last.wait.n_done));
    CHECK_INT(last.wait.err, TNK_OK);
    CHECK_INT(rig.mock.n_stored, 8);
    CHECK(tnk__gw_shared_why(rig.shared) == NULL);
    rig_close();
  }
}

/* Another process wrote as this one: the store was an older copy for a time. */
TEST(a_number_that_another_process_uses_ends_the_record) {
  wait_t sync;

  rig_open();
  store_line("1", "1", "foreign");
  begin_sync(&sync, 0);
  SPIN(sync.n_done);
  CHECK_INT(sync.err, TNK_EFILE);
  check_why("has lost the record");
  rig_close();
}

/* An earlier connection did it after all, and it is read before the reply. */
TEST(a_line_that_is_read_before_its_reply_is_confirmed_once) {
  wait_t wait, sync;

  rig_open();
  begin_sync(&sync, 0);
  add("one");
  add("two");
  begin_wait(tnk__gw_shared_wait, &wait);
  CHECK_STR(append("1", "one", "", "1"), ":1\r\n");
  SPIN(wait.n_done && sync.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_INT(rig.mock.n_stored, 2);
  CHECK_STR(rig.mock.stored[1][2], "two");
  CHECK_INT(rig.mock.n_conns, 1);
  rig_close();
}

/* ---- Marks ---- */

static void mark(const char *session, const void *line, size_t n) {
  CHECK_INT(tnk__gw_shared_mark(rig.shared, session, "1-0", line, n), TNK_OK);
}

/* All sessions of a large record are marked at once. */
TEST(any_number_of_marks_can_be_made_at_once) {
  static char line[1 << 20];
  const tnk__gw_keep_t keep = {0};

  memset(line, ' ', sizeof(line));
  rig_open_as(&keep, 1);
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  for (int i = 0; i < 140; i++)
    mark("a", line, sizeof(line));
  CHECK_INT(tnk__gw_shared_mark(rig.shared, "a", "", line, 33 << 20),
            TNK_ETOOBIG);
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
  tick(5000);
  end_rig();
}

TEST(marks_are_sent_without_their_script_and_some_at_a_time) {
  enum { N_MARKS = 2500 };
  const tnk__gw_keep_t keep = {0};
  wait_t wait;

  rig_open_as(&keep, 1);
  for (int i = 0; i < N_MARKS; i++)
    mark("a", "{\"turns\":[1]}", 13);
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(rig.mock.n_marks > 0);
  rig.mock.is_held = 1;
  for (size_t n = 0; n != rig.mock.n_marks;) {
    n = rig.mock.n_marks;
    for (int i = 0; i < 10; i++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
  }
  CHECK_INT(rig.mock.n_held, 4 * 1024); /* replies */
  CHECK(rig.mock.n_marks < N_MARKS);
  CHECK(rig.mock.n_mark_bytes < 400);
  rig.mock.is_held = 0;
  send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held, rig.mock.n_held);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_INT(rig.mock.n_marks, N_MARKS);
  rig_close();
}

/* Their replies are lost from one of them on. */
TEST(marks_whose_replies_are_lost_are_made_once) {
  enum { N_MARKS = 4 };
  const tnk__gw_keep_t keep = {0};

  for (size_t at = 1; at < N_MARKS; at++) { /* the first one has the script */
    wait_t wait;

    rig_open_as(&keep, 1);
    for (size_t i = 0; i < N_MARKS; i++) {
      if (i == at)
        rig.mock.is_held = 1;
      mark("a", "{}", 2);
      SPIN(rig.mock.n_marks == i + 1);
    }
    begin_wait(tnk__gw_shared_wait, &wait);
    drop_conn((uv_stream_t *)&rig.mock.conns[0]);
    rig.mock.is_held = 0;
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
    SPIN((tick(1), wait.n_done));
    CHECK_INT(wait.err, TNK_OK);
    CHECK_INT(rig.mock.n_marks, N_MARKS);
    rig_close();
  }
}

TEST(a_reader_loads_its_script_only_for_marks) {
  static const row_t row = {"", "SCRIPT", REPLY, "-NOPERM no\r\n", ""};
  const tnk__gw_keep_t keep = {0};
  wait_t sync, wait;

  rig_open_as(&keep, 1);
  rig.mock.bad = &row;
  begin_sync(&sync, 0);
  SPIN(sync.n_done);
  CHECK_INT(rig.mock.n_bad, 0);
  rig.mock.bad = NULL;
  mark("a", NULL, 0);
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(wait.n_done);
  rig.mock.has_flushed = 1; /* it is loaded again */
  mark("b", NULL, 0);
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN((tick(1), wait.n_done));
  CHECK_INT(wait.err, TNK_OK);
  CHECK_INT(rig.mock.n_marks, 2);
  rig_close();
}

/* ---- Lines ---- */

TEST(lines_of_all_writers_are_read_once_and_in_order) {
  wait_t sync;

  rig_open();
  store_line("2", "1", "a");
  store_line("3", "1", "b");
  store_line("2", "1", "a");
  store_line("2", "2", "c");
  add("own");
  begin_sync(&sync, 0);
  SPIN(sync.n_done);
  CHECK_INT(rig.n_lines, 4);
  CHECK_STR(rig.lines[0], "a");
  CHECK_STR(rig.lines[1], "b");
  CHECK_STR(rig.lines[2], "c");
  CHECK_STR(rig.lines[3], "own");
  CHECK(rig.own[3] && !rig.own[2]);
  rig_close();
}

static void check_ended(void) {
  wait_t wait = {.waiter.done = on_done};

  CHECK_INT(tnk__gw_shared_error(rig.shared), TNK_EFILE);
  CHECK_INT(tnk__gw_shared_add(rig.shared, NULL, "x", 1), TNK_EFILE);
  CHECK_INT(tnk__gw_shared_sync(rig.shared, &wait.waiter, 0), TNK_EFILE);
  CHECK(tnk__gw_shared_why(rig.shared) != NULL);
}

TEST(malformed_entries_end_the_record) {
  static const char *const all[][3] = {
      {"2", "x", "a"}, {"", "1", "a"}, {"-2", "1", "a"}, {"2", "1", "bad"}};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    wait_t sync;

    rig_open();
    store_line(all[i][0], all[i][1], all[i][2]);
    begin_sync(&sync, 0);
    SPIN(sync.n_done);
    CHECK_INT(sync.err, TNK_EFILE);
    check_ended();
    rig_close();
  }
}

/* Another writer would get the number of this one. */
TEST(a_server_that_has_lost_its_data_is_not_used) {
  wait_t wait;

  rig_open();
  rig.mock.has_lost = 1;
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  tick(100);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_EFILE);
  check_why("has lost the record");
  check_ended();
  tick(60000);
  CHECK_INT(rig.mock.n_conns, 2);
  CHECK_INT(rig.mock.n_stored, 0);
  rig_close();
}

static void check_closing(int is_removed) {
  wait_t wait;

  rig_open();
  rig.mock.is_held = 1;
  rig.mock.removed = is_removed ? "gone" : NULL;
  add_about("gone", "one");
  begin_wait(tnk__gw_shared_wait, &wait);
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
  SPIN(rig.mock.n_held > 0);
  CHECK_INT(rig.mock.n_stored, !is_removed);
  tick(100);
  CHECK_INT(rig.n_closed, 0);
  rig.mock.is_held = 0;
  send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held, rig.mock.n_held);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  tick(100);
  SPIN(rig.n_closed);
  rig.n_closed = 0;
  rig.shared = NULL;
  SPIN(rig.mock.n_closed == rig.mock.n_conns);
  uv_close((uv_handle_t *)&rig.mock.listener, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
  redisReaderFree(rig.mock.readers[0]);
  for (int k = 0; k < 3 && !is_removed; k++)
    free(rig.mock.stored[0][k]);
  CHECK_INT(rig.n_refused, 0);
}

/* Closing sends what is left. The owner may be gone, so nothing is told it. */
TEST(closing_waits_for_the_last_lines) {
  check_closing(0);
}

TEST(closing_tells_of_no_removed_session) {
  check_closing(1);
}

TEST(too_long_lines_are_refused) {
  static char line[(32 << 20) + 1];

  rig_open();
  CHECK_INT(tnk__gw_shared_add(rig.shared, NULL, line, sizeof(line)),
            TNK_ETOOBIG);
  CHECK_INT(tnk__gw_shared_mark(rig.shared, "a", "", NULL, 0), TNK_EINVAL);
  rig_close();
}

/* Without memory a line is refused, or it is written later. */
TEST(memory_may_end_at_any_time) {
  for (long n = 0; n < 64; n++) {
    const tnk__gw_about_t about = {n % 2 != 0 ? "s" : NULL, TNK__GW_IS_NOTE, 0};
    wait_t wait = {.n_done = 1, .err = TNK_ECONN};
    int err;

    rig_open();
    test_alloc_fail_at(n / 2);
    err = tnk__gw_shared_add(rig.shared, &about, "one", 3);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    drop_conn((uv_stream_t *)&rig.mock.conns[0]);
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
    while (err == TNK_OK && wait.err != TNK_OK) {
      if (wait.n_done) {
        wait = (wait_t){.waiter.done = on_done, .err = TNK_ECONN};
        if (tnk__gw_shared_wait(rig.shared, &wait.waiter) == 1)
          wait.err = TNK_OK;
      }
      tick(1);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    test_alloc_fail_at(-1);
    CHECK_INT(rig.mock.n_stored, err == TNK_OK);
    rig_close();
  }
}

TEST(memory_may_end_while_it_opens) {
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {.alloc = test_allocator(),
                                            .where = &where,
                                            .ca_file = "ca.pem",
                                            .cert_file = "cert.pem",
                                            .key_file = "key.pem",
                                            .on_line = on_line};
  int did_fail = 1;

  CHECK(tnk__gw_where_read("valkeys://127.0.0.1:1/x", &where) == NULL);
  for (long n = 0; did_fail; n++) {
    int err;

    memset(&rig, 0, sizeof(rig));
    CHECK_INT(uv_loop_init(&rig.loop), 0);
    test_alloc_fail_at(n);
    err = tnk__gw_shared_new(&rig.shared, &options);
    if (err == TNK_OK)
      err = tnk__gw_shared_begin(rig.shared, &rig.loop);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
    if (rig.shared != NULL) {
      tnk__gw_shared_close(rig.shared, on_closed, NULL);
      uv_run(&rig.loop, UV_RUN_DEFAULT);
      CHECK_INT(rig.n_closed, 1);
    }
    CHECK_INT(uv_loop_close(&rig.loop), 0);
  }
}

/* ---- Addresses ---- */

TEST(addresses_are_read_and_shown_without_secrets) {
  static const struct {
    const char *text, *shown, *user, *password;
  } all[] = {
      {"valkey://h/n", "valkey://h:6379/n", "", ""},
      {"redis://10.0.0.1:7/a.b-c_D", "valkey://10.0.0.1:7/a.b-c_D", "", ""},
      {"valkey://[::1]:65535/n", "valkey://[::1]:65535/n", "", ""},
      {"valkey://[::1]/n", "valkey://[::1]:6379/n", "", ""},
      {"valkey://:p%2f%40@h/n", "valkey://h:6379/n", "", "p/@"},
      {"valkey://u:p:q@h:1/n", "valkey://h:1/n", "u", "p:q"},
      {"valkey://u:p@q@h:1/n", "valkey://h:1/n", "u", "p@q"},
      {"valkeys://h/n", "valkeys://h:6379/n", "", ""},
      {"rediss://u:p@[::1]:7/n", "valkeys://[::1]:7/n", "u", "p"},
      {"valkeys://h", NULL, "", ""},
      {"rediss://u:canary%2@h/n", NULL, "", ""},
      {"valkey://h", NULL, "", ""},
      {"valkey://h/", NULL, "", ""},
      {"valkey://h/a/b", NULL, "", ""},
      {"valkey://h/a{b}", NULL, "", ""},
      {"valkey:///n", NULL, "", ""},
      {"valkey://h:/n", NULL, "", ""},
      {"valkey://h:0/n", NULL, "", ""},
      {"valkey://h:65536/n", NULL, "", ""},
      {"valkey://h:12345678/n", NULL, "", ""},
      {"valkey://[::1/n", NULL, "", ""},
      {"valkey://[::1]x/n", NULL, "", ""},
      {"valkey://h h/n", NULL, "", ""},
      {"valkey://canary@h/n", NULL, "", ""},
      {"valkey://u:@h/n", NULL, "", ""},
      {"valkey://u:canary%2@h/n", NULL, "", ""},
      {"valkey://u:canary%@h/n", NULL, "", ""},
      {"valkey://u:canary%zz@h/n", NULL, "", ""},
      {"valkey://u:canary%00@h/n", NULL, "", ""},
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    tnk__gw_where_t where;
    const char *wrong = tnk__gw_where_read(all[i].text, &where);

    test_context(all[i].text);
    CHECK(tnk__gw_is_where(all[i].text));
    CHECK_INT(tnk__gw_is_secure_where(all[i].text),
              strncmp(all[i].text, "valkeys:", 8) == 0 ||
                  strncmp(all[i].text, "rediss:", 7) == 0);
    if (all[i].shown == NULL) {
      CHECK(wrong != NULL && strstr(wrong, "canary") == NULL);
      continue;
    }
    CHECK(wrong == NULL);
    CHECK_STR(where.shown, all[i].shown);
    CHECK_STR(where.user, all[i].user);
    CHECK_STR(where.password, all[i].password);
  }
  CHECK(!tnk__gw_is_where("valkey"));
  CHECK(!tnk__gw_is_where("dir/valkey://x"));
}
