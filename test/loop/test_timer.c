/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"

/* Timers write their letter into this text when they fire. */
static char fired[64];
static size_t n_fired;

typedef struct {
  tnk__timer_t timer;
  char letter;
  tnk__timer_t *to_stop;
  tnk__context_t *again; /* restart with no delay on this context */
} probe_t;

static void on_probe(tnk__timer_t *timer) {
  probe_t *probe = tnk__container_of(timer, probe_t, timer);

  fired[n_fired++] = probe->letter;
  fired[n_fired] = '\0';
  if (probe->to_stop != NULL)
    tnk__timer_stop(probe->to_stop);
  if (probe->again != NULL)
    tnk__timer_start(probe->again, timer, 0, on_probe);
}

static context_t context;
static probe_t a = {.letter = 'a'};
static probe_t b = {.letter = 'b'};
static probe_t c = {.letter = 'c'};
static probe_t d = {.letter = 'd'};
static probe_t e = {.letter = 'e'};

static void open_at(uint64_t now_ms) {
  context_open(&context);
  tnk__context_fake_clock(&context.loop, now_ms);
}

static void advance(uint64_t ms) {
  tnk__context_advance(&context.loop, ms);
}

static void start(probe_t *probe, uint64_t delay_ms) {
  tnk__timer_start(&context.loop, &probe->timer, delay_ms, on_probe);
}

TEST(timers_fire_in_order_of_deadline_then_of_start) {
  open_at(1000);
  start(&c, 30);
  start(&a, 10);
  start(&d, 30);
  start(&b, 20);
  start(&e, 31);
  advance(9);
  CHECK_STR(fired, "");
  advance(21);
  CHECK_STR(fired, "abcd");
  CHECK_INT(tnk__context_now_ms(&context.loop), 1030);
  CHECK(!tnk__timer_is_active(&c.timer));
  CHECK(tnk__timer_is_active(&e.timer));
  advance(1);
  CHECK_STR(fired, "abcde");
  context_close(&context);
}

static uint64_t seen_now[3];
static tnk__context_t *seen_loop;

static void on_look_at_clock(tnk__timer_t *timer) {
  (void)timer;
  seen_now[n_fired++] = tnk__context_now_ms(seen_loop);
}

TEST(advancing_shows_each_timer_its_own_deadline) {
  tnk__timer_t timers[3];
  size_t i;

  memset(timers, 0, sizeof(timers));
  open_at(0);
  seen_loop = &context.loop;
  for (i = 0; i < 3; i++)
    tnk__timer_start(&context.loop, &timers[i], 60000 * (3 - i),
                     on_look_at_clock);
  advance(200000);
  CHECK_INT(seen_now[0], 60000);
  CHECK_INT(seen_now[1], 120000);
  CHECK_INT(seen_now[2], 180000);
  CHECK_INT(tnk__context_now_ms(&context.loop), 200000);
  context_close(&context);
}

TEST(a_restart_moves_the_deadline_both_ways) {
  open_at(0);
  start(&a, 10);
  start(&b, 20);
  start(&a, 30);
  advance(20);
  CHECK_STR(fired, "b");
  start(&a, 1);
  advance(1);
  CHECK_STR(fired, "ba");
  advance(100);
  CHECK_STR(fired, "ba");
  context_close(&context);
}

TEST(a_restart_goes_behind_its_equals) {
  open_at(0);
  start(&a, 10);
  start(&b, 10);
  start(&a, 10);
  advance(10);
  CHECK_STR(fired, "ba");
  context_close(&context);
}

TEST(a_callback_may_stop_another_that_is_due) {
  open_at(0);
  start(&a, 5);
  start(&b, 5);
  start(&c, 5);
  a.to_stop = &b.timer;
  advance(5);
  CHECK_STR(fired, "ac");
  tnk__timer_stop(&b.timer); /* stopping a stopped one does no harm */
  context_close(&context);
}

TEST(one_that_restarts_itself_waits_for_the_next_run) {
  open_at(7);
  start(&a, 0);
  start(&b, 0);
  a.again = &context.loop;
  tnk__timers_run(&context.loop.timers, 7);
  CHECK_STR(fired, "ab");
  tnk__timers_run(&context.loop.timers, 7);
  CHECK_STR(fired, "aba");
  a.again = NULL;
  tnk__timer_stop(&a.timer);
  context_close(&context);
}

TEST(a_delay_too_long_for_the_clock_never_fires) {
  open_at(1000);
  start(&a, UINT64_MAX);
  CHECK_INT(a.timer.due_ms == UINT64_MAX, 1);
  advance(1000000);
  CHECK_STR(fired, "");
  tnk__timer_stop(&a.timer);
  context_close(&context);
}

TEST(a_foreground_timer_keeps_the_loop_alive_until_it_fires) {
  context_open(&context);
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  start(&a, 1);
  CHECK_INT(uv_loop_alive(&context.uv), 1);
  CHECK_INT(uv_run(&context.uv, UV_RUN_DEFAULT), 0);
  CHECK_STR(fired, "a");
  context_close(&context);
}

TEST(a_background_timer_does_not_keep_the_loop_alive) {
  context_open(&context);
  tnk__timer_start_background(&context.loop, &a.timer, 0, on_probe);
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  CHECK_INT(uv_run(&context.uv, UV_RUN_DEFAULT), 0);
  CHECK_STR(fired, "");
  /* While something else does, it fires all the same. */
  start(&b, 2);
  CHECK_INT(uv_run(&context.uv, UV_RUN_DEFAULT), 0);
  CHECK_STR(fired, "ab");
  context_close(&context);
}

TEST(a_stopped_foreground_timer_lets_the_loop_end) {
  context_open(&context);
  start(&a, 60000);
  tnk__timer_start_background(&context.loop, &b.timer, 50000, on_probe);
  CHECK_INT(uv_loop_alive(&context.uv), 1);
  tnk__timer_stop(&a.timer);
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  /* In the foreground from now on. */
  start(&b, 1);
  CHECK_INT(uv_loop_alive(&context.uv), 1);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_STR(fired, "b");
  context_close(&context);
}

enum { N_RANDOM = 10000 };

typedef struct {
  tnk__timer_t timer;
  int index;
} numbered_t;

static int fire_order[N_RANDOM];

static void on_numbered(tnk__timer_t *timer) {
  fire_order[n_fired++] = tnk__container_of(timer, numbered_t, timer)->index;
}

static int by_deadline(const void *left, const void *right) {
  const tnk__timer_t *x = *(const tnk__timer_t *const *)left;
  const tnk__timer_t *y = *(const tnk__timer_t *const *)right;

  if (x->due_ms != y->due_ms)
    return x->due_ms < y->due_ms ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

/* Start all, stop a third of them, restart another third, and compare with a
 * sorted list of what is left. */
TEST(ten_thousand_random_timers_fire_like_a_sorted_list) {
  static numbered_t timers[N_RANDOM];
  static const tnk__timer_t *expected[N_RANDOM];
  static int expected_index[N_RANDOM];
  uint64_t state = 17;
  size_t n = 0;
  size_t i;

  open_at(5);
  for (i = 0; i < N_RANDOM; i++) {
    timers[i].index = (int)i;
    tnk__timer_start(&context.loop, &timers[i].timer,
                     test_random(&state) % 3000, on_numbered);
  }
  for (i = 0; i < N_RANDOM; i++) {
    numbered_t *pick = &timers[test_random(&state) % N_RANDOM];
    if (i % 3 == 0)
      tnk__timer_stop(&pick->timer);
    else if (i % 3 == 1)
      tnk__timer_start(&context.loop, &pick->timer, test_random(&state) % 3000,
                       on_numbered);
  }
  for (i = 0; i < N_RANDOM; i++)
    if (tnk__timer_is_active(&timers[i].timer))
      expected[n++] = &timers[i].timer;
  CHECK(n > N_RANDOM / 2 && n < N_RANDOM);
  CHECK_INT(context.loop.timers.n_foreground, n);
  qsort(expected, n, sizeof(expected[0]), by_deadline);
  for (i = 0; i < n; i++)
    expected_index[i] =
        tnk__container_of(expected[i], numbered_t, timer)->index;
  for (i = 0; i < 3000; i += 7)
    advance(7);
  CHECK_INT(n_fired, n);
  CHECK_MEM(fire_order, n * sizeof(int), expected_index, n * sizeof(int));
  CHECK_INT(context.loop.timers.n_foreground, 0);
  CHECK(context.loop.timers.root == NULL);
  context_close(&context);
}

static void on_late(tnk__timer_t *timer) {
  (void)timer;
}

TEST(timer_shows_how_late_the_loop_is) {
  tnk__timer_t timer = {0};

  open_at(0);
  tnk__timer_start_background(&context.loop, &timer, 10, on_late);
  context.loop.fake_now = 310; /* somebody else has held the loop */
  advance(0);
  CHECK_INT(context.loop.counters.lag_ms, 300);
  CHECK_INT(context.loop.counters.max_lag_ms, 300);
  tnk__timer_start_background(&context.loop, &timer, 10, on_late);
  advance(20);
  CHECK_INT(context.loop.counters.lag_ms, 0);
  CHECK_INT(context.loop.counters.max_lag_ms, 300);
  context_close(&context);
}

TEST(SX_4_a_loop_that_is_late_by_5_s_is_warned_of_once_a_minute) {
  static const struct {
    uint64_t late_ms;
    int n_warnings;
  } steps[] = {{4000, 0}, {6000, 1}, {20000, 1}, {20000, 1}, {20000, 2}};
  tnk__timer_t timer = {0};

  open_at(0);
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    tnk__timer_start_background(&context.loop, &timer, 10, on_late);
    context.loop.fake_now += 10 + steps[i].late_ms;
    advance(0);
    CHECK_INT(context.n_warnings, steps[i].n_warnings);
  }
  context_close(&context);
}

/* ---- A loop that was late ---- */

typedef struct {
  uv_poll_t handle;
  int fds[2];
} socket_t;

static void on_readable(uv_poll_t *handle, int status, int events) {
  socket_t *socket = handle->data;
  char byte;

  (void)events;
  CHECK_INT(status, 0);
  CHECK_INT(read(socket->fds[0], &byte, 1), 1);
  fired[n_fired++] = byte;
  fired[n_fired] = '\0';
}

/* A byte has come on a socket of the loop. */
static void socket_open(socket_t *socket, const char *bytes) {
  CHECK_INT(pipe(socket->fds), 0);
  CHECK_INT(uv_poll_init(&context.uv, &socket->handle, socket->fds[0]), 0);
  socket->handle.data = socket;
  CHECK_INT(uv_poll_start(&socket->handle, UV_READABLE, on_readable), 0);
  CHECK_INT(write(socket->fds[1], bytes, strlen(bytes)), (int)strlen(bytes));
}

static void socket_close(socket_t *socket) {
  uv_close((uv_handle_t *)&socket->handle, NULL);
  context_turn(&context);
  close(socket->fds[0]);
  close(socket->fds[1]);
}

/* The program has computed for so long: the timer should have fired then. */
static void be_late(uint64_t ms) {
  a.timer.due_ms -= ms;
  context.loop.armed_ms -= ms;
  context.loop.wake_ms -= ms;
}

TEST(a_loop_that_was_late_reads_its_sockets_before_timers_fire) {
  socket_t socket;

  context_open(&context);
  start(&a, 0);
  socket_open(&socket, "s");
  be_late(5000);
  while (n_fired < 2)
    uv_run(&context.uv, UV_RUN_ONCE);
  CHECK_STR(fired, "sa");
  CHECK(context.loop.counters.lag_ms >= 5000);
  socket_close(&socket);
  context_close(&context);
}

static int most_late_turns;

static void on_turn(uv_prepare_t *handle) {
  (void)handle;
  be_late(5000);
  if (context.loop.n_late_turns > most_late_turns)
    most_late_turns = context.loop.n_late_turns;
}

/* To make a connection with TLS takes some turns, so one is not enough. */
TEST(a_loop_that_is_late_in_each_turn_still_runs_its_timers) {
  uv_prepare_t turn;

  context_open(&context);
  CHECK_INT(uv_prepare_init(&context.uv, &turn), 0);
  CHECK_INT(uv_prepare_start(&turn, on_turn), 0);
  start(&a, 1);
  while (n_fired == 0)
    uv_run(&context.uv, UV_RUN_ONCE);
  CHECK_INT(most_late_turns, 3);
  CHECK_INT(context.loop.n_late_turns, 0);
  uv_close((uv_handle_t *)&turn, NULL);
  context_turn(&context);
  context_close(&context);
}
