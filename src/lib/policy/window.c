/* SPDX-License-Identifier: MIT */
#include "lib/policy/window.h"

/* SLACK_MS is the delay that a busy machine may add. */
enum { FORGET_MS = 30000, SLACK_MS = 5, FAILED_MS = 100 };

void tnk__window_init(tnk__window_t *window) {
  *window = (tnk__window_t){.limit = TNK__WINDOW_MIN,
                            .least_ms = {UINT64_MAX, UINT64_MAX}};
}

static uint64_t least_of(const tnk__window_t *window) {
  return window->least_ms[0] < window->least_ms[1] ? window->least_ms[0]
                                                   : window->least_ms[1];
}

static void note(tnk__window_t *window, uint64_t took_ms, uint64_t now_ms) {
  if (now_ms - window->turned_ms >= FORGET_MS) {
    window->turned_ms = now_ms;
    window->least_ms[1] = window->least_ms[0];
    window->least_ms[0] = UINT64_MAX;
  }
  if (took_ms < window->least_ms[0])
    window->least_ms[0] = took_ms;
}

/* The number of submissions that the target rate needs on this path. */
static size_t most_of(const tnk__window_t *window) {
  const uint64_t ms = least_of(window);
  const uint64_t n =
      ms < TNK__WINDOW_MAX ? ms * TNK__WINDOW_PER_S / 1000 : TNK__WINDOW_MAX;

  if (n > TNK__WINDOW_MAX)
    return TNK__WINDOW_MAX;
  return n < TNK__WINDOW_MIN ? TNK__WINDOW_MIN : (size_t)n;
}

static void fall(tnk__window_t *window, size_t n) {
  window->limit =
      window->limit > TNK__WINDOW_MIN + n ? window->limit - n : TNK__WINDOW_MIN;
}

static void end_round(tnk__window_t *window) {
  if (window->n_late * 4 > window->n)
    fall(window, window->limit / 4);
  else if (window->n_short * 2 > window->n)
    window->limit *= 2;
  window->n = window->n_late = window->n_short = 0;
}

size_t tnk__window_answered(tnk__window_t *window, uint64_t took_ms,
                            int is_short, uint64_t now_ms) {
  size_t most;

  note(window, took_ms, now_ms);
  most = most_of(window);
  window->n++;
  window->n_late += took_ms > 2 * least_of(window) + SLACK_MS;
  window->n_short += is_short != 0;
  if (window->n >= window->limit)
    end_round(window);
  if (window->limit > most)
    window->limit = most;
  return window->limit;
}

/* Submissions that were in flight together fail together, which counts once. */
size_t tnk__window_failed(tnk__window_t *window, uint64_t now_ms) {
  if (now_ms - window->failed_ms >= FAILED_MS) {
    window->failed_ms = now_ms;
    fall(window, window->limit / 2);
  }
  return window->limit;
}
