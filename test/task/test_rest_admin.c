/* SPDX-License-Identifier: MIT */
/* Who asks, what was used, what is stored, who did what. */
#include <math.h>

#include "task/rest.h"

#define USAGE "/api/v1/billing/usage/events"
#define STORAGE "/api/v1/billing/usage/checkpoints/current"
#define AUDIT "/api/v1/audit"
#define HOUR INT64_C(3600000000)

/* ---- Uses ---- */

static const char usage[] =
    "{\"data\":[{\"bucket_start\":\"1970-01-01T01:00:00Z\",\"bucket_end\":"
    "\"1970-01-01T02:00:00Z\",\"base_model\":\"m\",\"user_id\":\"u\","
    "\"user_name\":\"n\",\"session_id\":\"s2\",\"project_id\":\"p\","
    "\"estimated_cost_usd\":0.25,\"effective_rate_usd_per_million_tokens\":"
    "1.5,\"event_info\":{\"type\":\"training\",\"token_count\":7}},"
    "{\"bucket_start\":0,\"bucket_end\":3600,\"session_id\":null,"
    "\"event_info\":{\"gigabyte_hours\":1e-3,\"free\":true,\"type\":"
    "\"storage\"}},"
    "{\"bucket_start\":0,\"bucket_end\":3600,\"session_id\":\"s9\","
    "\"event_info\":{\"type\":\"sampling_prefill\",\"cached\":true,"
    "\"token_count\":2}},"
    "{\"bucket_start\":0,\"bucket_end\":3600,\"session_id\":\"s1\","
    "\"event_info\":{\"type\":\"of tomorrow\",\"amount\":[1, 2]}}],"
    "\"sessions\":{\"s2\":{\"user_metadata\":{\"k\":\"two\"}},\"s1\":{"
    "\"user_metadata\":null}},\"cost_data_through\":\"1970-01-02T00:00:00Z\"}";

static const tnk_usage_t *usage_at(const outcome_t *outcome, size_t i) {
  return tnk_page_usage(tnk_promise_page(outcome->promise), i);
}

TEST(N15_uses_are_listed) {
  const tnk_usage_t *row;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", USAGE, 200, usage);
  script_ok(&script, &outcome, tnk_rest_get_usage(script.service, 0, HOUR));
  rest_check(&script, "GET",
             USAGE "?starting_on=1970-01-01T00%3A00%3A00Z&ending_before="
                   "1970-01-01T01%3A00%3A00Z",
             "AdminClient.get_billing_usage", NULL);
  CHECK_INT(tnk_page_count(tnk_promise_page(outcome.promise)), 4);
  CHECK_INT(tnk_page_cost_through_us(tnk_promise_page(outcome.promise)),
            24 * HOUR);
  row = usage_at(&outcome, 0);
  CHECK_INT(row->start_us, HOUR);
  CHECK_INT(row->end_us, 2 * HOUR);
  CHECK_STR(row->base_model, "m");
  CHECK_STR(row->user_id, "u");
  CHECK_STR(row->session_id, "s2");
  CHECK_STR(row->project_id, "p");
  CHECK_NEAR(row->cost_usd, 0.25, 0);
  CHECK_NEAR(row->usd_per_million_tokens, 1.5, 0);
  CHECK(isnan(row->usd_per_gigabyte_month));
  CHECK_INT(row->event->kind, TNK_USAGE_TRAINING);
  CHECK_INT(row->event->n_tokens, 7);
  CHECK_INT(row->n_user_metadata, 1);
  CHECK_STR(row->user_metadata[0].value, "two");
  row = usage_at(&outcome, 1);
  CHECK_INT(row->event->kind, TNK_USAGE_STORAGE);
  CHECK_INT(row->event->is_free, 1);
  CHECK_NEAR(row->event->gigabyte_hours, 0.001, 0);
  CHECK(row->session_id == NULL && isnan(row->cost_usd));
  row = usage_at(&outcome, 2);
  CHECK_INT(row->event->kind, TNK_USAGE_PREFILL);
  CHECK_INT(row->event->is_cached, 1);
  CHECK_INT(row->n_user_metadata, 0); /* of a session that nothing is told of */
  outcome_drop(&outcome);
  script_close(&script);
}

/* An event that is not known yet fails nothing, and is there as it came. */
TEST(N15_an_event_that_is_not_known_is_kept) {
  const tnk_usage_t *row;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", USAGE, 200, usage);
  script_ok(&script, &outcome, tnk_rest_get_usage(script.service, 0, HOUR));
  row = usage_at(&outcome, 3);
  CHECK_INT(row->event->kind, TNK_USAGE_OTHER);
  CHECK_STR(row->event->type, "of tomorrow");
  CHECK_STR(row->event->json, "{\"type\":\"of tomorrow\",\"amount\":[1, 2]}");
  outcome_drop(&outcome);
  mock_json_once(script.mock, "GET", USAGE, 200,
                 "{\"data\":[{\"bucket_start\":0,\"bucket_end\":1,"
                 "\"event_info\":{}}]}");
  script_ok(&script, &outcome, tnk_rest_get_usage(script.service, 0, HOUR));
  CHECK_STR(usage_at(&outcome, 0)->event->type, "");
  CHECK_STR(usage_at(&outcome, 0)->event->json, "{}");
  CHECK_INT(tnk_page_cost_through_us(tnk_promise_page(outcome.promise)), 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N15_hours_that_are_none_are_not_sent) {
  static const int64_t rows[][2] = {
      {HOUR, HOUR}, {HOUR, 0}, {-1, HOUR}, {0, INT64_MAX}};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (size_t i = 0; i < 4; i++) {
    script_fails(&script, &outcome,
                 tnk_rest_get_usage(script.service, rows[i][0], rows[i][1]),
                 TNK_EINVAL);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* ---- Storage ---- */

TEST(what_is_stored_now) {
  const tnk_storage_t *row;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", STORAGE, 200,
            "{\"effective_rate_usd_per_gigabyte_month\":0.5,\"data\":[{"
            "\"project_id\":\"p\",\"org_user_urn\":\"u\",\"user_email\":\"e\","
            "\"user_name\":null,\"checkpoint_count\":3,\"size_bytes\":"
            "5000000000,\"size_gigabytes\":5.0,\"estimated_monthly_cost_usd\":"
            "null}]}");
  script_ok(&script, &outcome, tnk_rest_get_storage(script.service, NULL));
  rest_check(&script, "GET", STORAGE,
             "AdminClient.get_current_checkpoint_storage_usage", NULL);
  CHECK_NEAR(tnk_page_storage_rate(tnk_promise_page(outcome.promise)), 0.5, 0);
  row = tnk_page_storage(tnk_promise_page(outcome.promise), 0);
  CHECK_STR(row->project_id, "p");
  CHECK_STR(row->user_urn, "u");
  CHECK_STR(row->user_email, "e");
  CHECK(row->user_name == NULL);
  CHECK_INT(row->n_checkpoints, 3);
  CHECK_INT(row->size_bytes, INT64_C(5000000000));
  CHECK_NEAR(row->size_gigabytes, 5, 0);
  CHECK(isnan(row->usd_per_month));
  outcome_drop(&outcome);
  script_ok(&script, &outcome, tnk_rest_get_storage(script.service, "a b"));
  CHECK_STR(rest_last(&script)->target, STORAGE "?project_id=a%20b");
  outcome_drop(&outcome);
  script_fails(&script, &outcome, tnk_rest_get_storage(script.service, ""),
               TNK_EINVAL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- The audit log ---- */

TEST(N16_the_audit_log_is_read) {
  const tnk_audit_entry_t *entry;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", AUDIT, 200,
            "{\"entries\":[{\"timestamp\":\"1970-01-01T00:00:01Z\",\"event\":"
            "\"checkpoint_read\",\"event_details\":{\"a\":{}},\"model_id\":"
            "\"r\",\"tinker_path\":\"p\",\"purpose\":\"q\"},{\"timestamp\":1,"
            "\"event\":\"x\"}]}");
  script_ok(&script, &outcome,
            tnk_rest_get_audit_log(script.service, NULL, NULL));
  rest_check(&script, "GET", AUDIT "?event_type=all",
             "AdminClient.get_audit_log", NULL);
  entry = tnk_page_audit_entry(tnk_promise_page(outcome.promise), 0);
  CHECK_INT(entry->time_us, 1000000);
  CHECK_STR(entry->event, "checkpoint_read");
  CHECK_STR(entry->details, "{\"a\":{}}");
  CHECK_STR(entry->model_id, "r");
  CHECK_STR(entry->tinker_path, "p");
  CHECK_STR(entry->purpose, "q");
  entry = tnk_page_audit_entry(tnk_promise_page(outcome.promise), 1);
  CHECK(entry->details == NULL && entry->purpose == NULL);
  outcome_drop(&outcome);
  script_ok(&script, &outcome,
            tnk_rest_get_audit_log(script.service, "projects", "2026-01-02"));
  CHECK_STR(rest_last(&script)->target,
            AUDIT "?event_type=projects&day=2026-01-02");
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N16_a_day_that_is_none_is_not_sent) {
  static const char *const days[] = {"", "today", "2026-02-30", "2026-1-2",
                                     "2026-01-02T00:00:00Z"};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (size_t i = 0; i < 5; i++) {
    script_fails(&script, &outcome,
                 tnk_rest_get_audit_log(script.service, NULL, days[i]),
                 TNK_EINVAL);
    outcome_drop(&outcome);
  }
  script_fails(&script, &outcome,
               tnk_rest_get_audit_log(script.service, "", NULL), TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

TEST(what_only_administrators_may_see) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", AUDIT, 403, "{\"detail\":\"not you\"}");
  script_fails(&script, &outcome,
               tnk_rest_get_audit_log(script.service, NULL, NULL), TNK_EAUTH);
  CHECK(strstr(outcome.text, "not you") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Who asks ---- */

/* A token whose claims are base64 of `claims`. */
static const char *token_of(const char *claims) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  static char text[2000];
  const size_t n = strlen(claims);
  size_t at = (size_t)snprintf(text, sizeof(text), "eyJh.");

  for (size_t i = 0; i < n; i += 3) {
    uint32_t bits = 0;

    for (size_t k = 0; k < 3; k++)
      bits = bits << 8 | (i + k < n ? (unsigned char)claims[i + k] : 0);
    for (size_t k = 0; k < 4 && (k < 2 || i + k - 1 < n); k++)
      text[at++] = digits[bits >> (18 - 6 * k) & 63];
  }
  snprintf(text + at, sizeof(text) - at, ".sig");
  return text;
}

static void serve_token(script_t *script, const char *claims) {
  static char json[2100];

  snprintf(json, sizeof(json), "{\"jwt\":\"%s\"}", token_of(claims));
  script_flags(script, "{\"pjwt_auth_enabled\":true}");
  mock_json(script->mock, "POST", "/api/v1/auth/token", 200, json);
}

TEST(N12_who_asks_is_in_the_token) {
  const tnk_identity_t *identity;
  script_t script;
  outcome_t outcome;
  size_t n;

  script_open(&script);
  serve_token(&script, "{\"sub\":\"urn:u\",\"org_id\":\"o1\",\"email\":\"e\","
                       "\"exp\":9999999999,\"iat\":9999999000}");
  script_ok(&script, &outcome, tnk_rest_whoami(script.service));
  identity = tnk_page_identity(tnk_promise_page(outcome.promise), 0);
  CHECK_STR(identity->user_urn, "urn:u");
  CHECK_STR(identity->org_urn, "tml:organization:o1");
  CHECK_STR(identity->email, "e");
  outcome_drop(&outcome);
  n = mock_n_requests(script.mock);
  script_ok(&script, &outcome, tnk_rest_whoami(script.service));
  CHECK_INT(mock_n_requests(script.mock), n); /* the token is there */
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_session"), 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N12_a_token_that_does_not_say_who_asks) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  serve_token(&script, "{\"sub\":\"urn:u\",\"exp\":9999999999,"
                       "\"iat\":9999999000}");
  script_fails(&script, &outcome, tnk_rest_whoami(script.service), TNK_EPROTO);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(N12_a_service_without_tokens) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_fails(&script, &outcome, tnk_rest_whoami(script.service),
               TNK_EUNSUPPORTED);
  CHECK_INT(mock_count(script.mock, "GET", "/api/v1/get_server_capabilities"),
            0);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- The key ---- */

#define KEY "/api/v1/auth/apikey/me"

static const char key_answer[] =
    "{\"key_id\":42,\"name\":\"laptop\",\"note\":\"\",\"details\":{\"x\":[1],"
    "\"org_details\":{\"name\":\"Org\"},\"user_details\":{\"email\":\"me@o\"}"
    "},\"later\":null}";

/* Where tokens are wanted too, and have been given, the key itself is sent: it
 * is what the question is about. */
TEST(P1_8_a_key_is_asked_about_with_itself) {
  const tnk_api_key_t *key;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  serve_token(&script, "{\"sub\":\"u\",\"org_id\":\"o\",\"exp\":9999999999,"
                       "\"iat\":9999999000}");
  mock_json(script.mock, "GET", KEY, 200, key_answer);
  script_ok(&script, &outcome, tnk_rest_get_api_key(script.service));
  CHECK_INT(mock_n_requests(script.mock), 1); /* nothing before it */
  rest_check(&script, "GET", KEY, NULL, NULL);
  CHECK_INT(tnk_page_count(tnk_promise_page(outcome.promise)), 1);
  key = tnk_page_api_key(tnk_promise_page(outcome.promise), 0);
  CHECK_INT(key->id, 42);
  CHECK_STR(key->name, "laptop");
  CHECK_STR(key->note, "");
  CHECK_STR(key->organization, "Org");
  CHECK_STR(key->email, "me@o");
  CHECK(strstr(key->details, "\"x\":[1]") != NULL);
  outcome_drop(&outcome);
  script_ok(&script, &outcome, tnk_rest_whoami(script.service));
  outcome_drop(&outcome);
  script_ok(&script, &outcome, tnk_rest_get_api_key(script.service));
  rest_check(&script, "GET", KEY, NULL, NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(P1_8_a_key_is_revoked) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "DELETE", KEY, 200, "anything");
  script_ok(&script, &outcome, tnk_rest_revoke_api_key(script.service));
  rest_check(&script, "DELETE", KEY, NULL, NULL);
  CHECK_INT(mock_n_requests(script.mock), 1);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(P1_8_a_key_that_is_refused_is_so_at_once) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  serve_token(&script, "{}");
  mock_json(script.mock, "GET", KEY, 401, "{\"detail\":\"no such key\"}");
  script_fails(&script, &outcome, tnk_rest_get_api_key(script.service),
               TNK_EAUTH);
  CHECK(strstr(tnk_promise_text(outcome.promise), "no such key") != NULL);
  CHECK_INT(mock_n_requests(script.mock), 1);
  outcome_drop(&outcome);
  script_close(&script);
  script_open(&script);
  script_fails(&script, &outcome, tnk_rest_get_api_key(script.service),
               TNK_EUNSUPPORTED);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(P1_8_what_a_key_may_lack) {
  static const char *const texts[] = {
      "{\"key_id\":1,\"name\":\"n\"}",
      "{\"key_id\":1,\"name\":\"n\",\"details\":{}}",
      "{\"key_id\":1,\"name\":\"n\",\"details\":{\"org_details\":{},"
      "\"user_details\":null}}"};
  script_t script;
  outcome_t outcome;

  for (size_t i = 0; i < 3; i++) {
    const tnk_api_key_t *key;
    script_open(&script);
    mock_json(script.mock, "GET", KEY, 200, texts[i]);
    script_ok(&script, &outcome, tnk_rest_get_api_key(script.service));
    key = tnk_page_api_key(tnk_promise_page(outcome.promise), 0);
    CHECK(key->note == NULL && key->email == NULL && key->organization == NULL);
    outcome_drop(&outcome);
    script_close(&script);
  }
  script_open(&script);
  mock_json(script.mock, "GET", KEY, 200, "{\"name\":\"n\"}");
  script_fails(&script, &outcome, tnk_rest_get_api_key(script.service),
               TNK_EPROTO);
  CHECK(strstr(tnk_promise_text(outcome.promise), "\"key_id\"") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

static int ask_without(long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  script_open(&script);
  mock_json(script.mock, "GET", USAGE, 200, usage);
  test_alloc_fail_at(n);
  outcome_of(&outcome, tnk_rest_get_usage(script.service, 0, HOUR));
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_later(&script, 1000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_uses_without_memory, 60) {
  for (long n = 0; ask_without(n); n++)
    CHECK(n < 500);
}

static int whoami_without(long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  script_open(&script);
  serve_token(&script, "{\"sub\":\"u\",\"org_id\":\"o\",\"exp\":9999999999,"
                       "\"iat\":9999999000}");
  script_ok(&script, &outcome, tnk_rest_whoami(script.service));
  outcome_drop(&outcome);
  test_alloc_fail_at(n);
  outcome_of(&outcome, tnk_rest_whoami(script.service));
  outcome_wait(&script, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_whoami_without_memory, 60) {
  for (long n = 0; whoami_without(n); n++)
    CHECK(n < 100);
}
