/* SPDX-License-Identifier: MIT */
#include "task/batch.h"

/* ---- The normal course ---- */

TEST(P8_6_one_poll_for_all_and_the_reports) {
  script_t script;

  open_default(&script);
  start(&script, 0, 3);
  CHECK_INT(n_batches(&script), 1);
  CHECK_INT(n_fetches(&script), 0);
  check_body(last_batch(&script),
             "\"prev_cursor\":0,\"retrieved_request_ids\":[]}");
  CHECK_STR(mock_header(last_batch(&script), "accept"), "application/json");
  CHECK(mock_header(last_batch(&script), "x-sdk-method") == NULL);
  tell(&script, 1, 2, 8);
  outcome_ok(&script, &outcomes[1]);
  outcome_ok(&script, &outcomes[2]);
  CHECK_INT(outcomes[0].n_done, 0);
  CHECK_INT(n_fetches(&script), 2);
  /* One still waits, so the next poll went out at once; what has been
   * received meanwhile rides on the one after it. */
  CHECK_INT(n_batches(&script), 2);
  check_body(last_batch(&script),
             "\"prev_cursor\":8,\"retrieved_request_ids\":[]}");
  tell(&script, 0, 1, 9);
  outcome_ok(&script, &outcomes[0]);
  turns(&script);
  CHECK_INT(n_batches(&script), 2);
  script_later(&script, 1000);
  CHECK_INT(n_batches(&script), 3);
  check_body(last_batch(&script),
             "\"prev_cursor\":9,\"timeout\":0.0,\"retrieved_request_ids\":["
             "\"asample:0:0\",\"asample:1:0\",\"asample:2:0\"]}");
  answer(&script, 200, "{\"completions\":[],\"cursor\":9}");
  script_advance(&script, 20000);
  CHECK_INT(n_batches(&script), 3);
  finish(&script, 3);
}

TEST(P8_6_reports_ride_on_the_next_poll) {
  script_t script;

  open_default(&script);
  start(&script, 0, 3);
  tell(&script, 0, 1, 1);
  outcome_ok(&script, &outcomes[0]);
  tell(&script, 1, 1, 2);
  check_body(last_batch(&script), "\"prev_cursor\":2,\"retrieved_request_ids\":"
                                  "[\"asample:0:0\"]}");
  tell(&script, 2, 1, 3);
  outcome_ok(&script, &outcomes[2]);
  finish(&script, 3);
}

TEST(P8_6_a_completion_before_the_waiter) {
  script_held_t held = {0};
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_on(script.mock, "POST", "/api/v1/asample", script_hold, &held);
  start(&script, 1, 1);
  CHECK_INT(held.n, 1);
  tell(&script, 1, 1, 1); /* its acceptance has not arrived yet */
  CHECK_INT(n_fetches(&script), 0);
  mock_reply_json(held.requests[0], 200, "{\"request_id\":\"asample:1:0\"}");
  outcome_ok(&script, &outcomes[1]);
  CHECK_INT(n_fetches(&script), 1);
  script_later(&script, 1000);
  tell(&script, 0, 1, 2);
  outcome_ok(&script, &outcomes[0]);
  finish(&script, 2);
}

TEST(P8_6_a_large_result_takes_room_and_is_final) {
  script_t script;

  open_default(&script);
  start(&script, 0, 2);
  answer(&script, 200,
         "{\"completions\":[{\"state\":\"finished\",\"request_id\":"
         "\"asample:0:0\",\"response_payload_uncompressed_size\":1000},"
         "{\"state\":\"finished\",\"request_id\":\"asample:1:0\","
         "\"response_payload_uncompressed_size\":0}],\"cursor\":1}");
  outcome_ok(&script, &outcomes[0]);
  outcome_ok(&script, &outcomes[1]);
  for (size_t i = 0; i < 2; i++) {
    mock_request_t *fetch = mock_find(script.mock, "POST", fetch_path, i);
    const char *body = (const char *)fetch->body;
    CHECK(strstr(body, strstr(body, ":0:0") != NULL
                           ? "\"allow_metadata_only\":false"
                           : "\"allow_metadata_only\":true") != NULL);
    CHECK_STR(mock_header(fetch, "x-tinker-request-iteration"), "0");
  }
  finish(&script, 2);
}

TEST(P8_6_a_failed_sample_is_fetched_and_reported) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_json(script.mock, "POST", fetch_path, 200,
            "{\"error\":\"too long\",\"category\":\"user\"}");
  answer(&script, 200,
         "{\"completions\":[{\"state\":\"failed\",\"request_id\":"
         "\"asample:0:0\"}],\"cursor\":1}");
  outcome_fails(&script, &outcomes[0], TNK_EFAILED);
  script_later(&script, 1000);
  check_body(last_batch(&script),
             "\"prev_cursor\":1,\"timeout\":0.0,\"retrieved_request_ids\":["
             "\"asample:0:0\"]}");
  finish(&script, 1);
}

/* The server said it is done, but the fetch is told to wait: go on polling. */
TEST(P8_6_a_fetch_that_must_wait_goes_on) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_json_once(script.mock, "POST", fetch_path, 200,
                 "{\"type\":\"try_again\",\"request_id\":\"asample:0:0\","
                 "\"queue_state\":\"active\"}");
  tell(&script, 0, 1, 1);
  CHECK_INT(outcomes[0].n_done, 0);
  script_advance(&script, 1000);
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_fetches(&script), 2);
  finish(&script, 1);
}

/* A result that expired is submitted anew, and waits here again. */
TEST(P8_6_a_lost_result_is_not_reported) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_json_once(script.mock, "POST", fetch_path, 410, "{}");
  tell(&script, 0, 1, 1);
  script_later(&script, 60000);
  check_body(last_batch(&script),
             "\"prev_cursor\":1,\"retrieved_request_ids\":[]}");
  tell(&script, 1, 1, 2);
  outcome_ok(&script, &outcomes[0]);
  finish(&script, 1);
}

/* ---- Odd answers ---- */

TEST(P8_6_a_replayed_completion_is_taken_once) {
  script_t script;

  open_default(&script);
  start(&script, 0, 2);
  tell(&script, 0, 1, 5);
  outcome_ok(&script, &outcomes[0]);
  tell(&script, 0, 1, 4); /* the cursor goes back, too */
  script_later(&script, 1000);
  CHECK_INT(n_fetches(&script), 1);
  CHECK(strstr((const char *)last_batch(&script)->body, "\"prev_cursor\":4") !=
        NULL);
  tell(&script, 0, 2, 5);
  outcome_ok(&script, &outcomes[1]);
  CHECK_INT(n_fetches(&script), 2);
  finish(&script, 2);
}

TEST(P8_6_unknown_elements_are_ignored) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  answer(&script, 200,
         "{\"completions\":[{\"state\":\"expired\",\"request_id\":"
         "\"asample:0:0\"},{\"state\":\"finished\"},3,{\"state\":\"finished\","
         "\"request_id\":\"someone-else\"},{\"state\":\"finished\","
         "\"request_id\":\"asample:0:0\",\"new\":{}}],\"cursor\":1}");
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_fetches(&script), 1);
  finish(&script, 1);
}

/* Every poll is answered at once, with another cursor and nothing else. */
static void on_restless(mock_request_t *request, void *user) {
  int *n = user;
  char json[64];

  snprintf(json, sizeof(json), "{\"completions\":[],\"cursor\":%d}", ++*n);
  mock_reply_json(request, 200, json);
}

TEST(P8_6_a_moving_cursor_does_not_make_it_spin) {
  script_t script;
  int n = 0;

  open_default(&script);
  mock_on(script.mock, "POST", batch_path, on_restless, &n);
  start(&script, 0, 1);
  for (int i = 0; i < 300; i++) {
    tnk__context_advance(&script.service->root.context, 100);
    mock_turns(script.mock, 8);
  }
  CHECK(n >= 25 && n <= 40); /* in 30 s */
  mock_on(script.mock, "POST", batch_path, mock_hold, NULL);
  script_later(&script, 1000);
  tell(&script, 0, 1, 1000);
  outcome_ok(&script, &outcomes[0]);
  finish(&script, 1);
}

/* What may pass is asked again with the same cursor and the same reports. */
static void check_passing(int status) {
  script_t script;

  open_default(&script);
  start(&script, 0, 3);
  tell(&script, 0, 1, 6);
  tell(&script, 1, 1, 7);
  answer(&script, status, "{\"detail\":\"later\"}");
  script_later(&script, 2000);
  CHECK_INT(n_batches(&script), 4);
  check_body(last_batch(&script),
             "\"prev_cursor\":7,\"retrieved_request_ids\":[\"asample:0:0\","
             "\"asample:1:0\"]}");
  tell(&script, 2, 1, 8);
  outcome_ok(&script, &outcomes[2]);
  finish(&script, 3);
}

TEST(P8_6_errors_that_pass) {
  static const int passing[] = {400, 408, 409, 429, 500, 503};

  for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
    check_passing(passing[i]);
}

TEST(P8_6_a_lost_connection_passes) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_reset(last_batch(&script), NULL);
  turns(&script);
  script_later(&script, 1000);
  tell(&script, 0, 1, 1);
  outcome_ok(&script, &outcomes[0]);
  finish(&script, 1);
}

/* ---- The end of it ---- */

static void check_fallback(int status, const char *body) {
  script_t script;

  open_default(&script);
  start(&script, 0, 4);
  tell(&script, 0, 1, 1);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  answer(&script, status, body);
  /* All who wait ask for themselves at once. */
  CHECK_INT(n_fetches(&script), 4);
  CHECK_INT(script.n_warnings, 1);
  mock_on(script.mock, "POST", fetch_path, script_result, &script);
  for (size_t i = 1; i < 4; i++)
    script_result(mock_find(script.mock, "POST", fetch_path, i), &script);
  for (int i = 0; i < 4; i++)
    outcome_ok(&script, &outcomes[i]);
  /* And later samples too. */
  start(&script, 4, 1);
  outcome_ok(&script, &outcomes[4]);
  CHECK_INT(n_batches(&script), 2);
  finish(&script, 5);
}

TEST(P8_6_terminal_answers_fall_back_to_polls) {
  static const int statuses[] = {401, 403, 404, 405, 410, 422, 302};

  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
    check_fallback(statuses[i], "{\"detail\":\"no\"}");
}

TEST(P8_6_answers_without_meaning_fall_back_to_polls) {
  check_fallback(200, "{\"completions\":[]}");
  check_fallback(200, "<html>");
  check_fallback(200, "{\"completions\":{},\"cursor\":1}");
}

/* On the very first question a 404 says that there is no such call. */
TEST(P8_6_a_server_without_the_call_is_asked_once) {
  script_t script;

  open_default(&script);
  mock_json(script.mock, "POST", batch_path, 404, "{\"detail\":\"Not Found\"}");
  start(&script, 0, 3);
  script_sampler(&script);
  start(&script, 3, 3);
  for (int i = 0; i < 6; i++)
    outcome_ok(&script, &outcomes[i]);
  CHECK_INT(n_batches(&script), 1);
  finish(&script, 6);
}

TEST(P8_6_the_fourth_400_in_a_row_falls_back) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  for (int i = 0; i < 4; i++) {
    answer(&script, 400, "{\"detail\":\"what\"}");
    script_later(&script, 1000);
  }
  outcome_ok(&script, &outcomes[0]);
  CHECK_INT(n_batches(&script), 4);
  finish(&script, 1);
}

TEST(P8_6_closing_while_waiting_settles_all) {
  script_t script;

  open_default(&script);
  start(&script, 0, 5);
  tnk_sampling_close(script.sampling, NULL, NULL);
  turns(&script);
  for (int i = 0; i < 5; i++)
    CHECK_INT(outcomes[i].status, TNK_ECLOSED);
  finish(&script, 5);
}

static void on_first_closes(tnk_promise_t *promise, int status, void *user) {
  script_t *script = user;

  (void)promise;
  (void)status;
  tnk_sampling_close(script->sampling, NULL, NULL);
}

TEST(P8_6_closing_from_inside_a_result) {
  script_t script;

  open_default(&script);
  start(&script, 0, 3);
  tnk_then(tnk_promise_ref(promises[0]), on_first_closes, &script);
  tell(&script, 0, 2, 1);
  turns(&script);
  CHECK_INT(outcomes[0].status, TNK_OK);
  CHECK_INT(outcomes[2].status, TNK_ECLOSED);
  finish(&script, 3);
}

TEST(P8_6_closing_the_service_while_waiting) {
  script_t script;

  open_default(&script);
  start(&script, 0, 5);
  finish(&script, 5);
}
