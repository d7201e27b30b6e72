/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/policy/turns.h"
#include "support/test.h"

/*
 * Random schedules of a training client against small models of the servers
 * that exist. They differ in what a sequence number means to them:
 *
 *   HOLDING  runs strictly by number, holds what comes early, knows a repeat;
 *   ARRIVAL  runs as requests come, knows a repeat by its number;
 *   STRICT   runs as requests come and fails each whose number is not the one
 *            it expects; knows no repeats; does not count what failed.
 *
 * A server that sees a number with other bytes than before ends the test.
 */
typedef enum { HOLDING, ARRIVAL, STRICT } server_t;

enum { MAX_OPS = 40, MAX_CHUNKS = 6, MAX_NUMBERS = 512, MAX_LOG = 1024 };

typedef enum { UNSENT, SENT, ACCEPTED, REFUSED } chunk_state_t;

typedef struct {
  chunk_state_t state;
  int is_bad;      /* the server refuses these bytes, each time */
  int was_unknown; /* an attempt was lost */
  int n_runs;
  uint64_t number;
  uint32_t epoch;
} chunk_t;

typedef struct {
  tnk__turn_t turn;
  int index;
  int n_chunks;
  int is_parallel;
  int is_ready;
  int has_failed;
  int is_done;
  chunk_t chunks[MAX_CHUNKS];
} op_t;

typedef struct {
  op_t *op;
  int chunk;
} ref_t;

/* A future's answer on its way to the client. */
typedef struct {
  uint64_t number;
  uint64_t expected;
  uint32_t epoch;
} report_t;

static struct {
  server_t server;
  uint64_t seed;
  tnk__turns_t turns;
  op_t ops[MAX_OPS];
  int n_ops;
  int is_calm; /* nothing goes wrong any more */
  ref_t flying[MAX_LOG];
  int n_flying;
  report_t reports[MAX_LOG];
  int n_reports;
  /* the server */
  ref_t seen[MAX_NUMBERS]; /* by number */
  uint64_t expected;
  ref_t runs[MAX_LOG];
  int n_runs;
} w;

static unsigned roll(unsigned n) {
  return (unsigned)(test_random(&w.seed) % n);
}

static int happens(unsigned percent) {
  return !w.is_calm && roll(100) < percent;
}

/* ---- The servers ---- */

static void run(ref_t ref) {
  CHECK(w.n_runs < MAX_LOG);
  w.runs[w.n_runs++] = ref;
  ref.op->chunks[ref.chunk].n_runs++;
}

static void receive_strictly(ref_t ref, int is_answered) {
  chunk_t *chunk = &ref.op->chunks[ref.chunk];
  report_t report = {chunk->number, w.expected, chunk->epoch};

  if (chunk->number == w.expected) {
    if (happens(15))
      return; /* it failed, which does not count */
    w.expected++;
    run(ref);
  } else if (is_answered) {
    CHECK(w.n_reports < MAX_LOG);
    w.reports[w.n_reports++] = report;
  }
}

static void receive(ref_t ref, int is_answered) {
  chunk_t *chunk = &ref.op->chunks[ref.chunk];
  ref_t *seen = &w.seen[chunk->number];

  if (w.server == STRICT) {
    receive_strictly(ref, is_answered);
    return;
  }
  CHECK(chunk->number < MAX_NUMBERS);
  if (seen->op != NULL) {
    CHECK(seen->op == ref.op && seen->chunk == ref.chunk);
    return;
  }
  *seen = ref;
  if (w.server == ARRIVAL)
    run(ref);
  while (w.server == HOLDING && w.seen[w.expected].op != NULL)
    run(w.seen[w.expected++]);
}

/* ---- The client ---- */

static void on_ready(tnk__turn_t *turn) {
  tnk__container_of(turn, op_t, turn)->is_ready = 1;
}

static void finish(op_t *op) {
  tnk__turns_leave(&w.turns, &op->turn);
  op->is_done = 1;
}

static void drain(void) {
  tnk__turn_t *turn;

  while ((turn = tnk__turns_next_failed(&w.turns)) != NULL) {
    op_t *op = tnk__container_of(turn, op_t, turn);

    op->has_failed = 1;
    op->is_done = 1;
  }
}

static void settle(op_t *op, int i, tnk__effect_t effect) {
  chunk_t *chunk = &op->chunks[i];

  chunk->state = effect == TNK__EFFECT_ACCEPTED ? ACCEPTED : REFUSED;
  if (effect != TNK__EFFECT_ACCEPTED)
    op->has_failed = 1;
  if (tnk__turns_settle(&w.turns, &op->turn, chunk->number, effect,
                        TNK_ECONN) != TNK_OK) {
    op->has_failed = 1;
    drain();
  }
}

static int take(op_t *op, int i) {
  if (tnk__turns_take(&w.turns, &op->turn, &op->chunks[i].number) != TNK_OK)
    return 0;
  op->chunks[i].epoch = op->turn.epoch;
  return 1;
}

static void send(op_t *op, int i) {
  CHECK(w.n_flying < MAX_LOG);
  op->chunks[i].state = SENT;
  w.flying[w.n_flying].op = op;
  w.flying[w.n_flying++].chunk = i;
}

static int count(const op_t *op, chunk_state_t state) {
  int n = 0;

  for (int i = 0; i < op->n_chunks; i++)
    n += op->chunks[i].state == state;
  return n;
}

static void drive_serial(op_t *op) {
  int next = op->n_chunks - count(op, UNSENT);

  if (count(op, SENT) > 0)
    return;
  if (op->has_failed || next == op->n_chunks || !take(op, next))
    finish(op);
  else
    send(op, next);
}

/* The first chunk goes last, when all others are accepted. */
static void drive_parallel(op_t *op) {
  if (count(op, UNSENT) == op->n_chunks) {
    if (op->has_failed) {
      finish(op);
      return;
    }
    for (int i = 0; i < op->n_chunks; i++)
      CHECK(take(op, i));
    for (int i = 1; i < op->n_chunks; i++)
      send(op, i);
    return;
  }
  if (count(op, SENT) > 0)
    return;
  if (op->chunks[0].state == UNSENT && !op->has_failed) {
    send(op, 0);
    return;
  }
  if (op->chunks[0].state == UNSENT)
    settle(op, 0, TNK__EFFECT_NONE);
  if (!op->is_done)
    finish(op);
}

static void drive(op_t *op) {
  if (op->is_done || !op->is_ready)
    return;
  CHECK(w.turns.err != TNK_OK || tnk__turns_has_turn(&w.turns, &op->turn));
  if (op->is_parallel && op->n_chunks > 1)
    drive_parallel(op);
  else
    drive_serial(op);
}

static op_t *enter(int n_chunks, int is_parallel) {
  op_t *op = &w.ops[w.n_ops];
  int got;

  CHECK(w.n_ops < MAX_OPS);
  op->index = w.n_ops++;
  op->n_chunks = n_chunks;
  op->is_parallel = is_parallel;
  for (int i = 0; i < n_chunks; i++)
    op->chunks[i].is_bad = happens(8);
  tnk__turn_init(&op->turn, on_ready);
  got = tnk__turns_enter(&w.turns, &op->turn);
  op->is_ready = got == 1;
  op->is_done = op->has_failed = got < 0;
  return op;
}

/* One attempt of a submission: what the network and the server make of it,
 * and what the retry table makes of that. */
static void deliver(int at, unsigned percent_unknown) {
  ref_t ref = w.flying[at];
  chunk_t *chunk = &ref.op->chunks[ref.chunk];
  tnk__attempt_t attempt;

  memset(&attempt, 0, sizeof(attempt));
  attempt.call = TNK__CALL_TRAIN;
  attempt.was_unknown = chunk->was_unknown;
  if (happens(20)) {
    if (!chunk->is_bad && roll(2) == 0)
      receive(ref, 0);
    chunk->was_unknown = 1;
    if (!happens(percent_unknown))
      return; /* to be sent again */
    attempt.outcome = TNK__OUTCOME_LOST;
  } else if (chunk->is_bad) {
    attempt.outcome = TNK__OUTCOME_422;
  } else if (happens(percent_unknown)) {
    attempt.outcome = TNK__OUTCOME_401;
  } else {
    receive(ref, 1);
    attempt.outcome = TNK__OUTCOME_2XX;
  }
  w.flying[at] = w.flying[--w.n_flying];
  settle(ref.op, ref.chunk, tnk__classify(&attempt).effect);
}

static void hear_report(int at) {
  report_t report = w.reports[at];

  w.reports[at] = w.reports[--w.n_reports];
  tnk__turns_heal(&w.turns, report.epoch, report.number, report.expected);
}

static void cancel(op_t *op) {
  if (op->is_done)
    return;
  op->has_failed = 1;
  if (!op->is_ready)
    finish(op);
}

/* ---- One schedule ---- */

static int is_quiet(void) {
  for (int i = 0; i < w.n_ops; i++) {
    if (!w.ops[i].is_done)
      return 0;
  }
  return w.n_flying == 0 && w.n_reports == 0;
}

static void step(unsigned percent_unknown) {
  switch (roll(4)) {
  case 0:
    if (w.n_flying > 0)
      deliver((int)roll((unsigned)w.n_flying), percent_unknown);
    break;
  case 1:
    if (w.n_reports > 0)
      hear_report((int)roll((unsigned)w.n_reports));
    break;
  default:
    if (w.n_ops > 0)
      drive(&w.ops[roll((unsigned)w.n_ops)]);
  }
}

static void settle_down(unsigned percent_unknown) {
  for (int n = 0; !is_quiet(); n++) {
    CHECK(n < 1000000); /* somebody waits for ever */
    step(percent_unknown);
  }
}

/* Of operations that went well, all of an earlier one ran before any of a
 * later one, and each chunk ran once. */
static void check_runs(int once) {
  int last = -1;

  for (int i = 0; i < w.n_runs; i++) {
    const op_t *op = w.runs[i].op;

    if (op->has_failed)
      continue;
    CHECK(op->index >= last);
    last = op->index;
  }
  for (int i = 0; once && i < w.n_ops; i++) {
    for (int k = 0; !w.ops[i].has_failed && k < w.ops[i].n_chunks; k++)
      CHECK_INT(w.ops[i].chunks[k].n_runs, 1);
  }
}

static void play(server_t server, uint64_t seed, unsigned percent_unknown) {
  memset(&w, 0, sizeof(w));
  w.server = server;
  w.seed = seed * 7919 + 1;
  w.expected = 1;
  tnk__turns_init(&w.turns, 1);
  while (w.n_ops < 24) {
    if (roll(6) == 0)
      enter(1 + (int)roll(MAX_CHUNKS), server != STRICT && roll(2) == 0);
    else if (w.n_ops > 0 && roll(40) == 0)
      cancel(&w.ops[roll((unsigned)w.n_ops)]);
    else
      step(percent_unknown);
  }
  settle_down(percent_unknown);
  w.is_calm = 1;
  CHECK_INT(w.turns.n_open, 0);
  CHECK_INT(w.turns.n_queued, 0);
}

/* The next operations use up what was given back; then the server must have
 * run all that it accepted. */
static void play_holding(uint64_t seed, unsigned percent_unknown) {
  play(HOLDING, seed, percent_unknown);
  if (w.turns.err == TNK_OK) {
    while (w.turns.n_holes > 0) {
      enter(1, 0);
      settle_down(0);
    }
    CHECK_INT(w.turns.next, w.expected);
    for (uint64_t i = w.expected; i < MAX_NUMBERS; i++)
      CHECK(w.seen[i].op == NULL);
    check_runs(1);
  }
}

TEST_LIMIT(S4_14_model_of_a_server_that_holds_early_numbers, 30) {
  for (uint64_t seed = 0; seed < 3000; seed++)
    play_holding(seed, 0);
}

TEST_LIMIT(S4_14_model_of_a_server_that_goes_by_arrival, 30) {
  for (uint64_t seed = 0; seed < 3000; seed++) {
    play(ARRIVAL, seed, 0);
    CHECK_INT(w.turns.err, TNK_OK);
    check_runs(1);
  }
}

TEST_LIMIT(S4_14_model_of_a_server_that_does_not_count_failures, 30) {
  for (uint64_t seed = 0; seed < 3000; seed++) {
    int n_runs;

    play(STRICT, seed, 0);
    CHECK_INT(w.turns.err, TNK_OK);
    check_runs(0);
    /* At most one more conflict, and it goes on. */
    enter(1, 0);
    settle_down(0);
    for (int i = 0; i < 3; i++) {
      n_runs = w.n_runs;
      enter(1, 0);
      settle_down(0);
      CHECK_INT(w.n_runs, n_runs + 1);
    }
  }
}

TEST_LIMIT(S1_7_model_of_numbers_whose_fate_stays_unknown, 30) {
  int n_failed = 0;

  for (uint64_t seed = 0; seed < 3000; seed++) {
    play_holding(seed, 3);
    n_failed += w.turns.err != TNK_OK;
    play(ARRIVAL, seed, 3);
    n_failed += w.turns.err != TNK_OK;
    check_runs(w.turns.err == TNK_OK);
    if (w.turns.err != TNK_OK) {
      CHECK_INT(w.turns.err, TNK_ECONN);
      CHECK(enter(1, 0)->is_done);
    }
  }
  CHECK(n_failed > 1000 && n_failed < 6000);
}
