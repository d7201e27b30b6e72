/* SPDX-License-Identifier: MIT */
/* An idle service keeps no loop alive. With the fake clock libuv has no timer
 * at all, so these run on the real one: what is wrong never ends. */
#include "script.h"

static void open_idle(script_t *script) {
  script_open(script);
  script_real_clock(script);
  script_sampler(script);
}

static tnk__session_t *session_of(script_t *script) {
  return &script->service->session;
}

/* Ends at once, whatever waits in the background. */
static void ends(script_t *script) {
  CHECK_INT(script->service->root.context.timers.n_foreground, 0);
  CHECK_INT(uv_run(&script->uv, UV_RUN_DEFAULT), 0);
}

static void in_background(const tnk__timer_t *timer) {
  CHECK(tnk__timer_is_active(timer));
  CHECK(tnk__timer_is_background(timer));
}

TEST(SX_2_heartbeats_and_refreshes_of_flags_keep_no_loop_alive) {
  script_t script;

  open_idle(&script);
  in_background(&session_of(&script)->start.heartbeat.call.timer);
  in_background(&session_of(&script)->start.refresh.timer);
  ends(&script);
  script_close(&script);
}

/* The watch over what is pending has one more look to take. */
TEST(SX_2_the_watch_keeps_no_loop_alive) {
  script_t script;
  outcome_t outcome;

  open_idle(&script);
  outcome_of(&outcome, script_sample(&script));
  mock_turns(script.mock, 1);
  in_background(&script.service->watch.timer);
  outcome_ok(&script, &outcome);
  ends(&script);
  outcome_drop(&outcome);
  script_close(&script);
}

/* A heartbeat is under way, and its answer does not come. */
TEST(SX_2_a_heartbeat_without_answer_keeps_no_loop_alive) {
  script_t script;

  open_idle(&script);
  mock_on(script.mock, "POST", "/api/v1/session_heartbeat", mock_hold, NULL);
  session_of(&script)->start.heartbeat.call.timer.fn(
      &session_of(&script)->start.heartbeat.call.timer);
  while (mock_n_held(script.mock) == 0)
    mock_turns(script.mock, 1);
  ends(&script);
  script_close(&script);
}
