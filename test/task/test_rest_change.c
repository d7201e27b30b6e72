/* SPDX-License-Identifier: MIT */
/*
 * Changing what a service keeps: each call of the table of the protocol, what a
 * repeat means after a lost answer, and what is not sent.
 */
#include "task/rest.h"

#define PATH "tinker://r:1/weights/a.b"
#define EXTERNAL "tinker://r:1/external_weights/hf"
#define RUN "/api/v1/training_runs/r:1/checkpoints/"
#define CHECKPOINT RUN "weights/a.b"

/* Calls that name a checkpoint, in one table. */
typedef struct {
  const char *name;
  const char *method;
  const char *target;
  const char *sdk_method;
  const char *body; /* or NULL */
  tnk_promise_t *(*start)(tnk_service_t *service, const char *path);
} change_t;

static tnk_promise_t *set_ttl(tnk_service_t *service, const char *path) {
  return tnk_rest_set_checkpoint_ttl(service, path, 3600);
}

static tnk_promise_t *remove_ttl(tnk_service_t *service, const char *path) {
  return tnk_rest_set_checkpoint_ttl(service, path, 0);
}

static const change_t changes[] = {
    {"delete_checkpoint", "DELETE", CHECKPOINT,
     "RestClient.delete_checkpoint_from_tinker_path", NULL,
     tnk_rest_delete_checkpoint},
    {"publish_checkpoint", "POST", CHECKPOINT "/publish",
     "RestClient.publish_checkpoint_from_tinker_path", NULL,
     tnk_rest_publish_checkpoint},
    {"unpublish_checkpoint", "DELETE", CHECKPOINT "/publish",
     "RestClient.unpublish_checkpoint_from_tinker_path", NULL,
     tnk_rest_unpublish_checkpoint},
    {"set_checkpoint_ttl", "PUT", CHECKPOINT "/ttl",
     "RestClient.set_checkpoint_ttl_from_tinker_path", "{\"ttl_seconds\":3600}",
     set_ttl},
    {"set_checkpoint_ttl", "PUT", CHECKPOINT "/ttl",
     "RestClient.set_checkpoint_ttl_from_tinker_path", "{\"ttl_seconds\":null}",
     remove_ttl},
};
enum { DELETE, PUBLISH, UNPUBLISH, SET_TTL, N_CHANGES = 5 };

static void answer_empty(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 204, NULL, NULL, 0);
}

static void answer_words(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, NULL, "done", 4);
}

TEST(N8_N9_N10_checkpoints_are_changed) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (size_t i = 0; i < N_CHANGES; i++) {
    const change_t *change = &changes[i];

    mock_on(script.mock, change->method, change->target,
            i % 2 ? answer_empty : answer_words, NULL);
    script_ok(&script, &outcome, change->start(script.service, PATH));
    rest_check(&script, change->method, change->target, change->sdk_method,
               change->body);
    CHECK(mock_header(rest_last(&script), "x-idempotency-key") != NULL);
    outcome_drop(&outcome);
  }
  /* A POST without a body has a length, a DELETE has none. */
  CHECK_STR(
      mock_header(mock_find(script.mock, "POST", CHECKPOINT "/publish", 0),
                  "content-length"),
      "0");
  CHECK(mock_header(mock_find(script.mock, "DELETE", CHECKPOINT, 0),
                    "content-length") == NULL);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/create_session"), 0);
  script_close(&script);
}

/* ---- What a repeat means ---- */

/* A call whose first answer is lost, and whose repeat is answered so. */
static int status_of(const change_t *change, mock_handler_t first, int status,
                     int *n_requests) {
  script_t script;
  outcome_t outcome;
  int code;

  script_open(&script);
  mock_json(script.mock, change->method, change->target, status, "{}");
  if (first != NULL)
    mock_once(script.mock, change->method, change->target, first, NULL);
  outcome_of(&outcome, change->start(script.service, PATH));
  for (int i = 0; i < 30 && outcome.n_done == 0; i++)
    script_later(&script, 1000);
  CHECK_INT(outcome.n_done, 1);
  code = outcome.status;
  *n_requests = (int)mock_count(script.mock, change->method, change->target);
  outcome_drop(&outcome);
  script_close(&script);
  return code;
}

TEST(P9_12_a_delete_answered_404_after_a_lost_answer_is_done) {
  int n;

  CHECK_INT(status_of(&changes[DELETE], mock_reset, 404, &n), TNK_OK);
  CHECK_INT(n, 2);
  CHECK_INT(status_of(&changes[DELETE], NULL, 404, &n), TNK_ENOTFOUND);
  CHECK_INT(n, 1);
}

static void answer_500(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 500, "{}");
}

static void answer_429(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 429, "{}");
}

/* A server that failed may have deleted it; one that was too busy has not. */
TEST(P9_12_a_delete_answered_404_after_a_refusal) {
  int n;

  CHECK_INT(status_of(&changes[DELETE], answer_500, 404, &n), TNK_OK);
  CHECK_INT(status_of(&changes[DELETE], answer_429, 404, &n), TNK_ENOTFOUND);
  CHECK_INT(n, 2);
}

TEST(P9_12_publish_and_unpublish_answered_409_are_done) {
  int n;

  for (size_t i = PUBLISH; i <= UNPUBLISH; i++) {
    CHECK_INT(status_of(&changes[i], NULL, 409, &n), TNK_OK);
    CHECK_INT(n, 1); /* it is not repeated either */
    CHECK_INT(status_of(&changes[i], mock_reset, 409, &n), TNK_OK);
    CHECK_INT(n, 2);
    CHECK_INT(status_of(&changes[i], mock_reset, 404, &n), TNK_ENOTFOUND);
  }
}

TEST(P9_12_a_time_to_live_is_set_again) {
  int n;

  CHECK_INT(status_of(&changes[SET_TTL], mock_reset, 200, &n), TNK_OK);
  CHECK_INT(n, 2);
  CHECK_INT(status_of(&changes[SET_TTL], NULL, 400, &n), TNK_EREQUEST);
  CHECK_INT(n, 1);
  CHECK_INT(status_of(&changes[SET_TTL], NULL, 404, &n), TNK_ENOTFOUND);
}

static void answer_cut(mock_request_t *request, void *user) {
  static const char body[200] = "{\"a\":1}";

  (void)user;
  mock_reply_cut(request, 200, NULL, body, sizeof(body), 150);
}

/* Nobody needs what a body says when a 2xx has come. */
TEST(an_answer_whose_body_broke_off_is_good_enough) {
  int n;

  for (size_t i = DELETE; i <= UNPUBLISH; i++) {
    CHECK_INT(status_of(&changes[i], answer_cut, 500, &n), TNK_OK);
    CHECK_INT(n, 1);
  }
}

/* Without credit nothing is waited for. */
TEST(P9_12_402_is_told_at_once) {
  int n;

  for (size_t i = 0; i < N_CHANGES; i++) {
    CHECK_INT(status_of(&changes[i], NULL, 402, &n), TNK_EBILLING);
    CHECK_INT(n, 1);
  }
}

/* Whether a change was made is told where it cannot be repeated. */
TEST(a_change_that_fails_says_whether_it_was_made) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  options.max_retries = UINT32_MAX;
  script_open_with(&script, options);
  mock_on(script.mock, "DELETE", CHECKPOINT, mock_cut, NULL);
  script_fails(&script, &outcome,
               tnk_rest_delete_checkpoint(script.service, PATH), TNK_ECONN);
  CHECK_INT(tnk_promise_error(outcome.promise)->ran, TNK_RAN_UNKNOWN);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Copies ---- */

TEST(P9_12_a_copy_is_made_once) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  const mock_request_t *first;
  script_t script;
  outcome_t outcome;

  service.project_id = "mine";
  script_open_with(&script, service);
  mock_json(script.mock, "POST", "/api/v1/copy_weights", 200,
            "{\"tinker_path\":\"tinker://s/weights/a\"}");
  mock_once(script.mock, "POST", "/api/v1/copy_weights", mock_reset, NULL);
  mock_json_once(script.mock, "POST", "/api/v1/copy_weights", 409, "{}");
  options.path = PATH;
  outcome_of(&outcome, tnk_rest_copy_weights(script.service, &options));
  for (int i = 0; i < 30 && outcome.n_done == 0; i++)
    script_later(&script, 1000);
  outcome_ok(&script, &outcome);
  CHECK_STR(tnk_promise_path(outcome.promise), "tinker://s/weights/a");
  outcome_drop(&outcome);
  rest_check(&script, "POST", "/api/v1/copy_weights", "RestClient.copy_weights",
             "{\"destination_project_id\":\"mine\",\"source_path\":\"" PATH
             "\"}");
  CHECK(mock_header(rest_last(&script), "x-tinker-weights-access-token") ==
        NULL);
  first = mock_find(script.mock, "POST", "/api/v1/copy_weights", 0);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/copy_weights"), 3);
  CHECK_STR(mock_header(first, "x-idempotency-key"),
            mock_header(rest_last(&script), "x-idempotency-key"));
  options.project_id = "other";
  options.ttl_seconds = 7200;
  options.weights_access_token = "secret-canary";
  script_ok(&script, &outcome, tnk_rest_copy_weights(script.service, &options));
  rest_check(&script, "POST", "/api/v1/copy_weights", "RestClient.copy_weights",
             "{\"destination_project_id\":\"other\",\"source_path\":\"" PATH
             "\",\"ttl_seconds\":7200}");
  CHECK_STR(mock_header(rest_last(&script), "x-tinker-weights-access-token"),
            "secret-canary");
  CHECK(strcmp(mock_header(first, "x-idempotency-key"),
               mock_header(rest_last(&script), "x-idempotency-key")) != 0);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_copy_that_lacks_something_is_not_sent) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_fails(&script, &outcome, tnk_rest_copy_weights(script.service, NULL),
               TNK_EINVAL);
  CHECK_STR(outcome.text, "copy_weights: path is empty");
  outcome_drop(&outcome);
  options.path = "http://x";
  script_fails(&script, &outcome,
               tnk_rest_copy_weights(script.service, &options), TNK_EINVAL);
  outcome_drop(&outcome);
  options.path = PATH;
  script_fails(&script, &outcome,
               tnk_rest_copy_weights(script.service, &options), TNK_EINVAL);
  CHECK(strstr(outcome.text, "project") != NULL);
  outcome_drop(&outcome);
  options.project_id = "p";
  options.weights_access_token = "a\nb";
  script_fails(&script, &outcome,
               tnk_rest_copy_weights(script.service, &options), TNK_EINVAL);
  CHECK(strstr(outcome.text, "weights_access_token") != NULL);
  outcome_drop(&outcome);
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* A server of an older kind. */
TEST(a_copy_is_unsupported_where_there_is_no_such_call) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  options.path = PATH;
  options.project_id = "p";
  for (int i = 0; i < 2; i++) {
    script_fails(&script, &outcome,
                 tnk_rest_copy_weights(script.service, &options),
                 TNK_EUNSUPPORTED);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/copy_weights"), 1);
  script_close(&script);
}

/* ---- Weights and files ---- */

TEST(N4_weights_info) {
  const tnk_weights_info_t *info;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "POST", "/api/v1/weights_info", 200,
            "{\"base_model\":\"m\",\"is_lora\":true,\"lora_rank\":8,"
            "\"train_mlp\":false,\"train_attn\":null,\"train_unembed\":true,"
            "\"optimizer_config\":{\"type\":\"adamw\",\"x\":[1]}}");
  script_ok(&script, &outcome, tnk_rest_get_weights_info(script.service, PATH));
  rest_check(&script, "POST", "/api/v1/weights_info",
             "RestClient.get_weights_info_by_tinker_path",
             "{\"tinker_path\":\"" PATH "\"}");
  info = tnk_page_weights_info(tnk_promise_page(outcome.promise), 0);
  CHECK_STR(info->base_model, "m");
  CHECK_INT(info->is_lora, 1);
  CHECK_INT(info->lora_rank, 8);
  CHECK_INT(info->train_mlp, TNK_NO);
  CHECK_INT(info->train_attn, TNK_DEFAULT);
  CHECK_INT(info->train_unembed, TNK_YES);
  CHECK_STR(info->optimizer_json, "{\"type\":\"adamw\",\"x\":[1]}");
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(files_of_an_external_checkpoint) {
  const tnk_external_files_t *files;
  script_t script;
  outcome_t outcome;

  script_open(&script);
  mock_json(script.mock, "GET", RUN "external_weights/hf/external_weights_urls",
            200,
            "{\"urls\":{\"adapter_config.json\":\"https://s/a?sig=canary\","
            "\"sub/b.bin\":\"https://s/b\"},\"expires\":"
            "\"1970-01-02T00:00:00Z\"}");
  script_ok(&script, &outcome,
            tnk_rest_get_external_files(script.service, EXTERNAL));
  rest_check(&script, "GET", RUN "external_weights/hf/external_weights_urls",
             "RestClient.get_external_weights_urls", NULL);
  files = tnk_page_external_files(tnk_promise_page(outcome.promise), 0);
  CHECK_INT(files->n_files, 2);
  CHECK_STR(files->files[0].name, "adapter_config.json");
  CHECK_STR(files->files[0].value, "https://s/a?sig=canary");
  CHECK_STR(files->files[1].name, "sub/b.bin");
  CHECK_INT(files->expires_us, INT64_C(86400000000));
  outcome_drop(&outcome);
  script_fails(&script, &outcome,
               tnk_rest_get_external_files(script.service, PATH), TNK_EINVAL);
  CHECK(strstr(outcome.text, "external_weights") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(a_file_whose_name_leads_out_of_a_folder_is_refused) {
  static const char *const names[] = {"",     "/a",     "a/",    "..",
                                      "../a", "a/..",   "a//b",  "./a",
                                      ".",    "a/../b", "a\\\\b"};
  script_t script;
  outcome_t outcome;
  char json[200];

  script_open(&script);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    snprintf(json, sizeof(json),
             "{\"urls\":{\"a\":\"https://canary\",\"%s\":\"https://canary\"},"
             "\"expires\":0}",
             names[i]);
    mock_json_once(script.mock, "GET",
                   RUN "external_weights/hf/external_weights_urls", 200, json);
    script_fails(&script, &outcome,
                 tnk_rest_get_external_files(script.service, EXTERNAL),
                 TNK_EPROTO);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

/* ---- Arguments ---- */

TEST(P9_13_a_path_that_would_change_the_address_is_not_sent) {
  static const struct {
    const char *path;
    const char *why;
  } rows[] = {
      {NULL, "path is NULL"},
      {"", "path is not tinker://"},
      {"r/weights/a", "path is not tinker://"},
      {"tinker://r/weights", "path is not tinker://"},
      {"tinker://r/weights/", "path is not tinker://"},
      {"tinker:///weights/a", "path is not tinker://"},
      {"tinker://r/weights/a/b", "path is not tinker://"},
      {"tinker://r/other/a", "path is not tinker://"},
      {"tinker://../weights/a", "the run in path is \"..\""},
      {"tinker://r/weights/..", "the name in path is \"..\""},
      {"tinker://r/weights/.", "the name in path is \".\""},
      {"tinker://r?x/weights/a", "the run in path has '?'"},
      {"tinker://r/weights/a#b", "the name in path has '#'"},
      {"tinker://r/weights/a%2e", "the name in path has '%'"},
      {"tinker://r\\s/weights/a", "the run in path has '\\'"},
      {"tinker://r/weights/a b", "the name in path has a blank"},
      {"tinker://r/weights/a\n", "the name in path has a control character"}};
  script_t script;
  outcome_t outcome;
  char text[128];

  script_open(&script);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t k = 0; k < N_CHANGES; k++) {
      script_fails(&script, &outcome,
                   changes[k].start(script.service, rows[i].path), TNK_EINVAL);
      snprintf(text, sizeof(text), "%s: %s", changes[k].name, rows[i].why);
      if (strncmp(outcome.text, text, strlen(text)) != 0)
        test_fail(__FILE__, __LINE__, "%s, expected %s", outcome.text, text);
      outcome_drop(&outcome);
    }
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

TEST(N10_a_time_to_live_out_of_range_is_not_sent) {
  static const int64_t bad[] = {
      -1, 1, 3599, INT64_C(400) * 86400 * 366, INT64_MIN, INT64_MAX};
  script_t script;
  outcome_t outcome;

  script_open(&script);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    script_fails(&script, &outcome,
                 tnk_rest_set_checkpoint_ttl(script.service, PATH, bad[i]),
                 TNK_EINVAL);
    CHECK(strstr(outcome.text, "ttl_seconds is ") != NULL);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_n_requests(script.mock), 0);
  script_close(&script);
}

/* ---- Memory ---- */

static int change_without(const change_t *change, long n) {
  script_t script;
  outcome_t outcome;
  int did_fail;

  script_open(&script);
  mock_json(script.mock, change->method, change->target, 200, "{}");
  test_alloc_fail_at(n);
  outcome_of(&outcome, change->start(script.service, PATH));
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_later(&script, 1000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK(outcome.status == TNK_OK || outcome.status == TNK_ENOMEM);
  CHECK_INT(outcome.n_done, 1);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_changes_without_memory, 60) {
  for (size_t i = 0; i < N_CHANGES; i++)
    for (long n = 0; change_without(&changes[i], n); n++)
      CHECK(n < 500);
}
