/* SPDX-License-Identifier: MIT */
#include "lib/policy/queue_state.h"
#include "support/test.h"

TEST(C5_failures_for_5_s_without_an_answer_are_an_outage_told_once) {
  tnk__outage_t outage = {0};

  CHECK_INT(tnk__outage_failed(&outage, 100000, TNK__OUTAGE_MS), 0);
  CHECK_INT(tnk__outage_failed(&outage, 104999, TNK__OUTAGE_MS), 0);
  CHECK_INT(outage.is_out, 0);
  CHECK_INT(tnk__outage_failed(&outage, 105000, TNK__OUTAGE_MS), 1);
  CHECK_INT(tnk__outage_failed(&outage, 500000, TNK__OUTAGE_MS), 0);
  CHECK_INT(outage.is_out, 1);
  CHECK_INT(outage.since_ms, 100000);
}

TEST(C5_any_answer_ends_an_outage_and_forgets_failures) {
  tnk__outage_t outage = {0};

  CHECK_INT(tnk__outage_failed(&outage, 0, TNK__OUTAGE_MS), 0);
  CHECK_INT(tnk__outage_answered(&outage), 0);
  CHECK_INT(tnk__outage_failed(&outage, 6000, TNK__OUTAGE_MS), 0);
  CHECK_INT(tnk__outage_failed(&outage, 11000, TNK__OUTAGE_MS), 1);
  CHECK_INT(tnk__outage_answered(&outage), 1);
  CHECK_INT(tnk__outage_answered(&outage), 0);
  CHECK_INT(tnk__outage_failed(&outage, 11001, TNK__OUTAGE_MS), 0);
  CHECK_INT(tnk__outage_failed(&outage, 16001, TNK__OUTAGE_MS), 1);
}

/* Lost connections among answers, however many. */
TEST(C5_a_single_failure_is_no_outage_however_old) {
  tnk__outage_t outage = {0};

  for (uint64_t s = 0; s < 100; s++) {
    CHECK_INT(tnk__outage_failed(&outage, s * 60000, TNK__OUTAGE_MS), 0);
    CHECK_INT(tnk__outage_answered(&outage), 0);
  }
}
