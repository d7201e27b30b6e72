/* SPDX-License-Identifier: MIT */
#include "lib/client/recover/recover.h"
#include "support/test.h"

TEST(C17_after_failures_in_a_row_nothing_is_tried_for_a_while) {
  tnk__breaker_t breaker;

  tnk__breaker_init(&breaker, 3, 30000);
  for (uint64_t i = 0; i < 2; i++) {
    tnk__breaker_failed(&breaker, 1000 + i);
    CHECK_INT(tnk__breaker_wait_ms(&breaker, 1000 + i), 0);
  }
  tnk__breaker_failed(&breaker, 2000);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 2000), 30000);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 31999), 1);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 32000), 0);
}

TEST(C17_the_attempt_after_that_decides) {
  tnk__breaker_t breaker;

  tnk__breaker_init(&breaker, 2, 30000);
  tnk__breaker_failed(&breaker, 0);
  tnk__breaker_failed(&breaker, 0);
  tnk__breaker_failed(&breaker, 30000);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 30000), 30000);
  tnk__breaker_worked(&breaker);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 30000), 0);
  tnk__breaker_failed(&breaker, 60000);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 60000), 0);
}

TEST(C17_a_success_in_between_begins_the_count_anew) {
  tnk__breaker_t breaker;

  tnk__breaker_init(&breaker, 2, 30000);
  for (uint64_t i = 0; i < 10; i++) {
    tnk__breaker_failed(&breaker, i);
    CHECK_INT(tnk__breaker_wait_ms(&breaker, i), 0);
    tnk__breaker_worked(&breaker);
  }
}

TEST(C17_without_a_number_it_never_breaks_and_no_pause_overflows) {
  tnk__breaker_t breaker;

  tnk__breaker_init(&breaker, 0, 30000);
  for (uint64_t i = 0; i < 100; i++)
    tnk__breaker_failed(&breaker, i);
  CHECK_INT(tnk__breaker_wait_ms(&breaker, 100), 0);
  tnk__breaker_init(&breaker, 1, UINT64_MAX);
  tnk__breaker_failed(&breaker, 5);
  CHECK(tnk__breaker_wait_ms(&breaker, 5) == UINT64_MAX - 5);
}
