/* SPDX-License-Identifier: MIT */
/*
 * States: on; waiting until next_ms, after a response without news or a
 * failure; off, as decided by tnk__batch_failed(). Off is final: each sample
 * polls for itself again, and a server does not gain the feature while it runs.
 */
#include "lib/policy/batch.h"

#include <string.h>

enum { CHECK_MIN_MS = 60000 };

void tnk__batch_init(tnk__batch_t *batch) {
  memset(batch, 0, sizeof(*batch));
  tnk__poll_init(&batch->pace);
}

tnk__batch_need_t tnk__batch_need(const tnk__batch_t *batch, size_t n_waiting,
                                  size_t n_reports) {
  if (batch->is_off)
    return TNK__BATCH_NOTHING;
  if (n_waiting > 0)
    return TNK__BATCH_POLL;
  return n_reports > 0 ? TNK__BATCH_FLUSH : TNK__BATCH_NOTHING;
}

uint64_t tnk__batch_wait_ms(const tnk__batch_t *batch, tnk__batch_need_t need,
                            uint64_t now_ms) {
  uint64_t ms = batch->next_ms > now_ms ? batch->next_ms - now_ms : 0;

  if (need == TNK__BATCH_FLUSH && ms < TNK__BATCH_FLUSH_MS)
    ms = TNK__BATCH_FLUSH_MS;
  return ms;
}

void tnk__batch_sent(tnk__batch_t *batch, uint64_t now_ms) {
  tnk__poll_sent(&batch->pace, now_ms);
}

void tnk__batch_answered(tnk__batch_t *batch, int64_t cursor, int has_news,
                         uint64_t now_ms) {
  uint64_t delay_ms = 0;

  /* Also set when it is lower: cursors have a meaning only for the server. */
  batch->cursor = cursor;
  batch->n_flush_failures = 0;
  batch->pace.n_400 = 0;
  if (has_news) {
    batch->pace.n_early = 0;
    batch->pace.n_errors = 0;
  } else {
    tnk__poll_next(&batch->pace, TNK__POLL_PENDING, 0, now_ms, 0, &delay_ms);
  }
  batch->next_ms = now_ms + delay_ms;
}

int tnk__batch_failed(tnk__batch_t *batch, const tnk__verdict_t *verdict,
                      tnk__outcome_t outcome, uint64_t server_ms,
                      uint64_t now_ms, double u) {
  uint64_t delay_ms = 0;
  int goes_on;

  /* A conflict ends the poll of one future, but may be temporary here. A 404
   * does not refer to a future: the server does not have this call. */
  goes_on =
      (verdict->action == TNK__ACTION_REPOLL && outcome != TNK__OUTCOME_404) ||
      outcome == TNK__OUTCOME_409;
  if (goes_on)
    goes_on = tnk__poll_next(&batch->pace, tnk__poll_event(outcome, 0),
                             server_ms, now_ms, u, &delay_ms);
  batch->next_ms = now_ms + delay_ms;
  batch->is_off = !goes_on;
  return goes_on;
}

int tnk__batch_drops_reports(tnk__batch_t *batch) {
  if (++batch->n_flush_failures < TNK__BATCH_MAX_FLUSH_FAILURES)
    return 0;
  batch->n_flush_failures = 0;
  return 1;
}

uint64_t tnk__batch_check_ms(double u) {
  return CHECK_MIN_MS + (uint64_t)(u * (double)CHECK_MIN_MS);
}
