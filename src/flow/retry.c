/*
 * A call has made n_retries repeats since started_ms. Only those that count get
 * here: pauses and waits for the limiter have ends of their own.
 */
#include "flow/retry.h"

#include "flow/backoff.h"

void tnk__retry_init(tnk__retry_t *retry, uint32_t max_retries,
                     uint64_t now_ms) {
  retry->started_ms = now_ms;
  retry->max_retries = max_retries;
  retry->n_retries = 0;
}

static uint64_t scheduled_ms(const tnk__retry_t *retry,
                             tnk__schedule_t schedule, double u) {
  if (schedule == TNK__SCHEDULE_LONG)
    return tnk__backoff_slow_ms(retry->n_retries, u);
  return tnk__backoff_request_ms(retry->n_retries, u);
}

int tnk__retry_next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                    uint64_t server_ms, uint64_t now_ms, double u,
                    uint64_t *delay_ms) {
  uint64_t elapsed_ms = now_ms - retry->started_ms;
  uint64_t ms;

  *delay_ms = 0;
  if (verdict->schedule == TNK__SCHEDULE_NONE ||
      retry->n_retries >= retry->max_retries)
    return 0;
  /* The server's wish goes in place of our delay, not on top of it. */
  ms = server_ms != 0 ? server_ms : scheduled_ms(retry, verdict->schedule, u);
  if (verdict->schedule == TNK__SCHEDULE_LONG) {
    if (elapsed_ms >= TNK__RETRY_TOTAL_MS)
      return 0;
    if (ms > TNK__RETRY_TOTAL_MS - elapsed_ms)
      ms = TNK__RETRY_TOTAL_MS - elapsed_ms;
  }
  retry->n_retries++;
  *delay_ms = ms;
  return 1;
}
