/* SPDX-License-Identifier: MIT */
/* The session: coming up, staying alive, ending. */
#include "task/script.h"

static const char config_path[] = "/api/v1/client/config";
static const char dynamic_path[] = "/api/v1/client/dynamic_config";
static const char session_path[] = "/api/v1/create_session";
static const char beat_path[] = "/api/v1/session_heartbeat";
static const char finish_path[] = "/api/v1/sessions/session-0/finish";

static tnk_promise_t *make_sampler(script_t *script) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = "base";
  return tnk_service_create_sampling(script->service, &options);
}

static size_t n_beats(const script_t *script) {
  return mock_count(script->mock, "POST", beat_path);
}

/* ---- Coming up ---- */

TEST(nothing_is_sent_before_it_is_needed) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_turns(&script);
  CHECK_INT(mock_n_requests(script.mock), 0);
  CHECK(tnk_service_session_id(script.service) == NULL);
  /* Questions about the server need no session, nor its flags. */
  script_ok(&script, &outcome, tnk_service_health(script.service));
  outcome_drop(&outcome);
  script_ok(&script, &outcome, tnk_service_capabilities(script.service));
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(script.mock), 2);
  CHECK(tnk_service_session_id(script.service) == NULL);
  script_close(&script);
}

TEST(many_who_need_a_session_get_one) {
  script_t script;
  outcome_t outcomes[20];

  script_open(&script);
  for (int i = 0; i < 20; i++)
    outcome_of(&outcomes[i], make_sampler(&script));
  for (int i = 0; i < 20; i++)
    outcome_ok(&script, &outcomes[i]);
  CHECK_INT(mock_count(script.mock, "POST", config_path), 1);
  CHECK_INT(mock_count(script.mock, "POST", dynamic_path), 1);
  CHECK_INT(mock_count(script.mock, "POST", session_path), 1);
  CHECK_STR(tnk_service_session_id(script.service), "session-0");
  outcome_drop_all(outcomes, 20);
  script_close(&script);
}

TEST(a_start_up_call_that_fails_for_now_is_repeated) {
  static const char *const paths[] = {config_path, dynamic_path, session_path};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (int i = 0; i < 3; i++) {
    mock_json_once(script.mock, "POST", paths[i], 503, "{}");
    mock_once(script.mock, "POST", paths[i], mock_reset, NULL);
  }
  outcome_of(&outcome, make_sampler(&script));
  for (int i = 0; i < 20 && outcome.n_done == 0; i++)
    script_advance(&script, 2000);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_start_up_that_fails_is_tried_again_by_the_next) {
  static const char *const paths[] = {config_path, dynamic_path, session_path};
  static const struct {
    int status;
    const char *body;
    int code;
  } cases[] = {{401, "{\"detail\":\"no such key\"}", TNK_EAUTH},
               {403, "{}", TNK_EAUTH},
               {400, "{\"detail\":\"version too old\"}", TNK_EREQUEST},
               {200, "[1,2", TNK_EPROTO}};
  script_t script;
  outcome_t outcomes[2];

  script_open(&script);
  for (int i = 0; i < 3; i++) {
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
      mock_json_once(script.mock, "POST", paths[i], cases[k].status,
                     cases[k].body);
      outcome_of(&outcomes[0], make_sampler(&script));
      outcome_of(&outcomes[1], make_sampler(&script));
      outcome_fails(&script, &outcomes[0], cases[k].code);
      outcome_fails(&script, &outcomes[1], cases[k].code);
      CHECK_STR(outcomes[0].text, outcomes[1].text);
      CHECK(tnk_service_session_id(script.service) == NULL);
      outcome_drop_all(outcomes, 2);
    }
  }
  script_ok(&script, &outcomes[0], make_sampler(&script));
  outcome_drop(&outcomes[0]);
  /* What had succeeded was not asked for again: 4 + 1 each. */
  CHECK_INT(mock_count(script.mock, "POST", session_path), 5);
  script_close(&script);
}

TEST(an_answer_of_something_else_asks_about_the_base_url) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json_once(script.mock, "GET", "/api/v1/healthz", 200, "<html>");
  script_fails(&script, &outcome, tnk_service_health(script.service),
               TNK_EPROTO);
  CHECK(strstr(outcome.text, "base_url") != NULL);
  outcome_drop(&outcome);
  mock_json_once(script.mock, "POST", config_path, 200, "<html>");
  script_fails(&script, &outcome, make_sampler(&script), TNK_EPROTO);
  CHECK(strstr(outcome.text, "base_url") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_session_without_an_id_is_none) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json_once(script.mock, "POST", session_path, 200, "{}");
  script_fails(&script, &outcome, make_sampler(&script), TNK_EPROTO);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_wrong_base_url_is_named_where_no_session_can_be_made) {
  char sentence[200];
  script_t script;
  outcome_t outcome;

  script_open(&script);
  snprintf(sentence, sizeof(sentence),
           "create_session at %s: not found on the service (HTTP 404)",
           mock_url(script.mock));
  mock_json_once(script.mock, "POST", session_path, 404, "{}");
  script_fails(&script, &outcome, make_sampler(&script), TNK_ENOTFOUND);
  CHECK(strstr(outcome.text, sentence) == outcome.text);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(servers_without_configuration_have_the_defaults) {
  static const int statuses[] = {404, 405};

  for (int i = 0; i < 2; i++) {
    script_t script;
    outcome_t outcome;
    script_open(&script);
    mock_json(script.mock, "POST", config_path, statuses[i], "{}");
    mock_json(script.mock, "POST", dynamic_path, statuses[i], "{}");
    script_ok(&script, &outcome, make_sampler(&script));
    CHECK_INT(script.service->session.start.flags.train_chunk_items, 1024);
    CHECK_INT(script.service->session.start.dynamic.refresh_interval_s, 300);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(what_the_server_says_of_the_session_is_logged) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "POST", session_path, 200,
            "{\"session_id\":\"session-0\",\"info_message\":\"i\","
            "\"warning_message\":\"upgrade\\nsoon\",\"error_message\":\"e\"}");
  script_ok(&script, &outcome, make_sampler(&script));
  CHECK_INT(script.n_warnings, 1);
  CHECK_INT(script.n_errors, 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Staying alive ---- */

TEST(a_heartbeat_goes_out_every_10_s) {
  script_t script;

  script_open(&script);
  script_sampler(&script);
  script_advance(&script, 9999);
  CHECK_INT(n_beats(&script), 0);
  script_advance(&script, 1);
  CHECK_INT(n_beats(&script), 1);
  CHECK(strstr((const char *)mock_find(script.mock, "POST", beat_path, 0)->body,
               "\"session_id\":\"session-0\"") != NULL);
  for (size_t i = 2; i < 6; i++) {
    script_advance(&script, 10000);
    CHECK_INT(n_beats(&script), i);
  }
  script_close(&script);
}

TEST(heartbeats_are_not_held_up_by_polls_and_submissions) {
  enum { N = 100 };
  script_t script;
  outcome_t outcomes[N];

  script_open(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", "/api/v1/asample", mock_hold, NULL);
  for (int i = 0; i < N; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  script_turns(&script);
  script_advance(&script, 10000);
  CHECK_INT(n_beats(&script), 1);
  tnk_sampling_close(script.sampling, NULL, NULL);
  script_turns(&script);
  outcome_drop_all(outcomes, N);
  script_close(&script);
}

TEST(heartbeats_are_not_held_up_by_what_a_program_asks) {
  outcome_t outcomes[40];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_on(script.mock, NULL, "/api/v1/healthz", mock_hold, NULL);
  mock_on(script.mock, NULL, "/api/v1/get_server_capabilities", mock_hold,
          NULL);
  for (int i = 0; i < 40; i++)
    outcome_of(&outcomes[i], i % 2 ? tnk_service_health(script.service)
                                   : tnk_service_capabilities(script.service));
  script_turns(&script);
  script_advance(&script, 10000);
  CHECK_INT(n_beats(&script), 1);
  mock_json(script.mock, NULL, "/api/v1/healthz", 200, "{\"status\":\"ok\"}");
  mock_json(script.mock, NULL, "/api/v1/get_server_capabilities", 200,
            "{\"supported_models\":[],\"status\":\"ok\"}");
  mock_release(script.mock, 200, "{\"supported_models\":[],\"status\":\"ok\"}");
  for (int i = 0; i < 40; i++)
    outcome_ok(&script, &outcomes[i]);
  outcome_drop_all(outcomes, 40);
  script_close(&script);
}

TEST(a_heartbeat_does_not_keep_the_loop_alive) {
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", beat_path, mock_hold, NULL);
  script_advance(&script, 10000);
  CHECK_INT(n_beats(&script), 1);
  uv_run(&script.uv, UV_RUN_DEFAULT);
  script_close(&script);
}

TEST(silence_of_more_than_120_s_is_a_warning) {
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_json(script.mock, "POST", beat_path, 503, "{}");
  for (int i = 0; i < 12; i++)
    script_advance(&script, 10000);
  CHECK_INT(n_beats(&script), 12);
  CHECK_INT(script.n_warnings, 0);
  script_advance(&script, 10000);
  CHECK_INT(script.n_warnings, 1);
  CHECK(strstr(script.last_log, "session-0") != NULL);
  /* One good answer makes all well. */
  mock_json(script.mock, "POST", beat_path, 200, "{}");
  script_advance(&script, 10000);
  mock_json(script.mock, "POST", beat_path, 503, "{}");
  for (int i = 0; i < 12; i++)
    script_advance(&script, 10000);
  CHECK_INT(script.n_warnings, 1);
  script_close(&script);
}

TEST(a_session_that_has_ended_gets_no_heartbeats) {
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_json_once(script.mock, "POST", beat_path, 410, "{}");
  script_advance(&script, 10000);
  for (int i = 0; i < 5; i++)
    script_advance(&script, 10000);
  CHECK_INT(n_beats(&script), 1);
  CHECK_INT(script.n_warnings, 0);
  script_close(&script);
}

TEST(the_dynamic_configuration_is_fetched_again) {
  script_t script;

  script_open(&script);
  mock_json(script.mock, "POST", dynamic_path, 200,
            "{\"refresh_interval_sec\":20,\"sample_cancel_max_batch_size\":3}");
  script_sampler(&script);
  CHECK_INT(script.service->session.start.dynamic.sample_cancel_batch, 3);
  mock_json(script.mock, "POST", dynamic_path, 200,
            "{\"refresh_interval_sec\":60,\"sample_cancel_max_batch_size\":5}");
  script_advance(&script, 19999);
  CHECK_INT(mock_count(script.mock, "POST", dynamic_path), 1);
  script_advance(&script, 1);
  CHECK_INT(mock_count(script.mock, "POST", dynamic_path), 2);
  CHECK_INT(script.service->session.start.dynamic.sample_cancel_batch, 5);
  /* What cannot be read changes nothing. */
  mock_json(script.mock, "POST", dynamic_path, 200, "[");
  script_advance(&script, 60000);
  CHECK_INT(mock_count(script.mock, "POST", dynamic_path), 3);
  mock_json(script.mock, "POST", dynamic_path, 500, "{}");
  script_advance(&script, 60000);
  CHECK_INT(mock_count(script.mock, "POST", dynamic_path), 4);
  CHECK_INT(script.service->session.start.dynamic.sample_cancel_batch, 5);
  CHECK_INT(script.service->session.start.dynamic.refresh_interval_s, 60);
  script_close(&script);
}

/* ---- Ending ---- */

/* Close, with time standing still; 1 when that was enough. */
static int close_in_no_time(script_t *script) {
  tnk_service_close(script->service, script_closed, script);
  for (int i = 0; i < 10; i++)
    script_turns(script);
  return script->is_closed;
}

TEST(a_close_reports_the_end_of_the_session) {
  script_t script;
  const mock_request_t *finish;

  script_open(&script);
  script_sampler(&script);
  CHECK(close_in_no_time(&script));
  finish = mock_find(script.mock, "POST", finish_path, 0);
  CHECK(finish != NULL);
  CHECK(strstr((const char *)finish->body, "\"success\"") != NULL);
  script_end(&script);
}

TEST(servers_may_not_know_of_ends) {
  static const int statuses[] = {404, 405, 500, 401};

  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
    script_t script;
    script_open(&script);
    mock_json(script.mock, "POST", finish_path, statuses[i],
              "{\"detail\":\"Not Found\"}");
    script_sampler(&script);
    script.log_text = "finish: "; /* a failure is told, and 404 is none */
    CHECK(close_in_no_time(&script));
    CHECK_INT(mock_count(script.mock, "POST", finish_path), 1);
    CHECK_INT(script.n_warnings + script.n_errors, 0);
    CHECK_INT(script.n_log_texts, statuses[i] < 404 || statuses[i] > 405);
    script_end(&script);
  }
}

TEST(a_close_waits_two_seconds_and_no_longer) {
  script_t script;

  script_open(&script);
  mock_on(script.mock, "POST", finish_path, mock_hold, NULL);
  script_sampler(&script);
  CHECK(!close_in_no_time(&script));
  script_advance(&script, 1999);
  CHECK(!script.is_closed);
  tnk__context_advance(&script.service->root.context, 1);
  for (int i = 0; i < 10; i++)
    script_turns(&script);
  CHECK(script.is_closed);
  script_end(&script);
}

TEST(a_close_without_a_session_reports_nothing) {
  script_t script;

  script_open(&script);
  CHECK(close_in_no_time(&script));
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_end(&script);
}

TEST(a_session_that_the_server_ended_is_not_reported) {
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_json_once(script.mock, "POST", beat_path, 410, "{}");
  script_advance(&script, 10000);
  CHECK(close_in_no_time(&script));
  CHECK_INT(mock_count(script.mock, "POST", finish_path), 0);
  script_end(&script);
}

TEST(S1_7_closed_while_starting_up) {
  static const char *const paths[] = {config_path, dynamic_path, session_path};

  for (int i = 0; i < 3; i++) {
    script_t script;
    outcome_t outcomes[2];
    script_open(&script);
    mock_on(script.mock, "POST", paths[i], mock_hold, NULL);
    outcome_of(&outcomes[0], make_sampler(&script));
    outcome_of(&outcomes[1], make_sampler(&script));
    script_turns(&script);
    CHECK_INT(mock_count(script.mock, "POST", paths[i]), 1);
    CHECK(close_in_no_time(&script));
    CHECK_INT(outcomes[0].status, TNK_ECLOSED);
    CHECK_INT(outcomes[1].status, TNK_ECLOSED);
    outcome_drop_all(outcomes, 2);
    script_end(&script);
  }
}

TEST(S3_6c_a_start_up_that_everybody_gave_up_serves_the_next) {
  script_t script;
  script_held_t held = {.n = 0};
  outcome_t outcomes[2];
  tnk_promise_t *promise;

  script_open(&script);
  mock_once(script.mock, "POST", session_path, script_hold, &held);
  promise = make_sampler(&script);
  outcome_of(&outcomes[0], tnk_promise_ref(promise));
  mock_wait_flag(script.mock, &held.n, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcomes[0], TNK_ECANCELED);
  mock_reply_json(held.requests[0], 200, "{\"session_id\":\"session-0\"}");
  script_turns(&script);
  script_ok(&script, &outcomes[1], make_sampler(&script));
  CHECK_INT(mock_count(script.mock, "POST", session_path), 1);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}
