/* SPDX-License-Identifier: MIT */
#include "lib/policy/ceiling.h"

#include "support/test.h"

static tnk__ceiling_t ceiling;

TEST(there_is_no_ceiling_until_one_is_refused) {
  tnk__ceiling_init(&ceiling);
  CHECK(!tnk__ceiling_is_set(&ceiling));
  CHECK(tnk__ceiling_max(&ceiling, 1000) == SIZE_MAX);
  tnk__ceiling_refused(&ceiling, 50, 1000, 0);
  CHECK(tnk__ceiling_is_set(&ceiling));
  CHECK_INT(tnk__ceiling_max(&ceiling, 1000), 50);
}

TEST(what_works_is_what_is_granted) {
  tnk__ceiling_init(&ceiling);
  tnk__ceiling_refused(&ceiling, 760, 0, 0);
  tnk__ceiling_refused(&ceiling, 755, 1, 0);
  tnk__ceiling_refused(&ceiling, 758, 2, 0);
  CHECK_INT(tnk__ceiling_max(&ceiling, 3), 755);
  /* None here: one is tried when it is time. */
  tnk__ceiling_refused(&ceiling, 0, 4, 0);
  CHECK_INT(tnk__ceiling_max(&ceiling, 999), 0);
  CHECK_INT(tnk__ceiling_max(&ceiling, 1000), 1);
}

TEST(a_ceiling_rises_slowly_and_then_fast) {
  static const size_t maxima[] = {51, 53, 57, 65, 81};

  tnk__ceiling_init(&ceiling);
  tnk__ceiling_refused(&ceiling, 50, 0, 0);
  CHECK_INT(tnk__ceiling_max(&ceiling, 999), 50);
  for (size_t i = 0; i < 5; i++) {
    CHECK_INT(tnk__ceiling_max(&ceiling, 1000 + i * 1000), maxima[i]);
    CHECK_INT(tnk__ceiling_max(&ceiling, 1000 + i * 1000), maxima[i]);
  }
  for (size_t i = 5; i < 20; i++)
    tnk__ceiling_max(&ceiling, 1000 + i * 1000);
  CHECK(!tnk__ceiling_is_set(&ceiling));
}

/* A refusal comes a round trip after the rise that it answers. */
TEST(a_rise_that_is_refused_soon_counts) {
  static const uint64_t trips[] = {0, 1, 50, 300, 999, 1000, 1001};

  for (size_t k = 0; k < sizeof(trips) / sizeof(trips[0]); k++) {
    uint64_t now = 5000, pause = 1000;
    tnk__ceiling_init(&ceiling);
    tnk__ceiling_refused(&ceiling, 50, now, 0);
    for (size_t i = 0; i < 4; i++) {
      now += pause;
      pause *= 2;
      CHECK_INT(tnk__ceiling_max(&ceiling, now), 51);
      now += trips[k];
      for (int n = 0; n < 3; n++)
        tnk__ceiling_refused(&ceiling, 50, now, 0);
      CHECK_INT(tnk__ceiling_wait_ms(&ceiling, now), pause);
    }
  }
}

/* Whoever limits is asked less and less often, but asked. */
TEST(a_ceiling_that_holds_is_tried_at_growing_distances) {
  static const uint64_t pauses[] = {1000,  2000,  4000, 8000,
                                    16000, 30000, 30000};
  uint64_t now = 5000;

  tnk__ceiling_init(&ceiling);
  for (size_t i = 0; i < 7; i++) {
    /* Those that were on their way together count once. */
    for (int n = 0; n < 10; n++)
      tnk__ceiling_refused(&ceiling, 50, now, 0);
    CHECK_INT(tnk__ceiling_wait_ms(&ceiling, now), pauses[i]);
    CHECK_INT(tnk__ceiling_max(&ceiling, now + pauses[i] - 1), 50);
    now += pauses[i];
    CHECK_INT(tnk__ceiling_max(&ceiling, now), 51);
    now += 1000;
  }
}

TEST(the_distance_has_jitter) {
  tnk__ceiling_init(&ceiling);
  tnk__ceiling_refused(&ceiling, 50, 0, 0.5);
  CHECK_INT(tnk__ceiling_wait_ms(&ceiling, 0), 1125);
}

TEST(polls_leave_places_for_what_is_short) {
  static const struct {
    size_t n_places;
    size_t polls;
    size_t samples;
  } rows[] = {{1, 1, 1}, {2, 1, 1},    {3, 2, 1},       {4, 3, 2},    {5, 3, 2},
              {8, 6, 5}, {50, 37, 32}, {755, 691, 627}, {100, 75, 65}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_INT(tnk__ceiling_polls(rows[i].n_places, 0), rows[i].polls);
    CHECK_INT(tnk__ceiling_sample_polls(rows[i].n_places, 0), rows[i].samples);
  }
  /* The last place is for a poll only while nobody else wants it. */
  CHECK_INT(tnk__ceiling_polls(1, 1), 0);
  CHECK_INT(tnk__ceiling_sample_polls(1, 1), 0);
  CHECK_INT(tnk__ceiling_polls(2, 1), 1);
}
