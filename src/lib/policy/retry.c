/* SPDX-License-Identifier: MIT */
#include "lib/policy/retry.h"

/* ---- Backoff ---- */

#define SHORT_BASE_MS 500
#define SHORT_MAX_MS 10000
#define LONG_BASE_MS 1000
#define LONG_MAX_MS 30000

/* The exponent is clamped before the power: every maximum is reached well
 * below 2^10 times its base. */
static uint64_t grown(uint64_t base_ms, uint64_t max_ms, uint32_t n) {
  uint64_t ms = base_ms << (n < 10 ? n : 10);

  return ms < max_ms ? ms : max_ms;
}

/* Jitter stays a share of the delay, even with an invalid random number. */
static double unit(double u) {
  return u > 0 && u < 1 ? u : 0;
}

/* Calls that failed together must not be retried together. */
static uint64_t shortened(uint64_t ms, double u) {
  return ms - (uint64_t)((double)ms * 0.25 * unit(u));
}

uint64_t tnk__backoff_request_ms(uint32_t n, double u) {
  return shortened(grown(SHORT_BASE_MS, SHORT_MAX_MS, n), u);
}

uint64_t tnk__backoff_slow_ms(uint32_t n, double u) {
  return shortened(grown(LONG_BASE_MS, LONG_MAX_MS, n), u);
}

uint64_t tnk__backoff_sample_ms(uint32_t n, double u) {
  uint64_t ms = grown(SHORT_BASE_MS, SHORT_MAX_MS, n);

  ms = (uint64_t)((double)ms * (0.75 + 0.5 * unit(u)));
  return ms < SHORT_MAX_MS ? ms : SHORT_MAX_MS;
}

/* ---- Retries ---- */

/*
 * A call has made n_retries retries since failed_ms. Only counted retries get
 * here: pauses and waits for the limiter have their own limits. The duration of
 * the first attempt does not count. Otherwise a long upload that fails at its
 * end would have no patience left.
 */

/* Minimum timeout of an attempt that begins when patience is nearly over. */
#define TNK__RETRY_LAST_MS 2000

void tnk__retry_init(tnk__retry_t *retry, uint32_t max_retries,
                     uint64_t now_ms) {
  retry->started_ms = now_ms;
  retry->failed_ms = 0;
  retry->max_retries = max_retries;
  retry->n_retries = 0;
}

static uint64_t scheduled_ms(const tnk__retry_t *retry,
                             tnk__schedule_t schedule, double u) {
  if (schedule == TNK__SCHEDULE_LONG)
    return tnk__backoff_slow_ms(retry->n_retries, u);
  return tnk__backoff_request_ms(retry->n_retries, u);
}

uint64_t tnk__retry_left_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                            uint64_t now_ms) {
  const uint64_t spent_ms =
      retry->n_retries > 0 ? now_ms - retry->failed_ms : 0;

  return spent_ms < patience_ms ? patience_ms - spent_ms : 0;
}

uint64_t tnk__retry_timeout_ms(const tnk__retry_t *retry, uint64_t patience_ms,
                               uint64_t timeout_ms, uint64_t now_ms) {
  uint64_t left_ms = tnk__retry_left_ms(retry, patience_ms, now_ms);

  if (retry->n_retries == 0)
    return timeout_ms;
  if (left_ms < TNK__RETRY_LAST_MS)
    left_ms = TNK__RETRY_LAST_MS;
  return left_ms < timeout_ms ? left_ms : timeout_ms;
}

int tnk__retry_next(tnk__retry_t *retry, const tnk__verdict_t *verdict,
                    uint64_t patience_ms, uint64_t server_ms, uint64_t now_ms,
                    double u, uint64_t *delay_ms) {
  const int is_long = verdict->schedule == TNK__SCHEDULE_LONG;
  uint64_t left_ms = tnk__retry_left_ms(retry, patience_ms, now_ms);
  uint64_t ms;

  *delay_ms = 0;
  if (verdict->schedule == TNK__SCHEDULE_NONE || retry->max_retries == 0 ||
      left_ms == 0 || (!is_long && retry->n_retries >= retry->max_retries))
    return 0;
  /* The server's delay replaces ours; it is not added. */
  ms = server_ms != 0 ? server_ms : scheduled_ms(retry, verdict->schedule, u);
  if (ms > left_ms)
    ms = left_ms;
  if (retry->n_retries == 0)
    retry->failed_ms = now_ms;
  retry->n_retries++;
  *delay_ms = ms;
  return 1;
}
