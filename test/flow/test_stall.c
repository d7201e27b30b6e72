/* SPDX-License-Identifier: MIT */
#include "lib/policy/queue_state.h"
#include "support/test.h"

TEST(stall_is_told_at_60_s_and_then_doubling) {
  tnk__stall_t stall;
  uint64_t told[8];
  size_t n = 0;

  tnk__stall_moved(&stall, 1000);
  for (uint64_t s = 0; s <= 1000; s++)
    if (tnk__stall_due(&stall, 1000 + s * 1000))
      told[n++] = s;
  CHECK_INT(n, 5);
  CHECK_INT(told[0], 60);
  CHECK_INT(told[1], 120);
  CHECK_INT(told[2], 240);
  CHECK_INT(told[3], 480);
  CHECK_INT(told[4], 960);
}

TEST(stall_begins_anew_with_each_move) {
  tnk__stall_t stall;

  tnk__stall_moved(&stall, 0);
  CHECK_INT(tnk__stall_due(&stall, 60000), 1);
  tnk__stall_moved(&stall, 61000);
  CHECK_INT(tnk__stall_due(&stall, 120999), 0);
  CHECK_INT(tnk__stall_due(&stall, 121000), 1);
}

TEST(stall_that_is_looked_at_late_is_told_once) {
  tnk__stall_t stall;

  tnk__stall_moved(&stall, 0);
  CHECK_INT(tnk__stall_due(&stall, 500000), 1);
  CHECK_INT(tnk__stall_due(&stall, 500000), 0);
  CHECK_INT(tnk__stall_due(&stall, 959999), 0);
  CHECK_INT(tnk__stall_due(&stall, 960000), 1);
  CHECK_INT(tnk__stall_due(&stall, UINT64_MAX), 1);
  CHECK_INT(tnk__stall_due(&stall, 0), 0);
}
