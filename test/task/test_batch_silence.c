/* SPDX-License-Identifier: MIT */
/* Silence, cancels, acknowledgements and crowds. */
#include "task/batch.h"

/* ---- Canceled samples ---- */

TEST(P8_6_a_canceled_sample_is_dropped_and_reported) {
  script_t script;

  open_default(&script);
  start(&script, 0, 2);
  tnk_promise_cancel(promises[0]);
  outcome_fails(&script, &outcomes[0], TNK_ECANCELED);
  tell(&script, 0, 1, 1); /* it comes all the same */
  CHECK_INT(n_fetches(&script), 0);
  check_body(last_batch(&script), "\"prev_cursor\":1,\"retrieved_request_ids\":"
                                  "[\"asample:0:0\"]}");
  tell(&script, 1, 1, 2);
  outcome_ok(&script, &outcomes[1]);
  finish(&script, 2);
}

TEST(P8_6_when_the_last_is_canceled_nothing_is_held) {
  script_t script;

  open_default(&script);
  start(&script, 0, 2);
  tnk_promise_cancel(promises[0]);
  tnk_promise_cancel(promises[1]);
  turns(&script);
  CHECK(last_batch(&script)->is_gone);
  script_advance(&script, 300000);
  CHECK_INT(n_batches(&script), 1);
  start(&script, 2, 1);
  CHECK_INT(n_batches(&script), 2);
  tell(&script, 0, 3, 1);
  outcome_ok(&script, &outcomes[2]);
  finish(&script, 3);
}

/* ---- Silence ---- */

TEST(P8_6_a_lost_completion_is_found_by_asking) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  script_later(&script, 59999);
  CHECK_INT(n_fetches(&script), 0);
  script_later(&script, 60001);
  CHECK_INT(n_fetches(&script), 1);
  CHECK(strstr((const char *)last_of(&script, fetch_path)->body,
               "\"allow_metadata_only\":true") != NULL);
  outcome_ok(&script, &outcomes[0]);
  script_later(&script, 1000);
  CHECK(strstr((const char *)last_batch(&script)->body, "asample:0:0") != NULL);
  finish(&script, 1);
}

/* A check that finds nothing goes back to waiting, again and again. */
TEST(P8_6_a_silent_sample_is_asked_for_every_minute_or_two) {
  script_t script;

  open_default(&script);
  mock_json(script.mock, "POST", fetch_path, 200,
            "{\"type\":\"try_again\",\"request_id\":\"asample:0:0\","
            "\"queue_state\":\"active\"}");
  start(&script, 0, 1);
  for (int i = 0; i < 1200; i++) {
    tnk__context_advance(&script.service->root.context, 1000);
    mock_turns(script.mock, 6);
  }
  CHECK(n_fetches(&script) >= 10 && n_fetches(&script) <= 20);
  mock_on(script.mock, "POST", fetch_path, script_result, &script);
  tell(&script, 0, 1, 1);
  outcome_ok(&script, &outcomes[0]);
  finish(&script, 1);
}

/* The completion comes while a check is held: the check's answer decides. */
TEST(P8_6_a_completion_during_a_check) {
  script_t script;

  open_default(&script);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  start(&script, 0, 1);
  script_later(&script, 120000);
  CHECK_INT(n_fetches(&script), 1);
  tell(&script, 0, 1, 1);
  CHECK_INT(n_fetches(&script), 1);
  mock_on(script.mock, "POST", fetch_path, script_result, &script);
  mock_reply_json(mock_find(script.mock, "POST", fetch_path, 0), 408, "{}");
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_fetches(&script), 2);
  finish(&script, 1);
}

/* Turned off while checks are held: they go on as plain polls. */
TEST(P8_6_a_fall_back_during_checks) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;

  options.max_polls = 8; /* two checks */
  open_batch(&script, options);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  start(&script, 0, 4);
  script_later(&script, 120000);
  CHECK_INT(n_fetches(&script), 2);
  answer(&script, 404, "{}");
  CHECK_INT(n_fetches(&script), 4);
  mock_on(script.mock, "POST", fetch_path, script_result, &script);
  for (size_t i = 0; i < 4; i++)
    script_result(mock_find(script.mock, "POST", fetch_path, i), &script);
  for (int i = 0; i < 4; i++)
    outcome_ok(&script, &outcomes[i]);
  finish(&script, 4);
}

/* ---- Slow acknowledgements ---- */

TEST(P8_6_a_slow_acknowledgement_delays_nobody) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  tell(&script, 0, 1, 1);
  outcome_ok(&script, &outcomes[0]);
  script_later(&script, 1000);
  CHECK_INT(n_batches(&script), 2); /* the acknowledgement is held */
  start(&script, 1, 1);
  CHECK_INT(n_batches(&script), 3); /* and given up for a poll */
  check_body(last_batch(&script), "\"prev_cursor\":1,\"retrieved_request_ids\":"
                                  "[\"asample:0:0\"]}");
  tell(&script, 1, 1, 2);
  outcome_ok(&script, &outcomes[1]);
  finish(&script, 2);
}

TEST(P8_6_acknowledgements_that_fail_are_given_up) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  tell(&script, 0, 1, 1);
  outcome_ok(&script, &outcomes[0]);
  mock_json(script.mock, "POST", batch_path, 503, "{}");
  for (int i = 0; i < 300; i++)
    script_advance(&script, 1000);
  CHECK_INT(n_batches(&script), 4);
  /* It still serves the next sample. */
  mock_on(script.mock, "POST", batch_path, mock_hold, NULL);
  start(&script, 1, 1);
  tell(&script, 1, 1, 2);
  outcome_ok(&script, &outcomes[1]);
  finish(&script, 2);
}

/* ---- Many ---- */

TEST(P8_6_fetches_are_limited) {
  enum { N = 200 };
  script_t script;
  size_t done = 0;

  open_default(&script);
  start(&script, 0, N);
  while (script.n_sent < N)
    turns(&script);
  turns(&script);
  CHECK_INT(n_batches(&script), 1);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  tell(&script, 0, N, 1);
  mock_turns(script.mock, 200);
  CHECK_INT(n_fetches(&script), 64);
  while (done < N) {
    CHECK(n_fetches(&script) > done);
    script_result(mock_find(script.mock, "POST", fetch_path, done++), &script);
    turns(&script);
  }
  CHECK_INT(n_fetches(&script), N);
  finish(&script, N);
}

/* With batched polls nothing is held for a sample, so there is no limit to
 * those under way; without them there is again. */
TEST(P8_6_the_limit_of_samples_under_way_is_lifted) {
  script_t script;

  script_open(&script);
  script_flags(&script, "{\"sample_use_retrieve_futures\":true,"
                        "\"sample_max_concurrent_requests\":2}");
  mock_on(script.mock, "POST", batch_path, mock_hold, NULL);
  script_sampler(&script);
  start(&script, 0, 5);
  CHECK_INT(script.n_sent, 5);
  answer(&script, 404, "{}");
  for (int i = 0; i < 5; i++)
    outcome_ok(&script, &outcomes[i]);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  start(&script, 5, 3);
  CHECK_INT(script.n_sent, 7);
  finish(&script, 8);
}

/* Held polls must leave room for the fetches. */
TEST(P8_6_pollers_are_a_part_of_all_polls) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;

  options.max_polls = 8;
  open_batch(&script, options);
  for (int i = 0; i < 3; i++) {
    script_sampler(&script);
    start(&script, i, 1);
  }
  CHECK_INT(n_batches(&script), 2);
  outcome_ok(&script, &outcomes[2]);
  finish(&script, 3);
}

/* ---- Memory ---- */

/* One sample from start to end with each allocation failing in turn: it
 * settles, whatever happens. */
TEST_LIMIT(P8_6_without_memory_it_settles_all_the_same, 60) {
  for (long n = 0;; n++) {
    script_t script;
    int failed;

    open_default(&script);
    test_alloc_fail_at(n);
    promises[0] = script_sample(&script);
    outcome_of(&outcomes[0], tnk_promise_ref(promises[0]));
    for (int i = 0; i < 12 && outcomes[0].n_done == 0; i++) {
      turns(&script);
      for (size_t k = 0; k < n_batches(&script); k++) {
        mock_request_t *request = mock_find(script.mock, "POST", batch_path, k);
        if (!request->is_answered && !request->is_gone)
          mock_reply_json(request, 200,
                          "{\"completions\":[{\"state\":\"finished\","
                          "\"request_id\":\"asample:0:0\"}],\"cursor\":1}");
      }
      turns(&script);
      script_advance(&script, 20000);
    }
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(outcomes[0].n_done, 1);
    finish(&script, 1);
    if (!failed)
      break;
  }
}
