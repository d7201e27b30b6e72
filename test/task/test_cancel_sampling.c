/* SPDX-License-Identifier: MIT */
/* Samples in every state. */
#include "task/matrix.h"

/* ---- Into the states of samples ---- */

static tnk_promise_t *behind_samples(cell_t *cell, int n) {
  for (int i = 0; i < n; i++)
    other(cell, script_sample(&cell->script));
  turns(cell);
  return start_turns(cell);
}

static tnk_promise_t *s_one_held(cell_t *cell) {
  hold(cell, SAMPLE);
  return behind_samples(cell, 1);
}

static tnk_promise_t *s_slot(cell_t *cell) {
  hold(cell, SAMPLE);
  return behind_samples(cell, 64);
}

static tnk_promise_t *s_backs_off(cell_t *cell) {
  tnk_promise_t *promise;

  hold(cell, SAMPLE);
  promise = start_turns(cell);
  mock_reply(last(cell, SAMPLE), 429, "Retry-After: 3\r\n", "{}", 2);
  turns(cell);
  return promise;
}

static tnk_promise_t *s_few(cell_t *cell) {
  other(cell, s_backs_off(cell));
  script_advance(&cell->script, 3000);
  turns(cell);
  return behind_samples(cell, 10);
}

static tnk_promise_t *s_half_sent(cell_t *cell) {
  tnk_model_input_t prompt = {.chunks = big_chunk(), .n_chunks = 1};
  tnk_promise_t *promise;

  mock_set_reading(cell->script.mock, 0);
  promise = tnk_sampling_sample(cell->script.sampling, &prompt, NULL, NULL);
  until(cell, promise, cell->state->says);
  return promise;
}

static tnk_promise_t *s_anew(cell_t *cell) {
  mock_json(cell->script.mock, "POST", POLL, 410, "{}");
  return start_turns(cell);
}

static tnk_promise_t *s_awaits(cell_t *cell) {
  hold(cell, BATCH);
  hold(cell, POLL);
  return start_turns(cell);
}

static tnk_promise_t *s_poll_pauses(cell_t *cell) {
  tnk_promise_t *promise = s_awaits(cell);

  mock_reply(last(cell, BATCH), 429, "Retry-After: 8\r\n", "{}", 2);
  turns(cell);
  return promise;
}

static tnk_promise_t *s_checks(cell_t *cell) {
  tnk_promise_t *promise = s_awaits(cell);

  script_advance(&cell->script, 120000);
  turns(cell);
  return promise;
}

static tnk_promise_t *s_check_waits(cell_t *cell) {
  cell->script.service->session.limits.checks.limit = 0;
  return s_checks(cell);
}

/* All have ended; there are slots for 64 of them. */
static void tell_all(cell_t *cell, int n) {
  char text[16384];
  size_t at = 0;

  at += (size_t)sprintf(text, "{\"completions\":[");
  for (int i = 0; i < n; i++)
    at += (size_t)sprintf(
        text + at, "%s{\"state\":\"finished\",\"request_id\":\"asample:%d:0\"}",
        i > 0 ? "," : "", i);
  sprintf(text + at, "],\"cursor\":%d}", n);
  mock_reply_json(last(cell, BATCH), 200, text);
  mock_turns(cell->script.mock, 100);
}

static tnk_promise_t *s_fetches(cell_t *cell) {
  tnk_promise_t *promise = s_awaits(cell);

  tell_all(cell, 1);
  return promise;
}

static tnk_promise_t *s_fetch_waits(cell_t *cell) {
  tnk_promise_t *promise;

  hold(cell, BATCH);
  hold(cell, POLL);
  promise = behind_samples(cell, 64);
  turns(cell);
  tell_all(cell, 65);
  return promise;
}

/* ---- The table ---- */

static const state_t sampling_states[] = {
    {"is new", "is about to be submitted", "sample: is about to be submitted",
     NULL, start},
    {"waits for others to end", "slots for samples under way",
     "sample: waits for one of the 1 slots for samples under way, with 0 "
     "ahead of it, since 0 ms",
     "{\"sample_max_concurrent_requests\":1}", s_one_held},
    {"waits for a slot", "slots for submissions",
     "sample: waits for one of the 64 slots for submissions, with 0 ahead of "
     "it, since 0 ms",
     NULL, s_slot},
    {"waits for a back-off", "end of a back-off",
     "sample: waits for the end of a back-off, in 3.0 s, with 0 ahead of it, "
     "since 0 ms",
     NULL, s_backs_off},
    {"waits for one of few slots", "that a recent back-off has left",
     "sample: waits for one of the 10 slots that a recent back-off has left, "
     "with 1 ahead of it, since 0 ms",
     NULL, s_few},
    {"waits for bytes", "waits for bytes",
     "sample: waits for bytes of the dispatch budget (20 of 1 are taken, 0 "
     "ahead of it), since 0 ms",
     "{\"sample_dispatch_bytes_semaphore_size\":1}", s_one_held},
    {"connects", "waits for a connection",
     "sample: waits for a connection to 127.0.0.1:* (1 on the way), attempt 1, "
     "since 0 ms",
     NULL, connects},
    {"is half sent", "is being sent",
     "sample: is being sent, *% of *, attempt 1, since 0 ms", NULL,
     s_half_sent},
    {"is submitted", "waits for the server's answer",
     "sample: waits for the server's answer, attempt 1, since 0 ms", NULL,
     submitted},
    {"its acceptance comes", "receives the server's answer",
     "sample: receives the server's answer, 1 bytes so far, attempt 1, since 0 "
     "ms",
     NULL, acceptance_comes},
    {"pauses before a repeat", "pauses after attempt 1",
     "sample: pauses after attempt 1 failed (HTTP 503), attempt 2 follows in "
     "*s",
     NULL, repeats},
    {"is polled", "poll 1 of its result waits",
     "sample: was accepted 0 ms ago as asample:0:0; poll 1 of its result waits "
     "for the server's answer, attempt 1, since 0 ms",
     NULL, polls},
    {"pauses between polls", "of its result follows in",
     "sample: was accepted 0 ms ago as asample:0:0; poll 2 of its result "
     "follows in *s; the last poll failed (HTTP *)",
     NULL, polls_later},
    {"waits for room", "waits for room",
     "sample: was accepted 0 ms ago as asample:1:0; its result of 900 bytes is "
     "ready and waits for room: 900 of the 1 bytes for results are taken",
     "{\"inflight_response_bytes_semaphore_size\":1}", wants_room},
    {"its result comes", "receives the server's answer",
     "sample: was accepted 0 ms ago as asample:0:0; poll 1 of its result "
     "receives the server's answer, 1 bytes so far, attempt 1, since 0 ms",
     NULL, result_comes},
    {"will be submitted again", "is submitted again",
     "sample: is submitted again (resubmission 1) in * ms", NULL, s_anew},
    {"awaits its completion", "its own poll follows in",
     "sample: was accepted 0 ms ago as asample:0:0; the poll for 1 sample of "
     "the client waits for the server's answer, attempt 1, since 0 ms; its own "
     "poll follows in * s",
     BATCHED, s_awaits},
    {"awaits, the poll pauses", "follows in 8.0 s",
     "sample: was accepted 0 ms ago as asample:0:0; the poll for 1 sample of "
     "the client follows in 8.0 s; its own poll follows in * s",
     BATCHED, s_poll_pauses},
    {"is checked", "poll 1 of its result waits",
     "sample: was accepted 2 min 0 s ago as asample:0:0; poll 1 of its result "
     "waits for the server's answer, attempt 1, since *s",
     BATCHED, s_checks},
    {"waits to be checked", "needs a poll of its own",
     "sample: was accepted 2 min 0 s ago as asample:0:0; it needs a poll of "
     "its own and waits for one of 0 slots",
     BATCHED, s_check_waits},
    {"is fetched", "poll 1 of its result waits",
     "sample: was accepted 0 ms ago as asample:0:0; poll 1 of its result waits "
     "for the server's answer, attempt 1, since 0 ms",
     BATCHED, s_fetches},
    {"waits to be fetched", "waits for one of 64 slots",
     "sample: was accepted 0 ms ago as asample:64:0; its result is ready and "
     "waits for one of 64 slots",
     BATCHED, s_fetch_waits},
    {"has settled", SETTLED, SETTLED, NULL, start_turns},
};

TEST_LIMIT(S1_7_sample_in_every_state, 120) {
  run_table(SAMPLING, "sample", sampling_states,
            sizeof(sampling_states) / sizeof(sampling_states[0]));
}
