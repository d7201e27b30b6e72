/* SPDX-License-Identifier: MIT */
/*
 * What a service keeps, asked for and changed: the calls of the table of the
 * protocol, how lists go on, and what is repeated.
 */
#include "task/script.h"
#include "tnk/rest.h"

#define RUNS "/api/v1/training_runs"
#define CHECKPOINTS "/api/v1/checkpoints"

static tnk_promise_t *list_runs(script_t *script) {
  return tnk_rest_list_runs(script->service, NULL);
}

/* The last request that is no part of the start-up. */
static const mock_request_t *last_of(const script_t *script) {
  return mock_request(script->mock, mock_n_requests(script->mock) - 1);
}

static void check_sent(const script_t *script, const char *method,
                       const char *target, const char *sdk_method) {
  const mock_request_t *request = last_of(script);

  CHECK_STR(request->method, method);
  CHECK_STR(request->target, target);
  CHECK_STR(mock_header(request, "x-sdk-method"), sdk_method);
  CHECK_STR(mock_header(request, "x-api-key"), script_key());
}

/* A page of checkpoints "c<from>" to "c<to - 1>" of a list of `total`. */
static void reply_checkpoints(mock_request_t *request, int from, int to,
                              int total) {
  static char text[300000];
  size_t n = 0;

  n += (size_t)snprintf(text, sizeof(text), "{\"checkpoints\":[");
  for (int i = from; i < to; i++)
    n += (size_t)snprintf(
        text + n, sizeof(text) - n,
        "%s{\"checkpoint_id\":\"weights/c%d\",\"checkpoint_type\":\"training\","
        "\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":"
        "\"tinker://r/weights/c%d\"}",
        i > from ? "," : "", i, i);
  snprintf(text + n, sizeof(text) - n,
           "],\"cursor\":{\"offset\":%d,\"limit\":9,\"total_count\":%d}}", from,
           total);
  mock_reply_json(request, 200, text);
}

/* A list of so many, of which the server gives at most `cap` at a time. */
typedef struct {
  int total;
  int cap;
  int n_added; /* in front, while it is read */
} store_t;

static int number_in(const char *target, const char *key) {
  const char *at = strstr(target, key);

  CHECK(at != NULL);
  return atoi(at + strlen(key));
}

static void serve(mock_request_t *request, void *user) {
  store_t *store = user;
  int offset = number_in(request->target, "offset=");
  int limit = number_in(request->target, "limit=");
  int to;

  if (limit > store->cap)
    limit = store->cap;
  to = offset + limit < store->total ? offset + limit : store->total;
  reply_checkpoints(request, offset - store->n_added, to - store->n_added,
                    store->total);
}

/* Walk through all pages; `sum` receives the numbers of the checkpoints. */
static int walk(script_t *script, const tnk_list_options_t *options,
                long *sum) {
  outcome_t outcome;
  int n = 0;

  *sum = 0;
  script_ok(script, &outcome,
            tnk_rest_list_checkpoints(script->service, options));
  for (;;) {
    const tnk_page_t *page = tnk_promise_page(outcome.promise);
    outcome_t next;

    for (size_t i = 0; i < tnk_page_count(page); i++, n++)
      *sum += atol(tnk_page_checkpoint(page, i)->id + strlen("weights/c"));
    if (tnk_page_is_last(page))
      break;
    outcome_of(&next, tnk_rest_next_page(script->service, page));
    outcome_drop(&outcome);
    outcome_ok(script, &next);
    outcome = next;
  }
  outcome_drop(&outcome);
  return n;
}

/* ---- The calls ---- */

TEST(N3_runs_are_listed) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", RUNS, 200,
            "{\"training_runs\":[{\"training_run_id\":\"a:b\",\"base_model\":"
            "\"m\",\"model_owner\":\"o\",\"is_lora\":true,"
            "\"last_request_time\":\"2026-01-02\"}],\"cursor\":{\"offset\":0,"
            "\"limit\":20,\"total_count\":1}}");
  script_ok(&script, &outcome, list_runs(&script));
  check_sent(&script, "GET", RUNS "?limit=20&offset=0&access_scope=owned",
             "RestClient.list_training_runs");
  CHECK_STR(tnk_page_run(tnk_promise_page(outcome.promise), 0)->id, "a:b");
  outcome_drop(&outcome);
  options.limit = 7;
  options.offset = 3;
  options.scope = TNK_SCOPE_ACCESSIBLE;
  options.project_id = "p/1";
  script_ok(&script, &outcome, tnk_rest_list_runs(script.service, &options));
  check_sent(&script, "GET",
             RUNS "?limit=7&offset=3&access_scope=accessible&project_id=p%2F1",
             "RestClient.list_training_runs");
  CHECK_INT(tnk_page_end(tnk_promise_page(outcome.promise)), 4);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N2_a_run_is_got) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", RUNS "/a:b", 200,
            "{\"training_run_id\":\"a:b\",\"base_model\":\"m\",\"model_owner\":"
            "\"o\",\"is_lora\":true,\"last_request_time\":\"2026-01-02\"}");
  script_ok(&script, &outcome,
            tnk_rest_get_run(script.service, "a:b", TNK_SCOPE_OWNED));
  check_sent(&script, "GET", RUNS "/a:b?access_scope=owned",
             "RestClient.get_training_run");
  CHECK_STR(tnk_page_run(tnk_promise_page(outcome.promise), 0)->id, "a:b");
  outcome_drop(&outcome);
  script_fails(&script, &outcome,
               tnk_rest_get_run(script.service, "c", TNK_SCOPE_OWNED),
               TNK_ENOTFOUND);
  CHECK(strncmp(outcome.text, "get_run: ", 9) == 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N5_checkpoints_of_a_run_are_listed) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", RUNS "/r/checkpoints", 200,
            "{\"checkpoints\":[],\"cursor\":null}");
  script_ok(&script, &outcome,
            tnk_rest_list_run_checkpoints(script.service, "r"));
  check_sent(&script, "GET", RUNS "/r/checkpoints",
             "RestClient.list_checkpoints");
  CHECK_INT(tnk_page_count(tnk_promise_page(outcome.promise)), 0);
  CHECK_INT(tnk_page_is_last(tnk_promise_page(outcome.promise)), 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N6_own_checkpoints_are_listed) {
  store_t store = {.total = 3, .cap = 100};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  script_ok(&script, &outcome, tnk_rest_list_checkpoints(script.service, NULL));
  check_sent(&script, "GET", CHECKPOINTS "?limit=100&offset=0",
             "RestClient.list_user_checkpoints");
  CHECK_INT(tnk_page_count(tnk_promise_page(outcome.promise)), 3);
  CHECK_INT(tnk_page_total(tnk_promise_page(outcome.promise)), 3);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N17_no_session_is_made) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", RUNS, 200,
            "{\"training_runs\":[],\"cursor\":{\"total_count\":0}}");
  script_ok(&script, &outcome, list_runs(&script));
  outcome_drop(&outcome);
  script_advance(&script, 60000); /* no heartbeat either */
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_session"), 0);
  CHECK_INT(mock_n_requests(script.mock), 1);
  script_close(&script);
  CHECK(tnk_service_session_id(NULL) == NULL);
}

/* ---- Lists ---- */

TEST(P9_11_a_list_is_walked_to_its_end) {
  store_t store = {.total = 2500, .cap = 1000};
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  script_t script;
  long sum;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  options.limit = 1000;
  CHECK_INT(walk(&script, &options, &sum), 2500);
  CHECK_INT(sum, 2500L * 2499 / 2);
  CHECK_INT(mock_count(script.mock, "GET", CHECKPOINTS), 3);
  script_close(&script);
}

/* The server gives fewer than it was asked for, and says so in no way. */
TEST(P9_11_a_server_that_caps_pages_is_walked_to_its_end) {
  store_t store = {.total = 101, .cap = 10};
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  script_t script;
  long sum;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  options.limit = 1000;
  CHECK_INT(walk(&script, &options, &sum), 101);
  CHECK_INT(sum, 101 * 100 / 2);
  CHECK_STR(last_of(&script)->target, CHECKPOINTS "?limit=1000&offset=100");
  script_close(&script);
}

static void serve_growing(mock_request_t *request, void *user) {
  store_t *store = user;

  serve(request, user);
  store->n_added += 3; /* before the next page is asked for */
  store->total += 3;
}

TEST(P9_11_what_moves_while_it_is_read_comes_once) {
  store_t store = {.total = 40, .cap = 10};
  script_t script;
  long sum;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve_growing, &store);
  CHECK_INT(walk(&script, NULL, &sum), 40);
  CHECK_INT(sum, 40 * 39 / 2);
  script_close(&script);
}

static void serve_liar(mock_request_t *request, void *user) {
  (void)user;
  reply_checkpoints(request, 0, strstr(request->target, "offset=0") ? 2 : 0,
                    1000000);
}

/* The total may be any number: an empty page ends the list. */
TEST(P9_11_an_empty_page_ends_the_list) {
  script_t script;
  long sum;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve_liar, NULL);
  CHECK_INT(walk(&script, NULL, &sum), 2);
  CHECK_INT(mock_count(script.mock, "GET", CHECKPOINTS), 2);
  script_close(&script);
}

TEST(nothing_follows_the_last_page) {
  store_t store = {.total = 1, .cap = 10};
  script_t script;
  outcome_t outcome;
  outcome_t next;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  script_ok(&script, &outcome, tnk_rest_list_checkpoints(script.service, NULL));
  script_fails(
      &script, &next,
      tnk_rest_next_page(script.service, tnk_promise_page(outcome.promise)),
      TNK_EINVAL);
  CHECK_STR(next.text, "next_page: nothing follows the last page");
  outcome_drop(&next);
  script_fails(&script, &next, tnk_rest_next_page(script.service, NULL),
               TNK_EINVAL);
  outcome_drop(&next);
  outcome_drop(&outcome);
  script_close(&script);
}

/* The memory of a walk does not grow with the list. */
TEST_LIMIT(P9_11_a_walk_takes_bounded_memory, 30) {
  store_t store = {.total = 1000, .cap = 100};
  script_t script;
  size_t short_peak;
  long sum;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  walk(&script, NULL, &sum);
  test_alloc_reset_peak();
  walk(&script, NULL, &sum);
  short_peak = test_alloc_peak();
  store.total = 20000;
  test_alloc_reset_peak();
  CHECK_INT(walk(&script, NULL, &sum), 20000);
  CHECK(test_alloc_peak() < short_peak + 16384);
  script_close(&script);
}

/* ---- Arguments ---- */

TEST(P9_13_an_id_that_would_change_the_address_is_not_sent) {
  static const char *const bad[] = {NULL,  "",    ".",    "..",  "a/b", "a?b",
                                    "a#b", "a%b", "a\\b", "a b", "a\tb"};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    script_fails(&script, &outcome,
                 tnk_rest_get_run(script.service, bad[i], TNK_SCOPE_OWNED),
                 TNK_EINVAL);
    CHECK(strncmp(outcome.text, "get_run: run_id ", 16) == 0);
    outcome_drop(&outcome);
    script_fails(&script, &outcome,
                 tnk_rest_list_run_checkpoints(script.service, bad[i]),
                 TNK_EINVAL);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

TEST(options_that_a_list_does_not_have_are_refused) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  options.project_id = "p";
  script_fails(&script, &outcome,
               tnk_rest_list_checkpoints(script.service, &options), TNK_EINVAL);
  outcome_drop(&outcome);
  options.project_id = "";
  script_fails(&script, &outcome, tnk_rest_list_runs(script.service, &options),
               TNK_EINVAL);
  outcome_drop(&outcome);
  options.project_id = NULL;
  options.scope = TNK_SCOPE_ACCESSIBLE;
  script_fails(&script, &outcome,
               tnk_rest_list_checkpoints(script.service, &options), TNK_EINVAL);
  outcome_drop(&outcome);
  options.scope = (tnk_scope_t)7;
  script_fails(&script, &outcome, tnk_rest_list_runs(script.service, &options),
               TNK_EINVAL);
  CHECK_STR(outcome.text, "list_runs: scope is 7, which is none");
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* ---- Failures ---- */

TEST(P9_12_questions_are_asked_again) {
  static const int again[] = {408, 409, 429, 500, 503};
  static const int once[] = {400, 401, 402, 403, 404, 422};
  store_t store = {.total = 1, .cap = 1};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
    mock_json_once(script.mock, "GET", CHECKPOINTS, again[i], "{}");
    outcome_of(&outcome, tnk_rest_list_checkpoints(script.service, NULL));
    script_later(&script, 0);
    script_later(&script, 20000);
    outcome_ok(&script, &outcome);
    outcome_drop(&outcome);
  }
  for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
    size_t n = mock_count(script.mock, "GET", CHECKPOINTS);

    mock_json_once(script.mock, "GET", CHECKPOINTS, once[i], "{}");
    outcome_of(&outcome, tnk_rest_list_checkpoints(script.service, NULL));
    outcome_wait(&script, &outcome);
    CHECK(outcome.status != TNK_OK);
    CHECK_INT(mock_count(script.mock, "GET", CHECKPOINTS), n + 1);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(an_answer_that_means_nothing_names_the_member) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json_once(script.mock, "GET", RUNS, 200, "{\"training_runs\":[{}]}");
  mock_json_once(script.mock, "GET", RUNS, 200, "<html>");
  script_fails(&script, &outcome, list_runs(&script), TNK_EPROTO);
  CHECK(strstr(outcome.text, "\"training_run_id\"") != NULL);
  outcome_drop(&outcome);
  script_fails(&script, &outcome, list_runs(&script), TNK_EPROTO);
  CHECK(strstr(outcome.text, "base_url") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(lists_can_be_canceled_and_closed) {
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;

  script_open(&script);
  mock_on(script.mock, "GET", RUNS, mock_hold, NULL);
  promise = list_runs(&script);
  tnk_promise_ref(promise);
  outcome_of(&outcome, promise);
  mock_wait(script.mock, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  outcome_drop(&outcome);
  outcome_of(&outcome, list_runs(&script));
  mock_wait(script.mock, 2);
  tnk_service_close(script.service, script_closed, &script);
  outcome_fails(&script, &outcome, TNK_ECLOSED);
  outcome_drop(&outcome);
  script_end(&script);
}

/* A page outlives its service. */
TEST(a_page_outlives_its_service) {
  store_t store = {.total = 20, .cap = 10};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  script_ok(&script, &outcome, tnk_rest_list_checkpoints(script.service, NULL));
  script_close(&script);
  CHECK_STR(tnk_page_checkpoint(tnk_promise_page(outcome.promise), 9)->id,
            "weights/c9");
  outcome_drop(&outcome);
}

/* ---- Memory ---- */

static int walk_without(long n) {
  store_t store = {.total = 4, .cap = 2};
  script_t script;
  outcome_t outcome;
  outcome_t next;
  int did_fail;

  script_open(&script);
  mock_on(script.mock, "GET", CHECKPOINTS, serve, &store);
  script_ok(&script, &outcome, tnk_rest_list_checkpoints(script.service, NULL));
  test_alloc_fail_at(n);
  outcome_of(&next, tnk_rest_next_page(script.service,
                                       tnk_promise_page(outcome.promise)));
  for (int i = 0; i < 100 && next.n_done == 0; i++)
    script_later(&script, 1000); /* what failed to connect is tried again */
  CHECK_INT(next.n_done, 1);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK(next.status == TNK_OK || next.status == TNK_ENOMEM);
  outcome_drop(&next);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_lists_without_memory, 60) {
  for (long n = 0; walk_without(n); n++)
    CHECK(n < 500);
}
