/* SPDX-License-Identifier: MIT */
#include "gateway/store/state.h"
#include "shared_rig.h"

/* A shared record whose store has lost some of its data, or is not the one that
 * it was. */

/* ---- Another record of the name ---- */

/* What the server has become while the connection was away, or while it stayed.
 * Only a process whose number is its own may write. */
typedef struct {
  const char *name, *owner, *born; /* NULL: as before; "": none */
  int has_ended;
} owned_t;

static void try_owner(const owned_t *row, int is_cut, size_t n_before) {
  static const char *const lines[] = {"0", "1"};
  answer_t last;

  rig_open();
  for (size_t i = 0; i < n_before; i++)
    add(lines[i]);
  wait_again(&last);
  SPIN(last.is_safe || last.wait.n_done);
  if (row->owner != NULL)
    snprintf(rig.mock.owner, sizeof(rig.mock.owner), "%s", row->owner);
  if (row->born != NULL)
    snprintf(rig.mock.born, sizeof(rig.mock.born), "%s", row->born);
  if (is_cut) {
    drop_conn((uv_stream_t *)&rig.mock.conns[0]);
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  }
  add("mine");
  wait_again(&last);
  SPIN((tick(1), last.wait.n_done));
  CHECK_INT(last.wait.err, row->has_ended ? TNK_EFILE : TNK_OK);
  CHECK_INT(tnk__gw_shared_error(rig.shared), last.wait.err);
  CHECK_INT(stored("mine"), !row->has_ended);
  if (row->has_ended)
    check_why("has lost the record");
  rig_close();
}

TEST(only_the_owner_of_a_number_writes_with_it) {
  static const owned_t all[] = {
      {"as before", NULL, NULL, 0},
      {"an older copy without the owner", "", NULL, 0},
      {"of another process", "someone", NULL, 1},
      {"another record without writers", "", "someone", 1},
      {"another record with writers", "someone", "someone", 1},
  };
  char context[96];

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
    for (int is_cut = 0; is_cut < 2; is_cut++)
      for (size_t n_before = 0; n_before < 3; n_before++) {
        snprintf(context, sizeof(context), "%s, %d, %zu lines before",
                 all[i].name, is_cut, n_before);
        test_context(context);
        try_owner(&all[i], is_cut, n_before);
      }
}

TEST(a_reader_notices_another_record_of_the_name) {
  static const struct {
    const char *before, *after;
    int err;
  } all[] = {{"a", "a", TNK_OK},
             {"a", "b", TNK_EFILE},
             {"a", "", TNK_EFILE},
             {"", "a", TNK_OK},
             {"", "", TNK_OK}};
  const tnk__gw_keep_t keep = {0};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    const char *const born[] = {all[i].before, all[i].after};

    rig_open_as(&keep, 1);
    for (size_t k = 0; k < 2; k++) {
      snprintf(rig.mock.born, sizeof(rig.mock.born), "%s", born[k]);
      drop_conn((uv_stream_t *)&rig.mock.conns[k]);
      SPIN(tnk__gw_shared_why(rig.shared) != NULL);
      tick(100);
      SPIN(tnk__gw_shared_error(rig.shared) != TNK_OK ||
           tnk__gw_shared_why(rig.shared) == NULL);
    }
    CHECK_INT(tnk__gw_shared_error(rig.shared), all[i].err);
    rig_close();
  }
}

/* ---- An older copy ---- */

static void wait_for_lines(void) {
  answer_t last;

  wait_again(&last);
  SPIN((tick(1), last.is_safe || last.wait.n_done));
  CHECK(last.is_safe || last.wait.err == TNK_OK);
}

/* The connection ends, or it stays and the next line is refused. */
static void lose_lines(size_t n, int is_cut) {
  be_older(n);
  if (!is_cut)
    return;
  drop_conn((uv_stream_t *)&rig.mock.conns[rig.mock.n_conns - 1]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
}

/* `n_kept`: so many confirmed lines are in memory. */
static void try_older(size_t n_lost, size_t n_kept, int is_cut, int has_next) {
  static const char *const lines[] = {"1", "2", "3", "4", "5"};
  const size_t n_again = n_lost < n_kept ? n_lost : n_kept;
  char said[96];
  wait_t sync;

  rig_open();
  for (size_t i = 0; i < 5; i++) {
    add(lines[i]);
    wait_for_lines();
    if (i == 0)
      rig.shared->queue.max_kept = n_kept * rig.shared->queue.n_kept;
  }
  if (n_lost % 2 != 0) { /* it has read them */
    begin_sync(&sync, 0);
    SPIN((tick(1), sync.n_done));
  }
  lose_lines(n_lost, is_cut);
  if (has_next)
    add("next");
  SPIN((tick(1), rig.n_logged > 0 && tnk__gw_shared_why(rig.shared) == NULL));
  wait_for_lines();
  begin_sync(&sync, 0);
  SPIN((tick(1), sync.n_done));
  CHECK_INT(rig.mock.n_stored, 5 - n_lost + n_again + (size_t)(has_next != 0));
  for (size_t i = 0; i < 5; i++)
    CHECK_INT(stored(lines[i]), i < 5 - n_lost || i >= 5 - n_again);
  CHECK_INT(stored("next"), has_next);
  for (size_t i = 1; i < rig.mock.n_stored; i++)
    CHECK(strcmp(rig.mock.stored[i - 1][1], rig.mock.stored[i][1]) < 0);
  CHECK_INT(rig.n_older, 1);
  CHECK_INT(tnk__gw_shared_n_older(rig.shared), 1);
  snprintf(said, sizeof(said), "%zu lines are written again", n_again);
  CHECK_INT(strstr(rig.older, said) != NULL, n_again > 0);
  snprintf(said, sizeof(said), "%zu lines of this process are lost",
           n_lost - n_again);
  CHECK_INT(strstr(rig.older, said) != NULL, n_lost > n_again);
  rig_close();
}

TEST(lines_that_an_older_copy_lacks_are_written_again) {
  char context[64];

  for (size_t n_lost = 1; n_lost <= 5; n_lost++)
    for (size_t n_kept = 0; n_kept <= 5; n_kept++)
      for (int how = 0; how < 3; how++) {
        snprintf(context, sizeof(context), "%zu lost, %zu kept, %d", n_lost,
                 n_kept, how);
        test_context(context);
        try_older(n_lost, n_kept, how > 0, how < 2);
      }
}

/* Its next entries have ids before the last one that was read. */
TEST(new_lines_of_an_older_copy_are_read) {
  const tnk__gw_keep_t keep = {0};

  for (int is_read_only = 0; is_read_only < 2; is_read_only++)
    for (size_t n_lost = 0; n_lost <= 3; n_lost++) {
      wait_t sync;

      rig_open_as(&keep, is_read_only);
      for (int i = 0; i < 3; i++)
        store_line("2", (const char *const[]){"1", "2", "3"}[i], "old");
      begin_sync(&sync, 0);
      SPIN(sync.n_done);
      CHECK_INT(rig.n_lines, 3);
      lose_lines(n_lost, 0);
      rig.mock.last = 0;
      drop_conn((uv_stream_t *)&rig.mock.conns[0]);
      SPIN(tnk__gw_shared_why(rig.shared) != NULL);
      tick(100);
      SPIN(tnk__gw_shared_why(rig.shared) == NULL);
      store_line("3", "1", "new");
      begin_sync(&sync, 0);
      SPIN(sync.n_done);
      CHECK_INT(rig.n_lines, 4);
      CHECK_STR(rig.lines[3], "new");
      CHECK_INT(rig.n_older, n_lost > 0);
      CHECK_INT(tnk__gw_shared_n_older(rig.shared), n_lost > 0);
      if (n_lost > 0)
        CHECK(strstr(rig.older, "Lines that were read are not in it") != NULL);
      rig_close();
    }
}

/* ---- A slow connection ---- */

static size_t n_closed(void) {
  uv_run(&rig.loop, UV_RUN_NOWAIT);
  return rig.mock.n_closed;
}

/* Send the held reply, a byte each `pause_ms`. Returns how many milliseconds
 * the connection has lasted; 0: it has not ended. */
static uint64_t dribble(size_t n, uint64_t pause_ms) {
  uint64_t began_ms = rig.now_ms;

  for (size_t i = 0; i < n && rig.shared->resp != NULL; i++) {
    uint64_t n_moved = tnk__gw_resp_n_moved(rig.shared->resp);

    send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held + i, 1);
    SPIN(tnk__gw_resp_n_moved(rig.shared->resp) > n_moved);
    /* As often as the timer does, so that it sees when the byte came. */
    for (uint64_t ms = 0; ms < pause_ms && rig.shared->resp != NULL; ms += 50)
      tick(50);
  }
  return rig.shared->resp == NULL ? rig.now_ms - began_ms : 0;
}

/* A connection that moves is waited for, for a minute. One that is silent is
 * not. The next one is asked for fewer entries. */
TEST(a_slow_connection_that_moves_stays) {
  static const struct {
    size_t n; /* bytes of the reply */
    uint64_t pause_ms, ends_ms;
  } all[] = {{5, 50, 0},      {14, 4000, 0},   {50, 4000, 60000},
             {5, 5050, 5050}, {5, 6000, 5050}, {70, 1000, 60000}};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    wait_t sync;
    uint64_t ended_ms;

    rig_open();
    store_line("2", "1", "a line");
    rig.mock.is_held = 1;
    begin_sync(&sync, 0);
    SPIN(rig.mock.n_held > 0);
    CHECK_STR(rig.mock.count, "128");
    CHECK(rig.mock.n_held > 70);
    ended_ms = dribble(all[i].n, all[i].pause_ms);
    if (ended_ms != 0)
      CHECK(ended_ms <= all[i].ends_ms && ended_ms + 100 >= all[i].ends_ms);
    CHECK_INT(ended_ms != 0, all[i].ends_ms != 0);
    rig.mock.is_held = 0;
    if (ended_ms == 0) {
      CHECK_INT(n_closed(), 0);
      send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held + all[i].n,
                rig.mock.n_held - all[i].n);
    } else {
      tick(100);
    }
    SPIN(rig.n_lines == 1);
    CHECK_STR(rig.mock.count, ended_ms == 0 ? "128" : "32");
    rig_close();
  }
}

static void on_small_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  (void)handle, (void)hint;
  *buf = uv_buf_init(rig.mock.scratch, 4096);
}

/* A long command is written in parts, so that its way is seen to move. The
 * server's buffers are small, for some systems let them grow beyond the
 * command. */
TEST(a_server_that_reads_slowly_is_waited_for) {
  static char line[24 << 20];
  const tnk__gw_keep_t keep = {0};
  uv_stream_t *conn = (uv_stream_t *)&rig.mock.conns[0];
  int n_buffer = 64 << 10;
  wait_t wait;

  memset(line, ' ', sizeof(line));
  rig_open_as(&keep, 1);
  for (int i = 0; i < 2; i++)
    CHECK_INT(tnk__gw_shared_mark(rig.shared, "a", "1-0", line,
                                  i == 0 ? 1 : sizeof(line)),
              TNK_OK);
  SPIN(rig.mock.n_marks > 0);
  CHECK_INT(uv_read_stop(conn), 0);
  CHECK_INT(uv_recv_buffer_size((uv_handle_t *)conn, &n_buffer), 0);
  for (int i = 0; i < 10; i++) {
    uint64_t n_moved = tnk__gw_resp_n_moved(rig.shared->resp);

    CHECK_INT(uv_read_start(conn, on_small_alloc, on_read), 0);
    SPIN(tnk__gw_resp_n_moved(rig.shared->resp) > n_moved);
    CHECK_INT(uv_read_stop(conn), 0);
    for (uint64_t ms = 0; ms < 4500; ms += 50)
      tick(50);
    CHECK(rig.shared->resp != NULL);
    CHECK_INT(rig.mock.n_marks, 1);
  }
  CHECK_INT(uv_read_start(conn, on_alloc, on_read), 0);
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK(rig.mock.n_mark_bytes > sizeof(line));
  CHECK_INT(rig.mock.n_conns, 1);
  rig_close();
}

/* ---- A store that is almost full ---- */

/* `pause_ms`: between two lines; 0: all at once. */
static void try_almost_full(uint64_t pause_ms, size_t n_logged) {
  static char line[] = "a";
  uint64_t until_ms;

  rig_open();
  rig.shared->is_loaded = 1;
  rig.mock.ill = ALMOST_FULL;
  for (line[0] = 'a'; line[0] < 'a' + 12; line[0]++) {
    add(line);
    if (pause_ms == 0)
      continue;
    wait_for_lines();
    for (until_ms = rig.now_ms + pause_ms; rig.now_ms < until_ms;) {
      tick(50);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
  }
  wait_for_lines();
  CHECK_INT(rig.mock.n_stored, 12);
  CHECK_INT(rig.mock.n_ill, 6);
  SPIN((tick(50), tnk__gw_shared_why(rig.shared) == NULL));
  CHECK_INT(rig.n_logged, n_logged);
  CHECK(strstr(rig.logged, "answers again") != NULL);
  rig_close();
}

/* The log says that it fails, and that it is back, not both for each line. */
TEST(a_store_that_is_almost_full_does_not_flap) {
  static const struct {
    uint64_t pause_ms;
    size_t n_logged;
  } all[] = {
      {0, 2},         /* it is back when it has all lines */
      {100, 4},       /* it is back, and then it has to be well for longer */
      {1500, 8},      /* the same with 2 s, and with 4 s */
      {60000, 2 * 6}, /* each refusal is another trouble */
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
    try_almost_full(all[i].pause_ms, all[i].n_logged);
}

TEST(a_store_that_is_well_again_gets_more_lines_at_a_time) {
  static const row_t row = {"", "EVALSHA", REPLY, "-OOM command\r\n", ""};

  rig_open();
  rig.mock.bad = &row;
  for (char line[] = "a"; line[0] < 'a' + 12; line[0]++)
    add(line);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  rig.mock.bad = NULL;
  tick(100);
  while (rig.mock.n_stored < 12) {
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    /* Each reply permits one more line than there were. */
    CHECK(rig.mock.n_stored <= 2 * rig.shared->queue.n_safe + 1);
  }
  wait_for_lines();
  CHECK(tnk__gw_shared_why(rig.shared) == NULL);
  rig_close();
}

/* ---- A refusal whose reply is lost ---- */

/* Lines of one of four sessions are refused, and the replies are lost. The
 * lines of the others are read. */
static void try_lost_refusal(size_t at, size_t n_replies) {
  static const char *const sessions[] = {"a", "b", "c", "d"};
  answer_t answers[4];

  rig_open();
  rig.mock.is_held = 1;
  rig.mock.removed = sessions[at];
  for (size_t i = 0; i < 4; i++) {
    add_about(sessions[i], sessions[i]);
    wait_again(&answers[i]);
  }
  SPIN(rig.mock.last == 4);
  rig.mock.is_held = 0;
  for (size_t i = 0, from = 0; i < n_replies; i++) {
    size_t n = i == at ? strlen("$-1\r\n") : strlen(":1\r\n");

    send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held + from, n);
    SPIN(answers[i].wait.n_done);
    from += n;
  }
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  tick(100);
  for (size_t i = 0; i < 4; i++) {
    SPIN(answers[i].wait.n_done);
    CHECK_INT(answers[i].wait.err, TNK_OK);
  }
  CHECK_STR(rig.refused, sessions[at]);
  CHECK_INT(rig.n_refused, 1);
  CHECK_INT(rig.mock.n_stored, 3);
  rig_close();
}

TEST(a_line_that_is_read_confirms_no_earlier_one) {
  char context[64];

  for (size_t at = 0; at < 4; at++)
    for (size_t n_replies = 0; n_replies < 4; n_replies++) {
      snprintf(context, sizeof(context), "%zu is refused, %zu replies", at,
               n_replies);
      test_context(context);
      try_lost_refusal(at, n_replies);
    }
}

/* ---- Lines that are too long for the store ---- */

enum { LONG = (1 << 20) + 1 };

/* What is added, and the line that takes its place. */
typedef struct {
  const char *name;
  tnk__gw_about_t about;
  uint64_t request; /* of the turn */
  const char *line;
  size_t n_long; /* how many turns have failed */
} long_t;

static const long_t longs[] = {
    {"a turn",
     {"s", TNK__GW_IS_TURN, 5},
     77,
     "{\"type\":\"failed\",\"number\":77,\"why\":\"TNK_ETOOBIG\"}",
     1},
    {"a turn that is forgotten",
     {"s", TNK__GW_IS_TURN, 5},
     0,
     "{\"type\":\"ended\",\"number\":0}",
     1},
    {"an answer",
     {"s", TNK__GW_IS_ENDED, 9},
     0,
     "{\"type\":\"ended\",\"number\":9}",
     0},
    {"another line",
     {NULL, TNK__GW_IS_NOTE, 0},
     0,
     "{\"type\":\"ended\",\"number\":0}",
     0},
};

static char long_line[LONG];

static void add_long(const long_t *row) {
  rig.long_request = row->request;
  CHECK_INT(tnk__gw_shared_add(rig.shared, &row->about, long_line, LONG),
            TNK_OK);
}

/* The line at this position is too long. The others are stored. */
static void try_long(const long_t *row, size_t at, int says) {
  static const char *const lines[] = {"1", "2", "3", "4", "5"};
  answer_t answers[5];

  memset(long_line, ' ', sizeof(long_line));
  rig_open();
  rig.mock.max_line = 1 << 20;
  rig.mock.says_too_long = says;
  for (size_t i = 0; i < 5; i++) {
    if (i == at)
      add_long(row);
    else
      add(lines[i]);
    wait_again(&answers[i]);
  }
  for (size_t i = 0; i < 5; i++) {
    SPIN((tick(1), answers[i].wait.n_done));
    CHECK_INT(answers[i].wait.err, TNK_OK);
  }
  CHECK_INT(rig.n_long, row->n_long);
  CHECK_INT(rig.long_turn, row->n_long > 0 ? row->about.number : 0);
  CHECK_INT(rig.mock.n_stored, 5);
  for (size_t i = 0; i < 5; i++)
    CHECK_STR(rig.mock.stored[i][2], i == at ? row->line : lines[i]);
  CHECK_INT(rig.mock.n_too_long, says ? 1 : 3);
  CHECK_INT(rig.mock.n_conns, says ? 2 : 4);
  SPIN((tick(1), tnk__gw_shared_why(rig.shared) == NULL));
  CHECK_INT(rig.shared->queue.n_bytes, 0);
  rig_close();
}

TEST(a_line_that_is_too_long_for_the_store_is_replaced) {
  char context[96];

  for (size_t i = 0; i < sizeof(longs) / sizeof(*longs); i++)
    for (size_t at = 0; at < 5; at += 2)
      for (int says = 0; says < 2; says++) {
        snprintf(context, sizeof(context), "%s, line %zu, %d", longs[i].name,
                 at, says);
        test_context(context);
        try_long(&longs[i], at, says);
      }
}

/* A server that is about to end closes connections too. */
TEST(a_short_line_is_never_replaced) {
  answer_t last;

  rig_open();
  rig.mock.max_line = 1;
  add_about("s", "one");
  for (int ms = 0; ms < 60000; ms += 10) {
    tick(10);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  }
  CHECK(rig.mock.n_too_long > 3);
  rig.mock.max_line = 0;
  wait_again(&last);
  SPIN((tick(10), last.wait.n_done));
  CHECK_INT(stored("one"), 1);
  CHECK_INT(rig.n_long, 0);
  rig_close();
}

/* The turn fails once. Its line is replaced when there is memory. */
TEST(memory_may_end_while_a_line_is_replaced) {
  for (long n = 0; n < 40; n++) {
    answer_t last;

    rig_open();
    rig.mock.max_line = 1 << 20;
    rig.mock.says_too_long = n % 2 != 0;
    add_long(&longs[0]);
    SPIN((tick(1), rig.mock.n_too_long == (n % 2 != 0 ? 1 : 3)));
    test_alloc_fail_at(n / 2);
    for (int i = 0; i < 20; i++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    test_alloc_fail_at(-1);
    for (last.is_safe = 0; !last.is_safe;) {
      wait_again(&last);
      SPIN((tick(1), last.is_safe || last.wait.n_done));
      last.is_safe |= last.wait.err == TNK_OK;
    }
    CHECK_INT(rig.n_long, 1);
    CHECK_INT(rig.mock.n_stored, 1);
    CHECK_STR(rig.mock.stored[0][2], longs[0].line);
    rig_close();
  }
}

/* Nothing can take the place of a mark. */
TEST(a_mark_that_is_too_long_for_the_store_ends_the_export) {
  static const row_t row = {"", "EVALSHA", CUT,
                            "-ERR Protocol error: invalid bulk length\r\n", ""};
  const tnk__gw_keep_t keep = {0};
  wait_t wait;

  rig_open_as(&keep, 1);
  rig.mock.bad = &row;
  CHECK_INT(tnk__gw_shared_mark(rig.shared, "a", "1-0", "{}", 2), TNK_OK);
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN((tick(1), wait.n_done));
  CHECK_INT(wait.err, TNK_ETOOBIG);
  check_why("too long for the server");
  rig_close();
}

/* ---- Requests while the store refuses lines ---- */

/* They would be sampled for nothing. What is only read is not held. */
TEST(who_writes_waits_while_lines_are_refused) {
  static const struct {
    const char *text;
    int is_held;
  } all[] = {{":1\r\n", 0},
             {"-OOM command not allowed\r\n", 1},
             {"-READONLY You can't write\r\n", 1},
             {"-MISCONF Errors writing\r\n", 1}};

  for (size_t i = 0; i < 4; i++)
    for (int is_healed = 0; is_healed < 2; is_healed++) {
      const row_t row = {"", "EVALSHA", REPLY, all[i].text, ""};
      wait_t read, write;

      rig_open();
      rig.mock.bad = &row;
      add("one");
      SPIN(rig.mock.n_bad > 0);
      SPIN(rig.shared->is_refused == all[i].is_held);
      begin_sync(&write, 1);
      begin_sync(&read, 0); /* so it ends later */
      SPIN((tick(1), read.n_done));
      CHECK_INT(read.err, TNK_OK);
      CHECK_INT(write.n_done, !all[i].is_held);
      if (is_healed)
        rig.mock.bad = NULL;
      else
        tick(30000);
      SPIN((tick(1), write.n_done));
      CHECK_INT(write.err, is_healed || !all[i].is_held ? TNK_OK : TNK_ECONN);
      rig.mock.bad = NULL;
      wait_for_lines();
      rig_close();
    }
}
