/*
 * Answers and failures of all requests to one origin, in the order in which
 * they came. One failure says nothing; the second one tells an outage if it
 * comes late enough and nothing was answered between the two.
 */
#include "lib/policy/outage.h"

int tnk__outage_failed(tnk__outage_t *outage, uint64_t now_ms,
                       uint64_t least_ms) {
  if (!outage->is_failing) {
    outage->is_failing = 1;
    outage->since_ms = now_ms;
  }
  if (outage->is_out || now_ms - outage->since_ms < least_ms)
    return 0;
  outage->is_out = 1;
  return 1;
}

int tnk__outage_answered(tnk__outage_t *outage) {
  const int was_out = outage->is_out;

  outage->is_failing = 0;
  outage->is_out = 0;
  return was_out;
}
