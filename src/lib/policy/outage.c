/*
 * Responses and failures of all requests to one origin, in order of arrival.
 * One failure alone is not an outage. A later one is, if it comes at least
 * least_ms after the first without a response in between.
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
