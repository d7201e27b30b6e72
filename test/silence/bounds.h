/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SILENCE_BOUNDS_H
#define TNK_TEST_SILENCE_BOUNDS_H

#include "lib/policy/billing.h"
#include "lib/policy/bounds.h"
#include "lib/policy/retry_after.h"
#include "silence/fates.h"

/*
 * How long an operation may take, in milliseconds, from the options of the
 * world (world.h) and the library's own bounds. This is the only place in the
 * test that says so.
 */

#define FOREVER UINT64_MAX

enum { MAX_STAGES = 12 };

/* What an operation asks for when all is well. */
typedef struct {
  size_t n;
  size_t first_poll; /* SIZE_MAX: it polls for nothing */
  char paths[MAX_STAGES][120];
} course_t;

/* What closing waits for: the report of the session's end has two seconds. */
enum { CLOSE_MS = 2000 };
/* What was accepted is polled for as long as it takes. At least one attempt is
 * made in this time, and an outage is reported in this time. */
enum { ALIVE_MS = 60000, TOLD_MS = 60000 };
/* When the peer is well again, whatever waits settles within this time. */
enum { HEALED_MS = 90000 };
/* Timers, and requests with connections, in a second on average; and as many
 * at once. */
enum { TIMERS_PER_S = 12, EVENTS_PER_S = 12, BURST = 160 };

/* The start-up fetches the dynamic configuration, which has a timeout of its
 * own. */
enum { DYNAMIC_MS = 10000 };

static uint64_t timeout_of(const operation_t *op, const char *path) {
  if (strstr(path, "/auth/token") != NULL ||
      strstr(path, "/create_session") != NULL)
    return DYNAMIC_MS;
  return op->needs == NEEDS_HUB ? SILENCE_MS : TIMEOUT_MS;
}

/* One attempt: name to TLS; the first SETTINGS; the request and its answer,
 * which is told to be too slow after SLOW_MS. */
static uint64_t attempt_ms(const operation_t *op, const fate_t *fate,
                           const char *path) {
  const uint64_t once = 2 * (uint64_t)CONNECT_MS + timeout_of(op, path);

  return once + (fate->is_slow ? TNK__SLOW_MS + timeout_of(op, path) : 0);
}

/* The pause before the n-th repeat: ours, or the server's wish. */
static uint64_t pauses_ms(const fate_t *fate) {
  uint64_t sum = 0;

  for (uint32_t n = 0; n < RETRIES; n++)
    sum +=
        fate->act == act_later ? TNK__RETRY_AFTER_MAX_MS : (uint64_t)500 << n;
  return sum;
}

static int is_numbered(const char *path) {
  static const char *const paths[] = {"/forward_backward", "/optim_step",
                                      "/save_weights",     "/load_weights",
                                      "/asample",          "/stream_sample"};

  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
    if (strstr(path, paths[i]) != NULL)
      return 1;
  return 0;
}

/* Bytes that come are waited for: a stream or a file has no rate. */
static int is_streamed(const operation_t *op, const char *path) {
  return op->start == hub_download || op->needs == NEEDS_HUB ||
         op->run == sample_stream || op->run == hosted_stream ||
         strstr(path, "/w/") != NULL;
}

/* Requests that only add to a result: the operation goes on without them. */
static int is_optional(const char *path) {
  return strstr(path, "/get_info") != NULL ||
         strstr(path, "/samplers/sampler-0") != NULL ||
         strstr(path, "/join_sampling_session") != NULL ||
         strstr(path, "/training_runs/model-0/checkpoints") != NULL;
}

/* `path` is of the request that was struck first. */
static uint64_t bound_of(const operation_t *op, const fate_t *fate,
                         const char *path) {
  const uint64_t attempt = attempt_ms(op, fate, path);

  /* A limit of the rate is no failure: samples wait for it as long as the
   * service says so. */
  if (strstr(path, "sample") != NULL && is_numbered(path) &&
      (fate->act == act_status || fate->act == act_later) && fate->n == 429)
    return FOREVER;
  if (is_poll_path(path) || (fate->is_slow && is_streamed(op, path)))
    return FOREVER;
  /* What restores makes a model, and has no number. */
  if (is_numbered(path) &&
      (strstr(path, "/load_weights") == NULL || op->needs == NEEDS_TRAINING ||
       op->run == start_classic))
    return attempt + PATIENCE_MS + attempt +
           (fate->n == 402 ? (uint64_t)BILLING_MS + TNK__BILLING_DELAY_MS : 0);
  return (RETRIES + 1) * attempt + pauses_ms(fate);
}

/* The operation ends with the first request that it cannot do without. */
static inline uint64_t bound_ms(const operation_t *op, const fate_t *fate,
                                const course_t *course, size_t stage) {
  uint64_t sum = 0;

  for (; stage < course->n; stage++) {
    const char *path = course->paths[stage];
    const uint64_t bound = bound_of(op, fate, path);

    if (bound == FOREVER)
      return FOREVER;
    sum += bound;
    if (!is_optional(path))
      break;
  }
  return sum;
}

#endif
