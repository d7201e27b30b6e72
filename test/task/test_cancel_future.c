/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * The server is told of samples that nobody waits for any more. Submissions
 * and cancels are held until the test answers them.
 */
enum { MAX_SAMPLES = 16 };

static outcome_t outcomes[MAX_SAMPLES];

static const char wanted[] = "{\"sample_cancel_enabled\":true}";

static size_t n_cancels(const script_t *script) {
  return mock_count(script->mock, "POST", "/api/v1/cancel_future");
}

static void check_cancel(const script_t *script, size_t i, const char *body) {
  mock_request_t *request =
      mock_find(script->mock, "POST", "/api/v1/cancel_future", i);

  CHECK(request != NULL);
  CHECK_MEM(request->body, request->body_len, body, strlen(body));
}

static void open_sampling(script_t *script, const char *flags) {
  script_open(script);
  mock_json(script->mock, "POST", "/api/v1/client/dynamic_config", 200, flags);
  mock_on(script->mock, "POST", "/api/v1/retrieve_future", mock_hold, NULL);
  mock_json(script->mock, "POST", "/api/v1/cancel_future", 200, "{}");
  script_sampler(script);
}

/* The promises that the test may cancel, beside their outcomes. */
static tnk_promise_t *promises[MAX_SAMPLES];

static void start(script_t *script, int first, int n) {
  for (int i = first; i < first + n; i++) {
    promises[i] = script_sample(script);
    outcome_of(&outcomes[i], tnk_promise_ref(promises[i]));
  }
  mock_turns(script->mock, 40);
}

static void cancel(script_t *script, int i) {
  tnk_promise_cancel(promises[i]);
  outcome_fails(script, &outcomes[i], TNK_ECANCELED);
  mock_turns(script->mock, 40);
}

static void drop(int n) {
  for (int i = 0; i < n; i++) {
    tnk_promise_unref(promises[i]);
    outcome_drop(&outcomes[i]);
  }
}

/* With so many samples whose submissions are held. */
static void open_held(script_t *script, int n) {
  open_sampling(script, wanted);
  mock_on(script->mock, "POST", "/api/v1/asample", mock_hold, NULL);
  start(script, 0, n);
}

static void finish(script_t *script, int n) {
  script_close(script);
  drop(n);
}

TEST(P8_7_a_cancel_names_the_accepted_sample) {
  script_t script;

  open_sampling(&script, wanted);
  start(&script, 0, 2);
  cancel(&script, 1);
  CHECK_INT(n_cancels(&script), 1);
  check_cancel(&script, 0, "{\"request_id\":\"asample:1:0\"}");
  cancel(&script, 0);
  CHECK_INT(n_cancels(&script), 2);
  finish(&script, 2);
}

TEST(P8_7_a_deadline_is_told_too) {
  script_t script;

  open_sampling(&script, wanted);
  outcome_of(&outcomes[0], tnk_with_timeout(script_sample(&script), 5000));
  mock_turns(script.mock, 40);
  script_advance(&script, 5000);
  outcome_fails(&script, &outcomes[0], TNK_ETIMEDOUT);
  mock_turns(script.mock, 40);
  CHECK_INT(n_cancels(&script), 1);
  script_close(&script);
  outcome_drop(&outcomes[0]);
}

TEST(P8_7_nothing_is_told_unless_the_server_wants_it) {
  script_t script;

  open_sampling(&script, "{}");
  start(&script, 0, 1);
  cancel(&script, 0);
  CHECK_INT(n_cancels(&script), 0);
  finish(&script, 1);
}

/* The flag is asked at the moment of the cancel, not at the start. */
TEST(P8_7_a_refresh_turns_cancels_on) {
  script_t script;

  open_sampling(&script, "{}");
  start(&script, 0, 1);
  mock_json(script.mock, "POST", "/api/v1/client/dynamic_config", 200, wanted);
  script_later(&script, 300000);
  cancel(&script, 0);
  CHECK_INT(n_cancels(&script), 1);
  finish(&script, 1);
}

TEST(P8_7_an_unanswered_submission_is_canceled_when_its_id_comes) {
  script_t script;

  open_held(&script, 1);
  cancel(&script, 0);
  CHECK_INT(n_cancels(&script), 0);
  mock_release(script.mock, 200, "{\"request_id\":\"late\"}");
  mock_turns(script.mock, 40);
  CHECK_INT(n_cancels(&script), 1);
  check_cancel(&script, 0, "{\"request_id\":\"late\"}");
  finish(&script, 1);
}

/* The answer is lost after the server took it: the same submission again
 * finds out the id. */
TEST(P8_7_a_lost_answer_is_asked_for_before_the_cancel) {
  mock_request_t *first;
  script_t script;

  open_held(&script, 1);
  cancel(&script, 0);
  first = mock_find(script.mock, "POST", "/api/v1/asample", 0);
  mock_reset(first, NULL);
  mock_turns(script.mock, 40);
  script_later(&script, 30000);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 2);
  CHECK_STR(mock_header(mock_find(script.mock, "POST", "/api/v1/asample", 1),
                        "x-idempotency-key"),
            mock_header(first, "x-idempotency-key"));
  mock_release(script.mock, 200, "{\"request_id\":\"again\"}");
  mock_turns(script.mock, 40);
  check_cancel(&script, 0, "{\"request_id\":\"again\"}");
  finish(&script, 1);
}

/* A repeat could begin what nobody wants. */
TEST(P8_7_a_submission_that_was_answered_is_not_repeated_for_a_cancel) {
  script_t script;

  open_held(&script, 2);
  cancel(&script, 0); /* while its answer is due */
  mock_release(script.mock, 503, "{}");
  mock_turns(script.mock, 40);
  cancel(&script, 1); /* while it pauses */
  script_later(&script, 600000);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 2);
  CHECK_INT(n_cancels(&script), 0);
  finish(&script, 2);
}

/* Nor again and again for an id that does not come. */
TEST(P8_7_a_lost_answer_is_asked_for_once) {
  script_t script;

  open_sampling(&script, wanted);
  mock_on(script.mock, "POST", "/api/v1/asample", mock_reset, NULL);
  start(&script, 0, 1);
  cancel(&script, 0); /* it went out twice, as its connection was kept */
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 2);
  for (int i = 0; i < 20; i++)
    script_later(&script, 30000);
  /* Over HTTP/2 its connection has been used again by then. */
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"),
            mock_over_http2() ? 4 : 3);
  finish(&script, 1);
}

TEST(P8_7_a_refused_submission_needs_no_cancel) {
  script_t script;

  open_held(&script, 2);
  cancel(&script, 0);
  cancel(&script, 1);
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 0), 422,
                  "{\"detail\":\"no\"}");
  /* A 429 still counts for the others, but it is not sent again. */
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 1), 429,
                  "{}");
  mock_turns(script.mock, 40);
  script_later(&script, 60000);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 2);
  CHECK_INT(n_cancels(&script), 0);
  finish(&script, 2);
}

TEST(P8_7_cancels_come_in_batches_of_the_servers_size) {
  enum { N = 10 };
  script_t script;

  open_sampling(&script, "{\"sample_cancel_enabled\":true,"
                         "\"sample_cancel_max_batch_size\":3}");
  mock_on(script.mock, "POST", "/api/v1/cancel_future", mock_hold, NULL);
  start(&script, 0, N);
  for (int i = 0; i < N; i++)
    cancel(&script, i);
  CHECK_INT(n_cancels(&script), 3);
  /* One that is slow holds up nobody but itself. */
  for (size_t i = 1; i < N; i++) {
    mock_request_t *request =
        mock_find(script.mock, "POST", "/api/v1/cancel_future", i);
    CHECK(request != NULL);
    mock_reply_json(request, 200, "{}");
    mock_turns(script.mock, 40);
  }
  CHECK_INT(n_cancels(&script), N);
  finish(&script, N);
}

static void check_unsupported(int status) {
  script_t script;

  open_sampling(&script, wanted);
  mock_json(script.mock, "POST", "/api/v1/cancel_future", status, "{}");
  start(&script, 0, 3);
  cancel(&script, 0);
  CHECK_INT(n_cancels(&script), 1);
  cancel(&script, 1);
  cancel(&script, 2);
  CHECK_INT(n_cancels(&script), 1);
  finish(&script, 3);
}

TEST(P8_7_a_server_without_cancel_is_asked_once_404) {
  check_unsupported(404);
}

TEST(P8_7_a_server_without_cancel_is_asked_once_405) {
  check_unsupported(405);
}

/* After a good answer a 404 is about the sample, which may have ended. */
TEST(P8_7_a_sample_that_is_gone_does_not_turn_cancels_off) {
  script_t script;

  open_sampling(&script, wanted);
  start(&script, 0, 3);
  cancel(&script, 0);
  mock_json_once(script.mock, "POST", "/api/v1/cancel_future", 404, "{}");
  cancel(&script, 1);
  cancel(&script, 2);
  CHECK_INT(n_cancels(&script), 3);
  CHECK_INT(script.n_warnings, 0);
  finish(&script, 3);
}

TEST(P8_7_closing_the_client_gives_up_its_samples) {
  script_t script;

  open_sampling(&script, wanted);
  start(&script, 0, 1);
  mock_on(script.mock, "POST", "/api/v1/asample", mock_hold, NULL);
  start(&script, 1, 1);
  tnk_sampling_close(script.sampling, NULL, NULL);
  outcome_fails(&script, &outcomes[0], TNK_ECLOSED);
  outcome_fails(&script, &outcomes[1], TNK_ECLOSED);
  mock_turns(script.mock, 40);
  CHECK_INT(n_cancels(&script), 1);
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 1), 200,
                  "{\"request_id\":\"of-a-closed-client\"}");
  mock_turns(script.mock, 40);
  CHECK_INT(n_cancels(&script), 2);
  check_cancel(&script, 1, "{\"request_id\":\"of-a-closed-client\"}");
  finish(&script, 2);
}

TEST(P8_7_a_refusal_of_a_closed_clients_sample_is_told_of_the_session) {
  script_t script;

  open_held(&script, 1);
  tnk_sampling_close(script.sampling, NULL, NULL);
  outcome_fails(&script, &outcomes[0], TNK_ECLOSED);
  mock_turns(script.mock, 40);
  script.log_text = "session-0: all samples wait for";
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 0), 429,
                  "{}");
  mock_turns(script.mock, 40);
  CHECK_INT(script.n_log_texts, 1);
  finish(&script, 1);
}

TEST(P8_7_closing_the_service_tells_nobody) {
  script_t script;

  open_sampling(&script, wanted);
  mock_on(script.mock, "POST", "/api/v1/cancel_future", mock_hold, NULL);
  start(&script, 0, 2);
  mock_on(script.mock, "POST", "/api/v1/asample", mock_hold, NULL);
  start(&script, 2, 1);
  cancel(&script, 0);
  cancel(&script, 2); /* its submission is still out */
  CHECK_INT(n_cancels(&script), 1);
  script_close(&script);
  CHECK_INT(outcomes[1].status, TNK_ECLOSED);
  drop(3);
}

TEST(P8_7_without_memory_a_cancel_ends_the_promise_all_the_same) {
  for (long n = 0;; n++) {
    script_t script;
    int failed;

    open_sampling(&script, wanted);
    start(&script, 0, 1);
    test_alloc_fail_at(n);
    tnk_promise_cancel(promises[0]);
    mock_turns(script.mock, 40);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(outcomes[0].status, TNK_ECANCELED);
    if (!failed)
      CHECK_INT(n_cancels(&script), 1);
    script_close(&script);
    drop(1);
    if (!failed)
      break;
  }
}

/* ---- Calls that a server lacks ---- */

TEST(P4_10_a_missing_call_is_remembered) {
  tnk_stats_t before = TNK_STATS_INIT;
  tnk_stats_t after = TNK_STATS_INIT;
  script_t script;

  script_open(&script);
  mock_json(script.mock, "GET", "/api/v1/get_server_capabilities", 404, "{}");
  script_fails(&script, &outcomes[0], tnk_service_capabilities(script.service),
               TNK_EUNSUPPORTED);
  tnk_service_stats(&before, script.service);
  script_fails(&script, &outcomes[1], tnk_service_capabilities(script.service),
               TNK_EUNSUPPORTED);
  tnk_service_stats(&after, script.service);
  CHECK_INT(after.n_requests, before.n_requests);
  CHECK_INT(mock_count(script.mock, "GET", "/api/v1/get_server_capabilities"),
            1);
  script_close(&script);
  outcome_drop_all(outcomes, 2);
}

/* What another operation asks for is not affected, and numbers go on. */
TEST(P5_8_an_external_save_that_is_missing_costs_no_number_later) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  script_t script;

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/save_weights_external", 405, "{}");
  script_fails(
      &script, &outcomes[0],
      tnk_training_save_weights_external(script.training, "a", &options),
      TNK_EUNSUPPORTED);
  script_fails(
      &script, &outcomes[1],
      tnk_training_save_weights_external(script.training, "b", &options),
      TNK_EUNSUPPORTED);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/save_weights_external"),
            1);
  script_ok(&script, &outcomes[2], script_step(&script));
  script_close(&script);
  outcome_drop_all(outcomes, 3);
}

TEST(P3_2_a_missing_dynamic_config_is_not_asked_again) {
  script_t script;

  script_open(&script);
  mock_json(script.mock, "POST", "/api/v1/client/dynamic_config", 404, "{}");
  script_sampler(&script);
  script_advance(&script, 1000000);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/client/dynamic_config"),
            1);
  script_close(&script);
}
