/*
 * An operation moves, or is silent since `moved_ms`. While it is silent, each
 * notice doubles the time to the next one. So a night of silence causes ten
 * notices and not a thousand. Progress restarts the interval.
 */
#include "lib/policy/stall.h"

void tnk__stall_moved(tnk__stall_t *stall, uint64_t now_ms) {
  stall->moved_ms = now_ms;
  stall->notice_ms = TNK__STALL_MS;
}

int tnk__stall_due(tnk__stall_t *stall, uint64_t now_ms) {
  const uint64_t age_ms =
      now_ms > stall->moved_ms ? now_ms - stall->moved_ms : 0;

  if (age_ms < stall->notice_ms)
    return 0;
  while (stall->notice_ms <= age_ms && stall->notice_ms <= UINT64_MAX / 2)
    stall->notice_ms *= 2;
  return 1;
}
