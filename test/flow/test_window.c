/* SPDX-License-Identifier: MIT */
#include "lib/policy/window.h"

#include "support/test.h"

static tnk__window_t window;

/* A way of `rtt_ms` to a server that takes so many at once: what the limit is
 * after n rounds in each of which all that may are under way. */
static size_t after(uint64_t rtt_ms, size_t n_at_once, int n_rounds) {
  uint64_t now_ms = 1000000;

  tnk__window_init(&window);
  for (int round = 0; round < n_rounds; round++) {
    const size_t n = window.limit;
    const uint64_t took_ms = rtt_ms * ((n + n_at_once - 1) / n_at_once);
    now_ms += took_ms;
    for (size_t i = 0; i < n; i++)
      tnk__window_answered(&window, rtt_ms * (i / n_at_once + 1), 1, now_ms);
  }
  return window.limit;
}

TEST(on_a_short_way_nothing_changes) {
  CHECK_INT(after(0, SIZE_MAX / 2, 1000), TNK__WINDOW_MIN);
  CHECK_INT(after(1, SIZE_MAX / 2, 1000), TNK__WINDOW_MIN);
  CHECK_INT(after(8, SIZE_MAX / 2, 1000), TNK__WINDOW_MIN);
}

TEST(on_a_long_way_it_grows_to_what_the_rate_needs) {
  CHECK_INT(after(50, SIZE_MAX / 2, 20), 400);
  CHECK_INT(after(100, SIZE_MAX / 2, 20), 800);
  /* Doubled with each round trip. */
  CHECK_INT(after(150, SIZE_MAX / 2, 1), 128);
  CHECK_INT(after(150, SIZE_MAX / 2, 4), 1024);
  CHECK_INT(after(150, SIZE_MAX / 2, 20), TNK__WINDOW_MAX);
  CHECK_INT(after(60000, SIZE_MAX / 2, 20), TNK__WINDOW_MAX);
}

/* A slow server is not a long way: more at once would only wait there. */
TEST(it_falls_when_they_wait_for_each_other) {
  const size_t n = after(100, 100, 50);

  CHECK(n >= TNK__WINDOW_MIN && n <= 400);
}

/* Losses on the way delay a few. */
TEST(a_few_that_are_late_change_nothing) {
  tnk__window_init(&window);
  for (uint64_t i = 0; i < 5000; i++)
    tnk__window_answered(&window, i % 10 == 9 ? 600 : 150, 1, 1000000 + i);
  CHECK_INT(window.limit, TNK__WINDOW_MAX);
}

TEST(it_does_not_grow_for_nobody) {
  tnk__window_init(&window);
  for (int i = 0; i < 1000; i++)
    CHECK_INT(tnk__window_answered(&window, 150, 0, 1000000), TNK__WINDOW_MIN);
}

TEST(failures_halve_it_once_for_all_that_fail_together) {
  CHECK_INT(after(150, SIZE_MAX / 2, 20), TNK__WINDOW_MAX);
  for (int i = 0; i < 100; i++)
    CHECK_INT(tnk__window_failed(&window, 5000000), TNK__WINDOW_MAX / 2);
  for (uint64_t i = 1; i < 10; i++)
    tnk__window_failed(&window, 5000000 + i * 1000);
  CHECK_INT(window.limit, TNK__WINDOW_MIN);
}

/* A way that has become longer is noticed within a minute. */
TEST(the_shortest_time_is_forgotten) {
  CHECK_INT(after(1, SIZE_MAX / 2, 10), TNK__WINDOW_MIN);
  for (uint64_t s = 0; s < 70; s++)
    for (int i = 0; i < 100; i++)
      tnk__window_answered(&window, 150, 1, 2000000 + s * 1000);
  CHECK(window.limit > 500);
}
