/* SPDX-License-Identifier: MIT */
/* What an observer hears of each kind of operation, word for word; that it is
 * in order in every state and end of an operation all scripted tests check, see
 * task/events.h. */
#include "task/kinds.h"

#define FB "/api/v1/forward_backward"
#define STEP "/api/v1/optim_step"
#define POLL "/api/v1/retrieve_future"
#define SAMPLE "/api/v1/asample"

/* A request that is accepted first and answered later, and a question. */
#define JOB "sent accepted held result"
#define ASKED "sent result"
#define DONE " decoded delivered"

static const heard_op_t *last_op(const script_t *script) {
  CHECK(script->heard.n > 0);
  return &script->heard.ops[script->heard.n - 1];
}

static void check_words(const script_t *script, const char *name,
                        const char *words) {
  CHECK_STR(last_op(script)->name, name);
  CHECK_STR(last_op(script)->words, words);
}

/* ---- Every kind ---- */

typedef struct {
  const char *name;
  const char *words;
} way_t;

static const way_t ways[] = {
    {"forward_backward", "queued " JOB DONE},
    {"forward", "queued " JOB DONE},
    {"optim_step", "queued " JOB DONE},
    {"optim_step_raw", "queued " JOB DONE},
    {"save_state", "queued " JOB DONE},
    {"save_weights_for_sampler", "queued " JOB DONE},
    {"save_weights_external", "queued " JOB DONE},
    {"save_weights_and_get_sampling", "queued " JOB DONE},
    {"load_state", "queued " JOB DONE},
    {"forward_backward_custom", "queued " JOB " loss " JOB DONE},
    {"unload", "queued " JOB DONE},
    {"sample", "queued " JOB DONE},
    {"compute_logprobs", "queued " JOB DONE},
    {"create_lora", "queued " JOB " " ASKED DONE},
    {"restore", "queued " JOB " " ASKED DONE},
    {"restore (classic)", "queued " ASKED " " JOB " " ASKED " " JOB DONE},
    {"create_sampling", "queued " ASKED " " ASKED DONE},
    {"get_server_capabilities", "queued " ASKED DONE},
    {"healthz", "queued " ASKED DONE},
};

TEST(observe_S1_P4_every_phase_of_every_kind_of_operation_is_told) {
  outcome_t outcome;
  script_t script;

  CHECK_INT(sizeof(ways) / sizeof(ways[0]), SCRIPT_N_KINDS);
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    CHECK_STR(kind->name, ways[i].name);
    script_open(&script);
    script_train(&script);
    script_sampler(&script);
    script_ok(&script, &outcome, kind->start(&script));
    if (strcmp(last_op(&script)->words, ways[i].words) != 0)
      test_fail(__FILE__, __LINE__, "%s: %s", kind->name,
                last_op(&script)->words);
    if (kind->owner != OWNER_SERVICE)
      CHECK_STR(last_op(&script)->client,
                kind->owner == OWNER_TRAINING ? "model-0" : "sampler-0");
    outcome_drop(&outcome);
    script_close(&script);
  }
}

/* ---- What is waited for ---- */

TEST(observe_waits_for_the_session_and_for_a_turn) {
  outcome_t outcomes[2];
  script_t script;

  script_open(&script);
  script_train(&script);
  /* Over HTTP/2 the first connection waits for what the peer allows. */
  CHECK_STR(script.heard.ops[0].words,
            mock_over_http2() ? "queued session connection " JOB " " ASKED DONE
                              : "queued session " JOB " " ASKED DONE);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  outcome_ok(&script, &outcomes[0]);
  outcome_ok(&script, &outcomes[1]);
  check_words(&script, "optim_step",
              mock_over_http2() ? "queued turn " JOB DONE
                                : "queued turn connection " JOB DONE);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* Who gets one at once does not hear of it. */
TEST(observe_waits_for_a_connection) {
  outcome_t outcomes[2];
  script_t script;

  script_open(&script);
  script_ok(&script, &outcomes[0], tnk_service_health(script.service));
  check_words(&script, "healthz", "queued connection " ASKED DONE);
  script_ok(&script, &outcomes[1], tnk_service_health(script.service));
  check_words(&script, "healthz", "queued " ASKED DONE);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(observe_waits_for_a_place_in_a_lane) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t outcomes[2];
  script_t script;

  options.max_polls = 1;
  script_open_with(&script, options);
  script_sampler(&script);
  mock_on(script.mock, "POST", POLL, mock_hold, NULL);
  outcome_of(&outcomes[0], script_sample(&script));
  outcome_of(&outcomes[1], script_sample(&script));
  while (mock_n_held(script.mock) == 0)
    mock_turns(script.mock, 1);
  script_turns(&script);
  check_words(&script, "sample",
              mock_over_http2() ? "queued sent accepted connection"
                                : "queued connection sent accepted connection");
  script_close(&script);
  outcome_drop_all(outcomes, 2);
}

/* The status and the code of what failed are told with what follows it. */
typedef struct {
  tnk_event_t retry;
  tnk_event_t sent;
  tnk_event_t accepted;
  tnk_event_t result;
  tnk_event_t failed;
  char request_id[64];
  unsigned parts_sent; /* sets of parts */
  unsigned parts_done;
} kept_t;

static void keep_event(const tnk_event_t *event, void *user) {
  kept_t *kept = user;

  if (event->waits_for == TNK_WAITS_FOR_RETRY)
    kept->retry = *event;
  if (event->phase == TNK_PHASE_SENT) {
    kept->sent = *event;
    kept->parts_sent |= 1u << event->part;
  }
  if (event->phase == TNK_PHASE_RESULT) {
    kept->result = *event;
    kept->parts_done |= 1u << event->part;
  }
  if (event->phase == TNK_PHASE_FAILED)
    kept->failed = *event;
  if (event->phase == TNK_PHASE_ACCEPTED) {
    kept->accepted = *event;
    snprintf(kept->request_id, sizeof(kept->request_id), "%s",
             event->request_id);
  }
}

static void open_kept(script_t *script, kept_t *kept) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(kept, 0, sizeof(*kept));
  options.observer = keep_event;
  options.observer_user = kept;
  script_open_with(script, options);
}

TEST(observe_tells_attempts_bytes_status_and_request_id) {
  outcome_t outcome;
  script_t script;
  kept_t kept;

  open_kept(&script, &kept);
  script_train(&script);
  mock_json_once(script.mock, "POST", STEP, 503, "{\"detail\":\"busy\"}");
  outcome_of(&outcome, script_step(&script));
  while (kept.retry.attempt == 0)
    mock_turns(script.mock, 1);
  CHECK_INT(kept.retry.attempt, 1);
  CHECK_INT(kept.retry.status, 503);
  CHECK_INT(kept.retry.code, TNK_ESERVER);
  CHECK_INT(kept.retry.time_ns, UINT64_C(1000000) * 1000000);
  while (outcome.n_done == 0)
    script_advance(&script, 500);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK_INT(kept.sent.attempt, 2);
  CHECK_INT(kept.sent.bytes, mock_find(script.mock, NULL, STEP, 1)->body_len);
  CHECK_INT(kept.accepted.status, 200);
  CHECK_INT(kept.accepted.attempt, 2);
  CHECK_STR(kept.request_id, "optim_step:1:0");
  CHECK_INT(kept.result.status, 200);
  CHECK_INT(kept.result.bytes, strlen("{\"metrics\":{\"grad_norm\":0.5}}"));
  outcome_drop(&outcome);
  script_close(&script);
}

/* The body of a pass is written while it is sent. */
TEST(observe_tells_the_bytes_of_a_pass) {
  static const char pass_path[] = "/api/v1/forward_backward";
  outcome_t outcome;
  script_t script;
  kept_t kept;

  open_kept(&script, &kept);
  script_train(&script);
  script_ok(&script, &outcome, script_pass(&script, 3));
  CHECK(kept.sent.bytes > 0);
  CHECK_INT(kept.sent.bytes,
            mock_find(script.mock, NULL, pass_path, 0)->body_len);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_parts_of_an_operation_are_told_apart) {
  outcome_t outcome;
  script_t script;
  kept_t kept;

  open_kept(&script, &kept);
  script_flags(&script, "{\"fwdbwd_max_chunk_len\":1}");
  script_train(&script);
  script_ok(&script, &outcome, script_pass(&script, 3));
  CHECK_INT(kept.parts_sent, 7);
  CHECK_INT(kept.parts_done, 7);
  CHECK(kept.result.operation == kept.sent.operation);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Ends ---- */

TEST(observe_a_failure_ends_the_operation_with_its_code) {
  outcome_t outcome;
  script_t script;
  kept_t kept;

  open_kept(&script, &kept);
  script_train(&script);
  mock_json_once(script.mock, "POST", STEP, 400, "{\"detail\":\"no\"}");
  script_fails(&script, &outcome, script_step(&script), TNK_EREQUEST);
  CHECK_INT(kept.failed.code, TNK_EREQUEST);
  CHECK_INT(kept.failed.status, 400);
  outcome_drop(&outcome);
  script_close(&script);
}

static int give_up(tnk_custom_loss_t *io, void *user) {
  const script_t *script = user;

  (void)io;
  check_words(script, "forward_backward_custom", "queued " JOB " loss");
  return 7;
}

TEST(observe_a_custom_loss_begins_and_fails) {
  outcome_t outcome;
  script_t script;

  script_open_train(&script);
  script_fails(&script, &outcome,
               tnk_training_forward_backward_custom(
                   script.training, script_data(1), 1, give_up, &script, NULL),
               TNK_EUSER);
  check_words(&script, "forward_backward_custom",
              "queued " JOB " loss failed delivered");
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_after_a_cancel_nothing_of_the_request_is_told) {
  script_held_t held = {.n = 0};
  outcome_t outcome;
  script_t script;
  tnk_promise_t *promise;

  script_open_train(&script);
  mock_on(script.mock, "POST", STEP, script_hold, &held);
  promise = tnk_promise_ref(script_step(&script));
  outcome_of(&outcome, promise);
  while (held.n == 0)
    mock_turns(script.mock, 1);
  script_turns(&script);
  tnk_promise_cancel(promise);
  script_turns(&script);
  check_words(&script, "optim_step", "queued sent failed delivered");
  CHECK_INT(last_op(&script)->code, TNK_ECANCELED);
  mock_reply_json(held.requests[0], 200, "{\"request_id\":\"optim_step:1:0\"}");
  script_turns(&script);
  check_words(&script, "optim_step", "queued sent failed delivered");
  tnk_promise_unref(promise);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_what_nobody_looks_at_is_not_delivered) {
  script_t script;

  script_open_train(&script);
  tnk_promise_unref(script_step(&script));
  while (!last_op(&script)->has_ended)
    mock_turns(script.mock, 1);
  script_turns(&script);
  check_words(&script, "optim_step", "queued " JOB " decoded");
  script_close(&script);
}

TEST(observe_a_look_without_a_callback_is_a_delivery) {
  tnk_promise_t *promise;
  script_t script;

  script_open_train(&script);
  promise = script_step(&script);
  while (!last_op(&script)->has_ended)
    mock_turns(script.mock, 1);
  CHECK_INT(tnk_promise_status(promise), TNK_OK);
  CHECK_INT(tnk_promise_status(promise), TNK_OK);
  check_words(&script, "optim_step", "queued " JOB DONE);
  tnk_promise_unref(promise);
  script_close(&script);
}

/* ---- Samples ---- */

TEST(observe_a_sample_that_is_turned_away_and_comes_again) {
  outcome_t outcome;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_json_once(script.mock, "POST", SAMPLE, 429, "{\"detail\":\"slow\"}");
  outcome_of(&outcome, script_sample(&script));
  while (outcome.n_done == 0)
    script_advance(&script, 500);
  CHECK_INT(outcome.status, TNK_OK);
  check_words(&script, "sample", "queued sent retry back-off " JOB DONE);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_samples_that_are_polled_for_together) {
  outcome_t outcome;
  script_t script;

  script_open(&script);
  script_flags(&script, "{\"sample_use_retrieve_futures\":true}");
  mock_on(script.mock, "POST", "/api/v1/retrieve_futures", script_batch,
          &script);
  script_sampler(&script);
  script_ok(&script, &outcome, script_sample(&script));
  check_words(&script, "sample",
              "queued sent accepted held held result decoded delivered");
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Time ---- */

TEST(observe_times_are_those_of_the_clock) {
  const heard_op_t *op;
  outcome_t outcome;
  script_t script;

  script_open_train(&script);
  mock_on(script.mock, "POST", POLL, mock_hold, NULL);
  outcome_of(&outcome, script_step(&script));
  while (mock_n_held(script.mock) == 0)
    mock_turns(script.mock, 1);
  script_advance(&script, 1234);
  mock_release(script.mock, 200, "{\"metrics\":{}}");
  outcome_ok(&script, &outcome);
  op = last_op(&script);
  CHECK_INT(op->end_ns - op->begin_ns, UINT64_C(1234000000));
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_names_of_what_is_no_phase_are_empty) {
  CHECK_STR(tnk_phase_name((tnk_phase_t)99), "");
  CHECK_STR(tnk_phase_name((tnk_phase_t)-1), "");
  CHECK_STR(tnk_waits_for_name((tnk_waits_for_t)99), "");
  CHECK_STR(tnk_waits_for_name(TNK_WAITS_FOR_BACK_OFF), "back-off");
}

/* ---- Trace context ---- */

#define TRACE "0af7651916cd43dd8448eb211c80319c"

static uint64_t span_of(const script_t *script, const char *path, size_t i) {
  const mock_request_t *request = mock_find(script->mock, "POST", path, i);
  const char *text = mock_header(request, "traceparent");

  CHECK(text != NULL && strlen(text) == 55);
  CHECK(strncmp(text, "00-" TRACE "-", 36) == 0);
  CHECK_STR(text + 52, "-01");
  return strtoull(text + 36, NULL, 16);
}

TEST(observe_P9_each_request_is_a_span_that_the_observer_is_told) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t outcome;
  script_t script;
  kept_t kept;

  memset(&kept, 0, sizeof(kept));
  options.traceparent = "00-" TRACE "-b7ad6b7169203331-01";
  options.observer = keep_event;
  options.observer_user = &kept;
  script_open_with(&script, options);
  script_train(&script);
  mock_json_once(script.mock, "POST", STEP, 503, "{\"detail\":\"busy\"}");
  outcome_of(&outcome, script_step(&script));
  while (outcome.n_done == 0)
    script_advance(&script, 500);
  CHECK_INT(outcome.status, TNK_OK);
  CHECK(kept.sent.span != 0);
  CHECK(span_of(&script, STEP, 1) == kept.sent.span);
  CHECK(span_of(&script, STEP, 0) != kept.sent.span);
  CHECK(span_of(&script, "/api/v1/create_session", 0) != 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(observe_P9_without_the_option_no_trace_context_is_sent) {
  outcome_t outcome;
  script_t script;

  setenv("TRACEPARENT", "00-" TRACE "-b7ad6b7169203331-01", 1);
  script_open_train(&script);
  script_ok(&script, &outcome, script_step(&script));
  CHECK(mock_header(mock_find(script.mock, "POST", STEP, 0), "traceparent") ==
        NULL);
  outcome_drop(&outcome);
  script_close(&script);
  unsetenv("TRACEPARENT");
}
