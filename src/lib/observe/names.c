#include <stddef.h>

#include "tnk/observe.h"

const char *tnk_phase_name(tnk_phase_t phase) {
  static const char *const names[] = {
      [TNK_PHASE_QUEUED] = "queued",      [TNK_PHASE_WAITS] = "waits",
      [TNK_PHASE_SENT] = "sent",          [TNK_PHASE_ACCEPTED] = "accepted",
      [TNK_PHASE_HELD] = "held",          [TNK_PHASE_RESULT] = "result",
      [TNK_PHASE_DECODED] = "decoded",    [TNK_PHASE_FAILED] = "failed",
      [TNK_PHASE_DELIVERED] = "delivered"};
  const size_t n = sizeof(names) / sizeof(names[0]);

  return (size_t)phase < n ? names[phase] : "";
}

const char *tnk_waits_for_name(tnk_waits_for_t what) {
  static const char *const names[] = {[TNK_WAITS_FOR_NOTHING] = "nothing",
                                      [TNK_WAITS_FOR_SESSION] = "session",
                                      [TNK_WAITS_FOR_TURN] = "turn",
                                      [TNK_WAITS_FOR_SLOT] = "slot",
                                      [TNK_WAITS_FOR_BYTES] = "bytes",
                                      [TNK_WAITS_FOR_BACK_OFF] = "back-off",
                                      [TNK_WAITS_FOR_TOKEN] = "token",
                                      [TNK_WAITS_FOR_WORKER] = "worker",
                                      [TNK_WAITS_FOR_CONNECTION] = "connection",
                                      [TNK_WAITS_FOR_RETRY] = "retry",
                                      [TNK_WAITS_FOR_POLL] = "poll",
                                      [TNK_WAITS_FOR_LOSS] = "loss"};
  const size_t n = sizeof(names) / sizeof(names[0]);

  return (size_t)what < n ? names[what] : "";
}
