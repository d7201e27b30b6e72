/* What a run has used, between lines and counts. */
#include "task/ledger/ledger.h"

#include <string.h>

/* In the order of tnk__ledger_used_t. */
static const size_t places[TNK__LEDGER_N_USED] = {
    [TNK__LEDGER_PROMPT] = offsetof(tnk__totals_t, prompt_tokens),
    [TNK__LEDGER_CACHED] = offsetof(tnk__totals_t, cached_tokens),
    [TNK__LEDGER_SAMPLED] = offsetof(tnk__totals_t, sampled_tokens),
    [TNK__LEDGER_TRAINED] = offsetof(tnk__totals_t, trained_tokens),
    [TNK__LEDGER_UNPRICED] = offsetof(tnk__totals_t, unpriced_tokens),
    [TNK__LEDGER_DOUBTFUL] = offsetof(tnk__totals_t, doubtful_tokens),
    [TNK__LEDGER_COST] = offsetof(tnk__totals_t, cost),
    [TNK__LEDGER_DOUBTFUL_COST] = offsetof(tnk__totals_t, doubtful_cost),
    [TNK__LEDGER_REQUESTS] = offsetof(tnk__totals_t, n_requests),
    [TNK__LEDGER_SENT] = offsetof(tnk__totals_t, n_bytes_sent),
    [TNK__LEDGER_RECEIVED] = offsetof(tnk__totals_t, n_bytes_received)};

tnk__totals_t tnk__ledger_used(const tnk__ledger_line_t *line) {
  tnk__totals_t totals = {0};

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++) {
    const uint64_t n = (uint64_t)line->used[i];
    memcpy((char *)&totals + places[i], &n, sizeof(n));
  }
  return totals;
}

void tnk__ledger_tell_used(tnk__ledger_line_t *line,
                           const tnk__session_t *session) {
  const tnk__totals_t totals = tnk__session_run_used(session);

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++) {
    uint64_t n;
    memcpy(&n, (const char *)&totals + places[i], sizeof(n));
    line->used[i] = n <= INT64_MAX ? (int64_t)n : INT64_MAX;
  }
}
