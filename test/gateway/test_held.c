/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "gateway/record/line.h"
#include "lib/base/alloc.h"
#include "record.h"

/* Lines of a shared record whose order has changed, because processes have
 * written them again to a store that had lost them. */

enum { N_TURNS = 4, N_LINES = 7, MAX_LINE = 1024 };

/* Turn 1 has the children 2 and 4, and 2 has the child 3. */
static const uint64_t parents[N_TURNS + 1] = {0, 0, 1, 2, 1};

static char lines[N_LINES][MAX_LINE];

static void put(size_t at, tnk__buf_t *line) {
  CHECK(line->len < MAX_LINE);
  memcpy(lines[at], line->data, line->len);
  lines[at][line->len] = '\0';
  tnk__buf_deinit(line);
}

/* Four turns, two rewards of turn 3, and a mark of the turns 3 and 4. */
static void make_lines(void) {
  static const uint64_t leaves[] = {3, 4};
  tnk__buf_t line;

  for (uint64_t n = 1; n <= N_TURNS; n++) {
    tnk__gw_turn_t parent = {.by_number = {.key = parents[n]}};
    const int32_t turn_ids[] = {(int32_t)(10 * n), (int32_t)(10 * n + 1)};
    const tnk__gw_turn_new_t turn = {.session = "s",
                                     .request = 9,
                                     .parent = parents[n] != 0 ? &parent : NULL,
                                     .key = n,
                                     .api = "chat",
                                     .prompt = turn_ids,
                                     .n_prompt = 1,
                                     .sampled = turn_ids + 1,
                                     .n_sampled = 1,
                                     .end = "stop"};

    tnk__buf_init(&line, test_allocator(), SIZE_MAX);
    CHECK_INT(tnk__gw_line_turn(&turn, n, &line), TNK_OK);
    put(n - 1, &line);
  }
  for (size_t i = 0; i < 2; i++) {
    tnk__buf_init(&line, test_allocator(), SIZE_MAX);
    CHECK_INT(tnk__gw_line_reward(3, (double)i + 1, &line), TNK_OK);
    put(N_TURNS + i, &line);
  }
  tnk__buf_init(&line, test_allocator(), SIZE_MAX);
  CHECK_INT(tnk__gw_line_exported("s", leaves, 2, &line), TNK_OK);
  put(N_TURNS + 2, &line);
}

static int take(rig_t *rig, const char *line) {
  return tnk__gw_record_take(rig->record, line, strlen(line), "1-0", 0);
}

/* A record that is read as a shared one is, without a store. */
static void open_shared(rig_t *rig) {
  CHECK_INT(open_record(rig, 0, 0, 0), TNK_OK);
  rig->record->shared = (void *)rig;
}

static void close_shared(rig_t *rig) {
  rig->record->shared = NULL;
  close_record(rig);
}

/* Check that everything is there, as if it had come in order. */
static void check_all(rig_t *rig, double reward) {
  static const int32_t all[][6] = {
      {10, 11}, {10, 11, 20, 21}, {10, 11, 20, 21, 30, 31}, {10, 11, 40, 41}};
  static const size_t n_all[] = {2, 4, 6, 4};

  for (uint64_t n = 1; n <= N_TURNS; n++) {
    tnk__gw_turn_t *turn = tnk__gw_record_turn(rig->record, n);

    CHECK(turn != NULL);
    check_ids(rig, turn, all[n - 1], n_all[n - 1]);
    CHECK_INT(turn->is_exported, n >= 3);
    if (n == 3)
      CHECK(turn->reward == reward);
    else
      CHECK(isnan(turn->reward));
  }
  CHECK_INT(tnk__gw_record_session(rig->record, "s")->n_turns, N_TURNS);
  CHECK_INT(rig->record->held.n_bytes, 0);
}

/* The next order of the lines, or 0 after the last one. */
static int permute(size_t *order) {
  size_t i = N_LINES - 1, k = N_LINES - 1, tmp;

  while (i > 0 && order[i - 1] >= order[i])
    i--;
  if (i == 0)
    return 0;
  while (order[k] <= order[i - 1])
    k--;
  tmp = order[i - 1], order[i - 1] = order[k], order[k] = tmp;
  for (k = N_LINES - 1; i < k; i++, k--)
    tmp = order[i], order[i] = order[k], order[k] = tmp;
  return 1;
}

/* The latest reward in the store is the one that counts. */
TEST(lines_in_any_order_make_the_same_record) {
  size_t order[N_LINES] = {0, 1, 2, 3, 4, 5, 6};
  size_t n = 0;
  rig_t rig;

  rig_open(&rig);
  make_lines();
  do {
    double reward = 0;
    char context[N_LINES + 1] = "";

    for (size_t i = 0; i < N_LINES; i++)
      context[i] = (char)('1' + order[i]);
    test_context(context);
    open_shared(&rig);
    for (size_t i = 0; i < N_LINES; i++) {
      CHECK_INT(take(&rig, lines[order[i]]), TNK_OK);
      if (order[i] == N_TURNS || order[i] == N_TURNS + 1)
        reward = (double)(order[i] - N_TURNS) + 1;
    }
    check_all(&rig, reward);
    close_shared(&rig);
    n++;
  } while (permute(order));
  CHECK_INT(n, 5040);
  rig_close(&rig);
}

/* Nothing of a removed session is read later. */
TEST(a_removed_session_is_not_waited_for) {
  rig_t rig;

  rig_open(&rig);
  make_lines();
  open_shared(&rig);
  CHECK_INT(take(&rig, lines[1]), TNK_OK);
  CHECK_INT(take(&rig, lines[2]), TNK_OK);
  CHECK_STR(tnk__gw_held_session(&rig.record->held), "s");
  CHECK_INT(take(&rig, "{\"type\":\"removed\",\"session\":\"other\"}"), TNK_OK);
  CHECK_STR(tnk__gw_held_session(&rig.record->held), "s");
  CHECK_INT(take(&rig, "{\"type\":\"removed\",\"session\":\"s\"}"), TNK_OK);
  CHECK_INT(rig.record->held.n_bytes, 0);
  CHECK_INT(take(&rig, lines[0]), TNK_OK);
  CHECK_INT(tnk__gw_record_session(rig.record, "s")->n_turns, 1);
  close_shared(&rig);
  rig_close(&rig);
}

/* The oldest lines are dropped. The others are read when their turn comes. */
TEST(lines_that_wait_have_a_limit) {
  rig_t rig;

  rig_open(&rig);
  make_lines();
  for (size_t max = 0; max < 4 * MAX_LINE; max += 64) {
    size_t n_there = 0;

    open_shared(&rig);
    rig.record->held.max_bytes = max;
    for (size_t i = 1; i < N_LINES; i++) {
      CHECK_INT(take(&rig, lines[i]), TNK_OK);
      CHECK(rig.record->held.n_bytes <= max);
    }
    CHECK_INT(take(&rig, lines[0]), TNK_OK);
    for (uint64_t n = 1; n <= N_TURNS; n++)
      n_there += tnk__gw_record_turn(rig.record, n) != NULL;
    CHECK(n_there >= 1);
    CHECK_INT(n_there == N_TURNS, tnk__gw_record_turn(rig.record, 2) != NULL);
    if (max == 0)
      CHECK_INT(n_there, 1);
    if (max >= 3 * MAX_LINE)
      CHECK_INT(n_there, N_TURNS);
    close_shared(&rig);
  }
  rig_close(&rig);
}

/* A line that cannot be held ends the reading. Nothing is left behind. */
TEST(memory_may_end_while_lines_wait) {
  static const size_t order[] = {4, 2, 6, 1, 3, 5, 0};
  int did_fail = 1;
  rig_t rig;

  rig_open(&rig);
  make_lines();
  for (long n = 0; did_fail; n++) {
    int err = TNK_OK;

    open_shared(&rig);
    test_alloc_fail_at(n);
    for (size_t i = 0; i < N_LINES && err == TNK_OK; i++)
      err = take(&rig, lines[order[i]]);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
    close_shared(&rig);
  }
  rig_close(&rig);
}
