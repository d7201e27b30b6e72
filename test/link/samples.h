/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LINK_SAMPLES_H
#define TNK_TEST_LINK_SAMPLES_H

#include "link/road.h"

/*
 * Very many samples over a link, so many of them at a time. The server has a
 * result `latency_ms` after it has accepted a sample, and holds polls until
 * then. It runs each number once, however often it is sent.
 */
enum { SAMPLES_MAX = 20000 };

typedef struct {
  road_t road;
  int n_all;
  int n_started;
  int n_settled;
  int n_failed;
  char first_text[400]; /* of those that failed */
  uint64_t latency_ms;
  uint64_t ready_ms[SAMPLES_MAX]; /* by number; 0: not accepted */
  int n_made;                     /* numbers accepted */
  uint64_t last_made_ms;
} samples_t;

static inline uint64_t samples_now(const samples_t *samples) {
  return test_link_clock(samples->road.link)->fake_now;
}

static inline void samples_accept(mock_request_t *request, void *user) {
  samples_t *samples = user;
  const long long seq = script_number(request, "seq_id");
  char text[64];

  CHECK(seq >= 0 && seq < SAMPLES_MAX);
  if (samples->ready_ms[seq] == 0) {
    samples->ready_ms[seq] = samples_now(samples) + samples->latency_ms;
    samples->n_made++;
    samples->last_made_ms = samples->road.n_passed;
  }
  snprintf(text, sizeof(text), "{\"request_id\":\"asample:%lld:0\"}", seq);
  mock_reply_json(request, 200, text);
}

static inline void samples_poll(mock_request_t *request, void *user) {
  samples_t *samples = user;
  const uint64_t now = samples_now(samples);
  const char *at = strstr((const char *)request->body, "\"asample:");
  uint64_t ready_ms;

  if (at == NULL) { /* of a training client */
    script_result(request, &samples->road.script);
    return;
  }
  ready_ms = samples->ready_ms[atol(at + strlen("\"asample:"))];
  CHECK(ready_ms != 0);
  if (ready_ms <= now)
    script_result(request, &samples->road.script);
  else
    mock_reply_json_after(
        request, ready_ms - now, 200,
        "{\"sequences\":[{\"tokens\":[7,8],\"logprobs\":[-0.5,-0.25],"
        "\"stop_reason\":\"stop\"}]}");
}

static inline void samples_start(samples_t *samples);

static inline void samples_done(tnk_promise_t *promise, int status,
                                void *user) {
  samples_t *samples = user;

  samples->n_settled++;
  if (status != TNK_OK && samples->n_failed++ == 0)
    snprintf(samples->first_text, sizeof(samples->first_text), "%s",
             tnk_promise_text(promise));
  if (samples->n_started < samples->n_all)
    samples_start(samples);
}

static inline void samples_start(samples_t *samples) {
  samples->n_started++;
  tnk_then(script_sample(&samples->road.script), samples_done, samples);
}

static inline void samples_open(samples_t *samples, uint64_t latency_ms) {
  memset(samples, 0, sizeof(*samples));
  samples->latency_ms = latency_ms;
  road_open(&samples->road);
  script_sampler(&samples->road.script);
  mock_on(samples->road.script.mock, "POST", "/api/v1/asample", samples_accept,
          samples);
  mock_on(samples->road.script.mock, "POST", "/api/v1/retrieve_future",
          samples_poll, samples);
}

/* Make n samples, so many at a time: how long that takes. Each must succeed and
 * be run once. */
static inline uint64_t samples_run(samples_t *samples, int n, int in_flight,
                                   uint64_t limit_ms) {
  tnk_stats_t stats = TNK_STATS_INIT;
  uint64_t took;

  CHECK(n <= SAMPLES_MAX);
  samples->n_all = n;
  while (samples->n_started < in_flight && samples->n_started < n)
    samples_start(samples);
  took = road_until(&samples->road, &samples->n_settled, n, limit_ms);
  tnk_service_stats(&stats, samples->road.script.service);
  printf("# %d samples in %llu ms, the last one accepted after %llu; %zu "
         "connections, at most %zu at a time, %zu turned away, %llu repeats\n",
         n, (unsigned long long)took, (unsigned long long)samples->last_made_ms,
         road_counts(&samples->road)->n_connections,
         road_counts(&samples->road)->n_most_open,
         road_counts(&samples->road)->n_turned_away,
         (unsigned long long)stats.n_retries);
  if (samples->n_failed > 0)
    test_fail(__FILE__, __LINE__, "%d failed: %s", samples->n_failed,
              samples->first_text);
  CHECK_INT(samples->n_made, n);
  return took;
}

static inline void samples_close(samples_t *samples) {
  road_close(&samples->road);
}

#endif
