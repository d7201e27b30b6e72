/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LINK_ROAD_H
#define TNK_TEST_LINK_ROAD_H

#include "support/link.h"

#include "task/script.h"

/*
 * A scripted server with a link in front of it, and a client whose clock goes
 * on together with the link's, from event to event: hours on a bad wire take
 * a moment. Between two events the loop is turned until nothing moves.
 */
typedef struct {
  script_t script;
  test_link_t *link;
  uint64_t n_passed; /* milliseconds, since the service was opened */
} road_t;

static inline void road_tell(road_t *road, const char *words) {
  CHECK_INT(test_link_tell(road->link, words), 0);
}

static inline const test_link_counts_t *road_counts(const road_t *road) {
  return test_link_counts(road->link);
}

/* The server and the link; the service is still to be opened. */
static inline void road_begin(road_t *road) {
  memset(road, 0, sizeof(*road));
  script_begin(&road->script);
  road->link = test_link_open(&road->script.uv, mock_port(road->script.mock));
}

static inline void road_open_service(road_t *road,
                                     tnk_service_options_t options) {
  options.base_url = test_link_url(road->link);
  script_open_service(&road->script, options);
  tnk__context_fake_clock(test_link_clock(road->link), 1000000);
  mock_set_clock(road->script.mock, test_link_clock(road->link));
}

/* The link refuses connections, so that the server looks as if it had been
 * restarted. It was not, so training goes on with its weights. */
static inline void road_go_on(const char *client, tnk_queue_state_t state,
                              const char *reason, void *user) {
  road_t *road = user;

  (void)client;
  (void)reason;
  if (state == TNK_QUEUE_MEMORY_LOST)
    CHECK_INT(tnk_training_go_on(road->script.training), TNK_OK);
}

static inline void road_open(road_t *road) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.on_queue_state = road_go_on;
  options.queue_state_user = road;
  road_begin(road);
  road_open_service(road, options);
}

/* Something that changes when anything moves. */
static inline uint64_t road_motion(const road_t *road) {
  const test_link_counts_t *counts = road_counts(road);
  const tnk__context_t *client = &road->script.service->root.context;

  return 31 * client->n_pending + client->counters.n_bytes_received +
         counts->n_bytes[0] + counts->n_bytes[1] + counts->n_connections +
         counts->n_turned_away + counts->n_open +
         mock_n_requests(road->script.mock) + mock_n_open(road->script.mock) +
         (uint64_t)script_n_outcomes;
}

static inline void road_settle(road_t *road) {
  uint64_t before;

  do {
    before = road_motion(road);
    mock_turns(road->script.mock, 6);
  } while (road_motion(road) != before);
}

static inline uint64_t road_next(const tnk__context_t *clock, uint64_t least) {
  uint64_t left;

  if (clock->timers.root == NULL)
    return least;
  left = tnk__timer_left_ms(clock->timers.root, clock->fake_now);
  return left < least ? left : least;
}

static inline void road_on_patience(uv_timer_t *timer) {
  (void)timer;
}

/* The system has a few milliseconds to bring what was sent. 1 when nothing
 * came. */
static inline int road_wait(road_t *road) {
  const uint64_t before = road_motion(road);
  uv_timer_t timer;

  CHECK_INT(uv_timer_init(&road->script.uv, &timer), 0);
  uv_timer_start(&timer, road_on_patience, 1, 1);
  for (int i = 0; i < 3; i++)
    uv_run(&road->script.uv, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&timer, NULL);
  road_settle(road);
  return road_motion(road) == before;
}

/* On a busy machine the system may be late with what was sent. Time goes on
 * when nobody waits for the system, or when nothing came for a second. Before
 * time makes a leap, which some other time-out could be at the end of, the
 * system gets a few milliseconds anyway. */
static inline int road_is_quiet(road_t *road, uint64_t ms) {
  enum { LEAP_MS = 200, N_WAITS = 333 };

  for (int i = 0; i < N_WAITS && test_link_is_awaited(road->link); i++)
    if (!road_wait(road))
      return 0;
  return ms < LEAP_MS || road_wait(road);
}

/* To the next event, at most `most_ms` from now. */
static inline void road_step(road_t *road, uint64_t most_ms) {
  tnk__context_t *clocks[] = {test_link_clock(road->link),
                              &road->script.service->root.context};
  uint64_t ms;

  road_settle(road);
  do {
    ms = most_ms;
    for (int i = 0; i < 2; i++)
      ms = road_next(clocks[i], ms);
  } while (!road_is_quiet(road, ms));
  for (int i = 0; i < 2; i++)
    tnk__context_advance(clocks[i], ms);
  road->n_passed += ms;
  road_settle(road);
}

static inline void road_run(road_t *road, uint64_t ms) {
  const uint64_t end = road->n_passed + ms;

  while (road->n_passed < end)
    road_step(road, end - road->n_passed);
}

/* Until *flag is at least n; says how long that took. */
static inline uint64_t road_until(road_t *road, const int *flag, int n,
                                  uint64_t limit_ms) {
  const uint64_t began = road->n_passed;

  road_settle(road);
  while (*flag < n) {
    if (road->n_passed - began >= limit_ms)
      test_fail(__FILE__, __LINE__, "%d of %d after %llu ms", *flag, n,
                (unsigned long long)limit_ms);
    road_step(road, limit_ms - (road->n_passed - began));
  }
  return road->n_passed - began;
}

static inline uint64_t road_ok(road_t *road, outcome_t *outcome,
                               uint64_t limit_ms) {
  const uint64_t took = road_until(road, &outcome->n_done, 1, limit_ms);

  if (outcome->status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome->text);
  return took;
}

/* The wire is mended first. */
static inline void road_close(road_t *road) {
  tnk_stats_t stats = TNK_STATS_INIT;

  road_tell(road, "limit 0");
  road_tell(road, "delay 0");
  road_tell(road, "rate 0");
  road_tell(road, "loss 0");
  road_tell(road, "go");
  tnk_service_stats(&stats, road->script.service);
  CHECK_INT(stats.n_double_settles, 0);
  tnk_service_close(road->script.service, script_closed, &road->script);
  /* What is on its way still comes. The service is gone with the flag, which is
   * set in a turn of the loop. */
  mock_turns(road->script.mock, 20);
  while (!road->script.is_closed) {
    tnk__context_advance(test_link_clock(road->link), 10);
    tnk__context_advance(&road->script.service->root.context, 10);
    mock_turns(road->script.mock, 20);
  }
  test_link_close(road->link);
  script_end(&road->script);
}

#endif
