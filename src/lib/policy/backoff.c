#include "lib/policy/backoff.h"

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
