/* SPDX-License-Identifier: MIT */
#include "lib/policy/turns.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "support/test.h"

static int ready[64];
static size_t n_ready;

typedef struct {
  tnk__turn_t turn;
  int index;
} op_t;

static tnk__turns_t turns;
static op_t ops[16];

static void on_ready(tnk__turn_t *turn) {
  ready[n_ready++] = tnk__container_of(turn, op_t, turn)->index;
}

static void setup(uint64_t first) {
  tnk__turns_init(&turns, first);
  for (int i = 0; i < 16; i++) {
    tnk__turn_init(&ops[i].turn, on_ready);
    ops[i].index = i;
  }
}

static int enter(int i) {
  return tnk__turns_enter(&turns, &ops[i].turn);
}

static uint64_t take(int i) {
  uint64_t number = UINT64_MAX;

  CHECK_INT(tnk__turns_take(&turns, &ops[i].turn, &number), TNK_OK);
  return number;
}

static int settle(int i, uint64_t number, tnk__effect_t effect, int err) {
  return tnk__turns_settle(&turns, &ops[i].turn, number, effect, err);
}

static void accept(int i, uint64_t number) {
  CHECK_INT(settle(i, number, TNK__EFFECT_ACCEPTED, TNK_OK), TNK_OK);
}

static void refuse(int i, uint64_t number) {
  CHECK_INT(settle(i, number, TNK__EFFECT_NONE, TNK_EREQUEST), TNK_OK);
}

static void leave(int i) {
  tnk__turns_leave(&turns, &ops[i].turn);
}

/* One operation of n numbers, all accepted. */
static void pass(int i, uint64_t first, int n) {
  for (int k = 0; k < n; k++) {
    uint64_t number = take(i);

    CHECK_INT(number, first + (uint64_t)k);
    accept(i, number);
  }
  leave(i);
}

TEST(S4_14_numbers_follow_the_order_of_calls) {
  setup(1);
  CHECK_INT(enter(0), 1);
  CHECK_INT(enter(1), 0);
  CHECK_INT(enter(2), 0);
  pass(0, 1, 1);
  CHECK_INT(n_ready, 1);
  CHECK_INT(ready[0], 1);
  pass(1, 2, 1);
  CHECK_INT(ready[1], 2);
  pass(2, 3, 2);
  CHECK_INT(n_ready, 2);
  CHECK_INT(turns.next, 5);
  CHECK_INT(turns.n_queued, 0);
}

TEST(S4_14_nobody_takes_a_number_out_of_turn) {
  uint64_t number;

  setup(0);
  enter(0);
  enter(1);
  CHECK_INT(tnk__turns_take(&turns, &ops[1].turn, &number), TNK_EINTERNAL);
  CHECK_INT(tnk__turns_take(&turns, &ops[5].turn, &number), TNK_EINTERNAL);
  CHECK_INT(take(0), 0);
  CHECK(tnk__turns_has_turn(&turns, &ops[0].turn));
  CHECK(!tnk__turns_has_turn(&turns, &ops[1].turn));
  CHECK(!tnk__turns_has_turn(&turns, &ops[5].turn));
}

TEST(S4_14_the_turn_stays_while_a_send_takes_long) {
  uint64_t number;

  setup(1);
  enter(0);
  enter(1);
  number = take(0);
  CHECK_INT(n_ready, 0);
  accept(0, number);
  CHECK_INT(n_ready, 0); /* it may have more to send */
  leave(0);
  CHECK_INT(n_ready, 1);
}

TEST(S4_14_entering_twice_is_one_place) {
  setup(1);
  CHECK_INT(enter(0), 1);
  CHECK_INT(enter(0), 1);
  CHECK_INT(enter(1), 0);
  CHECK_INT(enter(1), 0);
  CHECK_INT(turns.n_queued, 2);
}

TEST(S4_14_a_refused_number_goes_to_the_next_operation) {
  setup(1);
  enter(0);
  enter(1);
  CHECK_INT(take(0), 1);
  refuse(0, 1);
  leave(0);
  pass(1, 1, 1);
}

TEST(S4_14_a_canceled_operation_leaves_no_hole) {
  setup(1);
  enter(0);
  enter(1);
  enter(2);
  leave(1);
  leave(1);
  CHECK_INT(n_ready, 0);
  pass(0, 1, 1);
  CHECK_INT(ready[0], 2);
  pass(2, 2, 1);
  CHECK_INT(n_ready, 1);
}

TEST(S4_14_canceling_the_one_with_the_turn_passes_it_on) {
  setup(1);
  enter(0);
  enter(1);
  leave(0);
  CHECK_INT(ready[0], 1);
  pass(1, 1, 1);
}

TEST(S4_14_calls_from_a_callback_keep_their_order) {
  setup(1);
  enter(0);
  enter(1);
  leave(0);
  enter(2); /* as if from 0's completion */
  pass(1, 1, 1);
  CHECK_INT(ready[1], 2);
}

/* ---- Parallel chunks ---- */

TEST(S3_6a_chunks_side_by_side_take_a_row_of_numbers) {
  setup(1);
  enter(0);
  for (uint64_t n = 1; n <= 4; n++)
    CHECK_INT(take(0), n);
  CHECK_INT(ops[0].turn.n_open, 4);
  accept(0, 3);
  accept(0, 4);
  accept(0, 2);
  accept(0, 1);
  leave(0);
  CHECK_INT(turns.n_open, 0);
  CHECK_INT(turns.err, TNK_OK);
  CHECK_INT(turns.next, 5);
}

TEST(S3_26c_holes_are_filled_lowest_first) {
  setup(1);
  enter(0);
  enter(1);
  for (int n = 0; n < 5; n++)
    take(0);
  accept(0, 3);
  refuse(0, 4);
  accept(0, 5);
  refuse(0, 2);
  refuse(0, 1); /* never sent */
  leave(0);
  CHECK_INT(take(1), 1);
  CHECK_INT(take(1), 2);
  CHECK_INT(take(1), 4);
  CHECK_INT(take(1), 6);
}

TEST(S3_26c_numbers_at_the_end_are_no_holes) {
  setup(1);
  enter(0);
  for (int n = 0; n < 5; n++)
    take(0);
  refuse(0, 4);
  refuse(0, 2);
  CHECK_INT(turns.n_holes, 2);
  refuse(0, 3);
  CHECK_INT(turns.n_holes, 1);
  CHECK_INT(turns.holes[0].first, 2);
  CHECK_INT(turns.holes[0].last, 4);
  refuse(0, 5);
  CHECK_INT(turns.n_holes, 0);
  CHECK_INT(turns.next, 2);
  accept(0, 1);
  leave(0);
  enter(1);
  pass(1, 2, 3);
}

TEST(S3_26c_a_number_is_given_back_twice_and_used_once) {
  setup(1);
  enter(0);
  take(0);
  take(0);
  accept(0, 2);
  refuse(0, 1);
  CHECK_INT(take(0), 1);
  refuse(0, 1);
  CHECK_INT(take(0), 1);
  accept(0, 1);
  CHECK_INT(take(0), 3);
}

/* Holes in any order of giving back are merged into the same set. */
TEST(S3_26c_random_holes_are_kept_exactly) {
  uint64_t seed = 17;

  for (int round = 0; round < 300; round++) {
    uint8_t is_free[128] = {0};
    uint64_t n = 1 + test_random(&seed) % 100;
    uint64_t order[100];

    setup(0);
    enter(0);
    for (uint64_t i = 0; i < n; i++)
      order[i] = take(0);
    for (uint64_t i = n; i > 1; i--) {
      uint64_t k = test_random(&seed) % i;
      uint64_t swap = order[k];

      order[k] = order[i - 1];
      order[i - 1] = swap;
    }
    for (uint64_t i = 0; i < n; i++) {
      is_free[order[i]] = test_random(&seed) % 2 == 0;
      settle(0, order[i],
             is_free[order[i]] ? TNK__EFFECT_NONE : TNK__EFFECT_ACCEPTED, 0);
    }
    CHECK_INT(turns.err, TNK_OK);
    for (uint64_t i = 0; i < n; i++) {
      if (is_free[i])
        CHECK_INT(take(0), i);
    }
    CHECK_INT(take(0), n);
  }
}

TEST(S3_26c_more_holes_than_can_be_kept_fail_the_queue) {
  const uint64_t n = 2 * TNK__TURNS_MAX_HOLES + 2;

  setup(0);
  enter(0);
  for (uint64_t i = 0; i < n; i++)
    take(0);
  for (uint64_t i = 0; i + 2 < n; i += 2)
    CHECK_INT(settle(0, i, TNK__EFFECT_NONE, TNK_EREQUEST), TNK_OK);
  CHECK_INT(settle(0, n - 2, TNK__EFFECT_NONE, TNK_EREQUEST), TNK_EREQUEST);
}

/* ---- Failure of the queue ---- */

TEST(S1_7_an_unknown_fate_fails_everything_queued) {
  uint64_t number;

  setup(1);
  for (int i = 0; i < 4; i++)
    enter(i);
  take(0);
  CHECK_INT(settle(0, 1, TNK__EFFECT_UNKNOWN, TNK_ECONN), TNK_ECONN);
  CHECK_INT(tnk__turns_take(&turns, &ops[0].turn, &number), TNK_ECONN);
  leave(0);
  CHECK_INT(n_ready, 0); /* nobody gets the turn any more */
  for (int i = 1; i < 4; i++)
    CHECK(tnk__turns_next_failed(&turns) == &ops[i].turn);
  CHECK(tnk__turns_next_failed(&turns) == NULL);
  CHECK_INT(enter(5), TNK_ECONN);
  CHECK_INT(turns.n_queued, 0);
}

TEST(S1_7_the_first_failure_is_the_one_that_counts) {
  setup(1);
  enter(0);
  take(0);
  take(0);
  CHECK_INT(settle(0, 1, TNK__EFFECT_UNKNOWN, TNK_ETIMEDOUT), TNK_ETIMEDOUT);
  CHECK_INT(settle(0, 2, TNK__EFFECT_UNKNOWN, TNK_ECONN), TNK_ETIMEDOUT);
  tnk__turns_fail(&turns, TNK_ESESSION);
  CHECK_INT(turns.err, TNK_ETIMEDOUT);
}

TEST(S1_7_operations_with_open_numbers_are_not_drained) {
  setup(1);
  enter(0);
  enter(1);
  take(0);
  tnk__turns_fail(&turns, TNK_ESESSION);
  CHECK(tnk__turns_next_failed(&turns) == &ops[1].turn);
  CHECK(tnk__turns_next_failed(&turns) == NULL);
  CHECK_INT(settle(0, 1, TNK__EFFECT_ACCEPTED, TNK_OK), TNK_ESESSION);
  CHECK(tnk__turns_next_failed(&turns) == &ops[0].turn);
}

TEST(S0_3_a_number_in_doubt_is_the_next_one) {
  setup(1);
  enter(0);
  accept(0, take(0));
  CHECK_INT(tnk__turns_doubt(&turns, &ops[0].turn, take(0), 77, TNK_ECONN),
            TNK_OK);
  CHECK(tnk__turns_doubt_of(&turns, 1) == NULL);
  CHECK_INT(tnk__turns_doubt_of(&turns, 2)->mark, 77);
  CHECK_INT(take(0), 2);
  /* A refusal for another reason says nothing of it. */
  refuse(0, 2);
  CHECK(tnk__turns_doubt_of(&turns, 2) != NULL);
  CHECK_INT(take(0), 2);
  accept(0, 2);
  CHECK(tnk__turns_doubt_of(&turns, 2) == NULL);
  /* What the server says that it has is not in doubt any more. */
  tnk__turns_doubt(&turns, &ops[0].turn, take(0), 78, TNK_ECONN);
  CHECK_INT(tnk__turns_heal(&turns, turns.epoch, 2, 5), 1);
  CHECK(tnk__turns_doubt_of(&turns, 3) == NULL);
  CHECK_INT(take(0), 5);
}

TEST(S0_3_more_doubts_than_can_be_remembered_fail_the_queue) {
  setup(1);
  enter(0);
  for (int i = 0; i <= TNK__TURNS_MAX_DOUBTS; i++)
    take(0);
  for (uint64_t k = 1; k <= TNK__TURNS_MAX_DOUBTS; k++)
    CHECK_INT(tnk__turns_doubt(&turns, &ops[0].turn, k, k, TNK_ECONN), TNK_OK);
  CHECK_INT(tnk__turns_doubt(&turns, &ops[0].turn, TNK__TURNS_MAX_DOUBTS + 1, 0,
                             TNK_ECONN),
            TNK_ECONN);
}

TEST(Q1_a_queue_begins_anew_with_another_server) {
  setup(1);
  enter(0);
  take(0);
  tnk__turns_restart(&turns, 7);
  CHECK_INT(turns.err, TNK_EINTERNAL); /* a number is open */
  setup(1);
  enter(0);
  take(0);
  take(0);
  refuse(0, 1);
  accept(0, 2);
  tnk__turns_fail(&turns, TNK_ESESSION);
  tnk__turns_restart(&turns, 7);
  CHECK_INT(take(0), 7);
}

TEST(S1_7_a_running_queue_has_nobody_failed) {
  setup(1);
  enter(0);
  CHECK(tnk__turns_next_failed(&turns) == NULL);
}

TEST(S1_7_a_failure_without_a_code_is_internal) {
  setup(1);
  tnk__turns_fail(&turns, TNK_OK);
  CHECK_INT(enter(0), TNK_EINTERNAL);
}

TEST(S4_2b_misuse_fails_the_queue) {
  setup(1);
  enter(0);
  CHECK_INT(settle(0, 1, TNK__EFFECT_ACCEPTED, 0), TNK_EINTERNAL);
  setup(1);
  enter(0);
  take(0);
  CHECK_INT(settle(0, 2, TNK__EFFECT_ACCEPTED, 0), TNK_EINTERNAL);
  setup(1);
  enter(0);
  enter(1);
  take(0);
  leave(0); /* with a number open */
  CHECK_INT(turns.err, TNK_EINTERNAL);
  CHECK_INT(turns.n_open, 0);
  CHECK_INT(n_ready, 0);
}

/* ---- Numbers that the server corrects ---- */

TEST(conflict_downwards_goes_on_where_the_server_is) {
  uint32_t epoch;

  setup(1);
  enter(0);
  pass(0, 1, 5);
  epoch = ops[0].turn.epoch;
  CHECK_INT(tnk__turns_heal(&turns, epoch, 4, 2), 1);
  enter(1);
  pass(1, 2, 2);
}

TEST(conflict_downwards_waits_for_open_numbers) {
  uint32_t epoch;

  setup(1);
  enter(0);
  pass(0, 1, 4);
  epoch = ops[0].turn.epoch;
  enter(1);
  CHECK_INT(take(1), 5);
  CHECK_INT(tnk__turns_heal(&turns, epoch, 4, 2), 1);
  CHECK_INT(take(1), 6);
  accept(1, 5);
  CHECK_INT(turns.next, 7);
  accept(1, 6);
  CHECK_INT(take(1), 2);
}

TEST(conflict_of_the_old_numbering_is_ignored) {
  uint32_t old_epoch;

  setup(1);
  enter(0);
  pass(0, 1, 4);
  old_epoch = ops[0].turn.epoch;
  CHECK_INT(tnk__turns_heal(&turns, old_epoch, 3, 2), 1);
  enter(1);
  pass(1, 2, 2);
  CHECK_INT(tnk__turns_heal(&turns, old_epoch, 4, 2), 0);
  enter(2);
  pass(2, 4, 1);
  CHECK_INT(tnk__turns_heal(&turns, ops[2].turn.epoch, 4, 3), 1);
  enter(3);
  pass(3, 3, 1);
}

TEST(conflict_downwards_drops_holes) {
  setup(1);
  enter(0);
  for (int i = 0; i < 6; i++)
    take(0);
  for (uint64_t n = 1; n <= 6; n++)
    n == 2 || n == 5 ? refuse(0, n) : accept(0, n);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 6, 4), 1);
  CHECK_INT(take(0), 4);
  CHECK_INT(take(0), 5);
  CHECK_INT(take(0), 6);
}

TEST(conflict_downwards_to_a_number_that_is_then_accepted) {
  uint32_t epoch;

  setup(1);
  enter(0);
  take(0);
  take(0);
  accept(0, 2);
  epoch = ops[0].turn.epoch;
  CHECK_INT(tnk__turns_heal(&turns, epoch, 2, 1), 1);
  accept(0, 1); /* which the server was waiting for */
  CHECK_INT(take(0), 2);
}

TEST(conflict_upwards_skips_used_numbers) {
  setup(1);
  enter(0);
  CHECK_INT(take(0), 1);
  refuse(0, 1);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 1, 7), 1);
  CHECK_INT(take(0), 7);
  /* The report may come first as well. */
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 7, 9), 1);
  refuse(0, 7);
  CHECK_INT(take(0), 9);
}

TEST(conflict_upwards_never_lowers) {
  setup(1);
  enter(0);
  pass(0, 1, 6);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 2, 3), 1);
  enter(1);
  pass(1, 7, 1);
}

TEST(conflict_upwards_cuts_holes_below) {
  setup(1);
  enter(0);
  for (int i = 0; i < 8; i++)
    take(0);
  for (uint64_t n = 1; n <= 8; n++)
    n == 2 || (n >= 4 && n <= 6) ? refuse(0, n) : accept(0, n);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 1, 6), 1);
  CHECK_INT(take(0), 6);
  CHECK_INT(take(0), 9);
}

TEST(conflict_that_says_nothing_changes_nothing) {
  setup(1);
  enter(0);
  pass(0, 1, 3);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 3, 3), 0);
  tnk__turns_fail(&turns, TNK_ECONN);
  CHECK_INT(tnk__turns_heal(&turns, ops[0].turn.epoch, 3, 1), 0);
  CHECK_INT(turns.next, 4);
}

TEST(S4_14_texts_of_conflicts) {
  static const struct {
    const char *text;
    int found;
    uint64_t expected;
    uint64_t got;
  } rows[] = {
      {"Sequence conflict: expected 2, got 3.", 1, 2, 3},
      {"expected 0, got 12", 1, 0, 12},
      {"nothing expected here; expected 7, got 5", 1, 7, 5},
      {"expected 9223372036854775807, got 1", 0, 0, 0},
      {"expected 922337203685477580, got 1", 1, UINT64_C(922337203685477580),
       1},
      {"expected 99999999999999999999, got 1", 0, 0, 0},
      {"expected -1, got 3", 0, 0, 0},
      {"expected 2", 0, 0, 0},
      {"expected 2, got", 0, 0, 0},
      {"expected 2, got x", 0, 0, 0},
      {"expected two, got 3", 0, 0, 0},
      {"expected ", 0, 0, 0},
      {"", 0, 0, 0},
      {NULL, 0, 0, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    uint64_t expected;
    uint64_t got;

    CHECK_INT(tnk__turns_parse_conflict(rows[i].text, &expected, &got),
              rows[i].found);
    if (rows[i].found) {
      CHECK_INT(expected, rows[i].expected);
      CHECK_INT(got, rows[i].got);
    }
  }
}

TEST(S4_14_a_number_that_is_taken_is_told_in_words) {
  static const struct {
    const char *text;
    int is_taken;
  } rows[] = {
      {"Training request sequence number was reused", 1},
      {"Training request sequence number was reused: 7", 1},
      {"sequence number 7 is already used", 1},
      {"the sequence number has already been used", 1},
      {"Checkpoint 'was reused' already exists", 0},
      {"Checkpoint 'w' was reused", 0},
      {"sequence number is too low", 0},
      {"", 0},
      {NULL, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_INT(tnk__turns_parse_taken(rows[i].text), rows[i].is_taken);
}
