/* SPDX-License-Identifier: MIT */
/* Sessions, samplers and traces, as the service keeps them. */
#include "task/rest.h"

#define SESSIONS "/api/v1/sessions"
#define SEARCH "/api/v1/sessions/search"

static const tnk_session_t *session_at(const outcome_t *outcome, size_t i) {
  return tnk_page_session(tnk_promise_page(outcome->promise), i);
}

TEST(N1_a_session_is_got) {
  const tnk_session_t *session;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", SESSIONS "/s-1", 200,
            "{\"training_run_ids\":[\"a:1\",7],\"sampler_ids\":[\"x\"],"
            "\"user_metadata\":{\"k\":\"v\"},\"display_name\":\"n\"}");
  script_ok(&script, &outcome,
            tnk_rest_get_session(script.service, "s-1", TNK_SCOPE_ACCESSIBLE));
  rest_check(&script, "GET", SESSIONS "/s-1?access_scope=accessible",
             "RestClient.get_session", NULL);
  session = session_at(&outcome, 0);
  CHECK_STR(session->id, "s-1");
  CHECK_STR(session->display_name, "n");
  CHECK_INT(session->n_run_ids, 2);
  CHECK_STR(session->run_ids[0], "a:1");
  CHECK_STR(session->run_ids[1], "7");
  CHECK_INT(session->n_sampler_ids, 1);
  CHECK_STR(session->sampler_ids[0], "x");
  CHECK_STR(session->user_metadata[0].value, "v");
  CHECK(session->owner == NULL && session->status == NULL);
  CHECK_INT(session->n_checkpoints, -1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* So many sessions, "s<number>". */
static void serve(mock_request_t *request, void *user) {
  const int total = *(const int *)user;
  const int from = atoi(strstr(request->target, "offset=") + 7);
  char text[1000];
  size_t n = (size_t)snprintf(text, sizeof(text), "{\"sessions\":[");

  for (int i = from; i < total && i < from + 3; i++)
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"s%d\"",
                          i > from ? "," : "", i);
  snprintf(text + n, sizeof(text) - n, "]}");
  mock_reply_json(request, 200, text);
}

/* There is no total: the list goes on until a page is empty. */
TEST(N1_P9_11_sessions_are_listed_to_an_empty_page) {
  int total = 6;
  script_t script;
  outcome_t outcome;
  int n = 0;

  script_open(&script);
  mock_on(script.mock, "GET", SESSIONS, serve, &total);
  script_ok(&script, &outcome, tnk_rest_list_sessions(script.service, NULL));
  CHECK_STR(rest_last(&script)->target,
            SESSIONS "?limit=20&offset=0&access_scope=owned");
  while (!tnk_page_is_last(tnk_promise_page(outcome.promise))) {
    outcome_t next;

    n += (int)tnk_page_count(tnk_promise_page(outcome.promise));
    CHECK_INT(tnk_page_total(tnk_promise_page(outcome.promise)), -1);
    CHECK_INT(session_at(&outcome, 0)->id[0], 's');
    CHECK_INT(session_at(&outcome, 0)->checkpoint_bytes, -1);
    outcome_of(&next, tnk_rest_next_page(script.service,
                                         tnk_promise_page(outcome.promise)));
    outcome_drop(&outcome);
    outcome_ok(&script, &next);
    outcome = next;
  }
  CHECK_INT(n, 6);
  CHECK_INT(mock_count(script.mock, "GET", SESSIONS), 3);
  CHECK_INT(tnk_page_count(tnk_promise_page(outcome.promise)), 0);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Searches ---- */

#define SUMMARY                                                                \
  "\"owner\":\"o\",\"project_id\":\"p\",\"created_at\":"                       \
  "\"1970-01-01T00:00:01.000002Z\",\"checkpoints_count\":3"
#define CURSOR                                                                 \
  "{\"last_created_at\":\"2026-01-02T03:04:05.000678+02:00\","                 \
  "\"last_session_id\":\"s1\"}"

TEST(sessions_are_searched) {
  const tnk_session_t *session;
  script_t script;
  outcome_t outcome;
  outcome_t next;

  script_open(&script);
  mock_json(script.mock, "POST", SEARCH, 200,
            "{\"sessions\":[{\"session_id\":\"s2\"," SUMMARY
            ",\"status\":null}],\"next_cursor\":null}");
  mock_json_once(
      script.mock, "POST", SEARCH, 200,
      "{\"sessions\":[{\"session_id\":\"s1\"," SUMMARY
      ",\"checkpoint_storage_bytes\":9,\"status\":{\"type\":\"failed\","
      "\"category\":\"of tomorrow\",\"message\":\"m\",\"reason\":{\"type\":"
      "\"request\",\"request_id\":\"r\"}}}],\"next_cursor\":" CURSOR "}");
  script_ok(&script, &outcome, tnk_rest_search_sessions(script.service, NULL));
  rest_check(&script, "POST", SEARCH, "RestClient.search_sessions",
             "{\"user_metadata\":{},\"owner\":{\"type\":\"own\"},\"limit\":"
             "50}");
  session = session_at(&outcome, 0);
  CHECK_STR(session->id, "s1");
  CHECK_STR(session->owner, "o");
  CHECK_STR(session->project_id, "p");
  CHECK_INT(session->created_us, 1000002);
  CHECK_INT(session->n_checkpoints, 3);
  CHECK_INT(session->checkpoint_bytes, 9);
  CHECK_STR(session->status->type, "failed");
  CHECK_STR(session->status->category, "of tomorrow");
  CHECK_STR(session->status->message, "m");
  CHECK_STR(session->status->reason,
            "{\"type\":\"request\",\"request_id\":\"r\"}");
  CHECK(!tnk_page_is_last(tnk_promise_page(outcome.promise)));
  script_ok(
      &script, &next,
      tnk_rest_next_page(script.service, tnk_promise_page(outcome.promise)));
  rest_check(&script, "POST", SEARCH, "RestClient.search_sessions",
             "{\"user_metadata\":{},\"owner\":{\"type\":\"own\"},\"limit\":50,"
             "\"cursor\":" CURSOR "}");
  CHECK_STR(session_at(&next, 0)->id, "s2");
  CHECK(session_at(&next, 0)->status == NULL);
  CHECK(tnk_page_is_last(tnk_promise_page(next.promise)));
  outcome_drop(&outcome);
  outcome_drop(&next);
  script_close(&script);
}

TEST(a_search_with_all_that_it_can_have) {
  static const char *const projects[] = {"p1", "p2"};
  static const char *const owners[] = {"urn:u"};
  static const tnk_pair_t pairs[] = {{"k", "v\n"}};
  tnk_search_options_t options = TNK_SEARCH_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "POST", SEARCH, 200, "{\"sessions\":[]}");
  options.session_id = "s/?";
  options.display_name = "two words";
  options.project_ids = projects;
  options.n_project_ids = 2;
  options.user_metadata = pairs;
  options.n_user_metadata = 1;
  options.owner = TNK_OWNER_USERS;
  options.owner_urns = owners;
  options.n_owner_urns = 1;
  options.states = TNK_SESSION_ACTIVE | TNK_SESSION_CANCELED |
                   TNK_SESSION_FAILED | TNK_SESSION_SUCCESS |
                   TNK_SESSION_INTERRUPTED;
  options.limit = 200;
  script_ok(&script, &outcome,
            tnk_rest_search_sessions(script.service, &options));
  rest_check(
      &script, "POST", SEARCH, "RestClient.search_sessions",
      "{\"session_id\":\"s/?\",\"project_ids\":[\"p1\",\"p2\"],"
      "\"user_metadata\":{\"k\":\"v\\n\"},\"display_name\":\"two words\","
      "\"owner\":{\"type\":\"user\",\"owner_urns\":[\"urn:u\"]},\"statuses\":["
      "{\"type\":\"active\"},{\"type\":\"cancelled\"},{\"type\":\"failed\"},"
      "{\"type\":\"client_finished\",\"reasons\":[\"success\","
      "\"interrupted\"]}],\"limit\":200}");
  outcome_drop(&outcome);
  options = (tnk_search_options_t)TNK_SEARCH_OPTIONS_INIT;
  options.owner = TNK_OWNER_ANY;
  options.states =
      TNK_SESSION_SUCCESS | TNK_SESSION_ERRORED | TNK_SESSION_INTERRUPTED;
  script_ok(&script, &outcome,
            tnk_rest_search_sessions(script.service, &options));
  rest_check(&script, "POST", SEARCH, "RestClient.search_sessions",
             "{\"user_metadata\":{},\"owner\":{\"type\":\"accessible\"},"
             "\"statuses\":[{\"type\":\"client_finished\"}],\"limit\":50}");
  outcome_drop(&outcome);
  script_close(&script);
}

static void search_refused(script_t *script,
                           const tnk_search_options_t *options,
                           const char *word) {
  outcome_t outcome;

  script_fails(script, &outcome,
               tnk_rest_search_sessions(script->service, options), TNK_EINVAL);
  if (strstr(outcome.text, word) == NULL)
    test_fail(__FILE__, __LINE__, "%s, expected %s", outcome.text, word);
  outcome_drop(&outcome);
}

TEST(a_search_that_is_none_is_not_sent) {
  static const char *const nothing[] = {NULL};
  static const char *const many[11] = {"u", "u", "u", "u", "u", "u",
                                       "u", "u", "u", "u", "u"};
  static const tnk_pair_t pairs[] = {{"k", NULL}};
  const tnk_search_options_t blank = TNK_SEARCH_OPTIONS_INIT;
  tnk_search_options_t options = blank;
  script_t script;

  script_open(&script);
  options.limit = 201;
  search_refused(&script, &options, "limit is 201");
  options = blank;
  options.states = 64;
  search_refused(&script, &options, "states is 64");
  options = blank;
  options.owner = (tnk_owner_t)3;
  search_refused(&script, &options, "owner is 3");
  options = blank;
  options.owner = TNK_OWNER_USERS;
  search_refused(&script, &options, "owner_urns has 0 texts");
  options.owner_urns = many;
  options.n_owner_urns = 11;
  search_refused(&script, &options, "owner_urns has 11 texts");
  options.owner = TNK_OWNER_SELF;
  options.n_owner_urns = 1;
  search_refused(&script, &options, "owner_urns has 1 texts");
  options = blank;
  options.display_name = "";
  search_refused(&script, &options, "display_name is empty");
  options = blank;
  options.project_ids = nothing;
  options.n_project_ids = 1;
  search_refused(&script, &options, "project_ids is empty");
  options.project_ids = NULL;
  search_refused(&script, &options, "project_ids is NULL");
  options = blank;
  options.user_metadata = pairs;
  options.n_user_metadata = 1;
  search_refused(&script, &options, "user_metadata");
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* A server that gives the same cursor again and again. */
TEST(P9_11_a_cursor_that_leads_nowhere_ends_a_search) {
  script_t script;
  outcome_t outcome;
  outcome_t next;

  script_open(&script);
  mock_json(script.mock, "POST", SEARCH, 200,
            "{\"sessions\":[],\"next_cursor\":" CURSOR "}");
  script_ok(&script, &outcome, tnk_rest_search_sessions(script.service, NULL));
  CHECK(!tnk_page_is_last(tnk_promise_page(outcome.promise)));
  script_ok(
      &script, &next,
      tnk_rest_next_page(script.service, tnk_promise_page(outcome.promise)));
  CHECK(tnk_page_is_last(tnk_promise_page(next.promise)));
  outcome_drop(&outcome);
  outcome_drop(&next);
  script_close(&script);
}

TEST(a_search_is_unsupported_where_there_is_no_such_call) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_fails(&script, &outcome,
               tnk_rest_search_sessions(script.service, NULL),
               TNK_EUNSUPPORTED);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- The rest ---- */

TEST(N14_a_session_is_moved) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "PUT", SESSIONS "/s-1/project", 200, "{}");
  script_ok(&script, &outcome,
            tnk_rest_move_session(script.service, "s-1", "p/2"));
  rest_check(&script, "PUT", SESSIONS "/s-1/project",
             "RestClient.assign_session_project", "{\"project_id\":\"p/2\"}");
  outcome_drop(&outcome);
  script_fails(&script, &outcome,
               tnk_rest_move_session(script.service, "a/b", "p"), TNK_EINVAL);
  CHECK(strstr(outcome.text, "session_id") != NULL);
  outcome_drop(&outcome);
  script_fails(&script, &outcome,
               tnk_rest_move_session(script.service, "a", NULL), TNK_EINVAL);
  CHECK(strstr(outcome.text, "project_id") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N11_a_sampler_is_got) {
  const tnk_sampler_t *sampler;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", "/api/v1/samplers/a:b", 200,
            "{\"sampler_id\":\"a:b\",\"base_model\":\"m\",\"model_path\":"
            "\"tinker://r/sampler_weights/x\"}");
  script_ok(&script, &outcome, tnk_rest_get_sampler(script.service, "a:b"));
  rest_check(&script, "GET", "/api/v1/samplers/a:b", "RestClient.get_sampler",
             NULL);
  sampler = tnk_page_sampler(tnk_promise_page(outcome.promise), 0);
  CHECK_STR(sampler->id, "a:b");
  CHECK_STR(sampler->base_model, "m");
  CHECK_STR(sampler->model_path, "tinker://r/sampler_weights/x");
  outcome_drop(&outcome);
  script_close(&script);
}

#define TRACE SESSIONS "/s-1/trace_export"

TEST(N13_a_trace_is_waited_for) {
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;
  char text[200];

  script_open(&script);
  mock_json(script.mock, "GET", TRACE, 200,
            "{\"status\":\"ready\",\"url\":\"https://s/canary-trace\"}");
  mock_json_once(script.mock, "GET", TRACE, 200, "{\"status\":\"pending\"}");
  mock_json_once(script.mock, "GET", TRACE, 200, "{\"status\":\"queued\"}");
  script.log_text = "making the trace";
  promise = tnk_rest_export_trace(script.service, "s-1");
  tnk_promise_ref(promise);
  outcome_of(&outcome, promise);
  script_later(&script, 0);
  CHECK_INT(mock_count(script.mock, "GET", TRACE), 1);
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK_STR(text, "export_trace: waits for the next poll");
  script_later(&script, 4999);
  CHECK_INT(mock_count(script.mock, "GET", TRACE), 1);
  script_later(&script, 1);
  CHECK_INT(mock_count(script.mock, "GET", TRACE), 2);
  CHECK_INT(outcome.n_done, 0);
  script_later(&script, 5000);
  outcome_ok(&script, &outcome);
  CHECK_STR(tnk_promise_path(outcome.promise), "https://s/canary-trace");
  CHECK_INT(script.n_log_texts, 1);
  outcome_drop(&outcome);
  tnk_promise_unref(promise);
  script_close(&script);
}

TEST(N13_a_trace_that_fails) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json_once(script.mock, "GET", TRACE, 200,
                 "{\"status\":\"failed\",\"error\":\"no events\"}");
  script_fails(&script, &outcome, tnk_rest_export_trace(script.service, "s-1"),
               TNK_EFAILED);
  CHECK(strstr(outcome.text, "no events") != NULL);
  outcome_drop(&outcome);
  mock_json_once(script.mock, "GET", TRACE, 200,
                 "{\"status\":\"ready\",\"url\":null}");
  script_fails(&script, &outcome, tnk_rest_export_trace(script.service, "s-1"),
               TNK_EPROTO);
  CHECK(strstr(outcome.text, "\"url\"") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* Between two questions nothing is under way but a timer. */
TEST(N13_waiting_for_a_trace_can_be_canceled_and_closed) {
  script_t script;
  outcome_t outcome;
  outcome_t other;
  tnk_promise_t *promise;

  script_open(&script);
  mock_json(script.mock, "GET", TRACE, 200, "{\"status\":\"pending\"}");
  promise = tnk_rest_export_trace(script.service, "s-1");
  tnk_promise_ref(promise);
  outcome_of(&outcome, promise);
  outcome_of(&other, tnk_rest_export_trace(script.service, "s-1"));
  script_later(&script, 0);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  outcome_drop(&outcome);
  tnk_service_close(script.service, script_closed, &script);
  outcome_fails(&script, &other, TNK_ECLOSED);
  outcome_drop(&other);
  script_end(&script);
}

static int search_without(long n) {
  script_t script;
  outcome_t outcome;
  outcome_t next;
  int did_fail;

  script_open(&script);
  mock_json(script.mock, "POST", SEARCH, 200,
            "{\"sessions\":[{\"session_id\":\"s1\"," SUMMARY
            "}],\"next_cursor\":" CURSOR "}");
  script_ok(&script, &outcome, tnk_rest_search_sessions(script.service, NULL));
  test_alloc_fail_at(n);
  outcome_of(&next, tnk_rest_next_page(script.service,
                                       tnk_promise_page(outcome.promise)));
  for (int i = 0; i < 100 && next.n_done == 0; i++)
    script_later(&script, 1000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK(next.status == TNK_OK || next.status == TNK_ENOMEM);
  outcome_drop(&outcome);
  outcome_drop(&next);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_searches_without_memory, 60) {
  for (long n = 0; search_without(n); n++)
    CHECK(n < 500);
}
