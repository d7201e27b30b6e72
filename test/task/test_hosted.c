/* SPDX-License-Identifier: MIT */
/*
 * The chat endpoints of a service: answers whole and as streams (I1, I3).
 */
#include "task/hosted.h"
#include "task/tokens.h"

/* ---- Whole answers ---- */

TEST(I3_whole_answers_of_each_form) {
  static const struct {
    tnk_hosted_form_t form;
    const char *path;
    int has_bearer;
  } rows[] = {{TNK_HOSTED_CHAT, CHAT, 1},
              {TNK_HOSTED_COMPLETIONS, "/oai/api/v1/completions", 1},
              {TNK_HOSTED_MESSAGES, MESSAGES, 0}};
  script_t script;
  size_t n;

  script_open(&script);
  for (size_t i = 0; i < 3; i++) {
    const mock_request_t *request;
    const char *bearer;
    outcome_t outcome;

    mock_json(script.mock, "POST", rows[i].path, 200, "{\"id\": \"x\"}");
    script_ok(&script, &outcome, ask(&script, rows[i].form));
    request = mock_find(script.mock, "POST", rows[i].path, 0);
    CHECK_STR(mock_header(request, "x-api-key"), script_key());
    CHECK_STR(mock_header(request, "accept"), "application/json");
    CHECK_MEM(request->body, request->body_len, "{\"model\":\"m\"}", 13);
    bearer = mock_header(request, "authorization");
    CHECK_INT(bearer != NULL, rows[i].has_bearer);
    if (bearer != NULL)
      CHECK(strncmp(bearer, "Bearer ", 7) == 0 &&
            strcmp(bearer + 7, script_key()) == 0);
    CHECK_INT(mock_header(request, "anthropic-version") != NULL,
              !rows[i].has_bearer);
    CHECK_STR(tnk_hosted_body(tnk_promise_hosted(outcome.promise), &n),
              "{\"id\": \"x\"}");
    CHECK_INT(n, 11);
    CHECK(tnk_promise_samples(outcome.promise) == NULL);
    outcome_drop(&outcome);
  }
  /* No session was made for it. */
  CHECK_INT(mock_n_requests(script.mock), 3);
  script_close(&script);
}

TEST(I3_requests_that_are_none) {
  static const struct {
    const char *body;
    const char *path;
    int streams;
    uint64_t silence_ms;
    const char *says;
  } rows[] = {{NULL, NULL, 0, 0, "body is NULL"},
              {"", NULL, 0, 0, "no JSON object"},
              {"[]", NULL, 0, 0, "no JSON object"},
              {"{\"stream\":true}", NULL, 0, 0, "on_event is NULL"},
              {"{}", NULL, 1, 0, "wants no stream"},
              {"{\"stream\":1}", NULL, 1, 0, "wants no stream"},
              {"{}", "v1", 0, 0, "path"},
              {"{}", "//h/v1", 0, 0, "path"},
              {"{}", "/v1\r\nX: y", 0, 0, "path"},
              {"{}", NULL, 0, 86400001, "silence_ms"}};
  script_t script;

  script_open(&script);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;
    outcome_t outcome;

    request.body = rows[i].body;
    request.path = rows[i].path;
    request.silence_ms = rows[i].silence_ms;
    request.on_event = rows[i].streams ? on_event : NULL;
    script_fails(&script, &outcome,
                 tnk_service_hosted(script.service, &request), TNK_EINVAL);
    if (strstr(outcome.text, rows[i].says) == NULL)
      test_fail(__FILE__, __LINE__, "%s", outcome.text);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_n_requests(script.mock), 0);
  CHECK(tnk_hosted_body(NULL, NULL) == NULL);
  CHECK_INT(tnk_hosted_n_events(NULL), 0);
  script_close(&script);
}

TEST(I3_answers_that_are_none) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};

  script_open(&script);
  mock_json(script.mock, "POST", CHAT, 200, "[1]");
  script_fails(&script, &outcome, ask(&script, TNK_HOSTED_CHAT), TNK_EPROTO);
  outcome_drop(&outcome);
  mock_json(script.mock, "POST", CHAT, 200, "{\"id\":\"x\"}");
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_EPROTO);
  CHECK(strstr(outcome.text, "not an event stream") != NULL);
  outcome_drop(&outcome);
  mock_json(script.mock, "POST", CHAT, 404,
            "{\"error\":{\"message\":\"no such model\"}}");
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_ENOTFOUND);
  CHECK(strstr(outcome.text, "no such model") != NULL);
  outcome_drop(&outcome);
  CHECK_INT(ear.n_events, 0);
  script_close(&script);
}

/* Servers that want a token are found out by their refusal; others do not say
 * what they want. */
TEST(I3_keys_that_are_refused) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};

  script_open(&script);
  mock_json(script.mock, "POST", CHAT, 401, "{\"error\":\"not you\"}");
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_EAUTH);
  CHECK(strstr(outcome.text, "not you") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
  script_open(&script);
  mock_json(script.mock, "POST", CHAT, 401, "{\"error\":\"not you\"}");
  mock_json(script.mock, "POST", "/api/v1/client/config", 404, "{}");
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_EAUTH);
  outcome_drop(&outcome);
  script_close(&script);
}

/* Lets in who comes with a token, in both headers. */
static void answer_token(mock_request_t *request, void *user) {
  int *n_with_key = user;

  if (strcmp(mock_header(request, "x-api-key"), script_key()) == 0) {
    ++*n_with_key;
    mock_reply_json(request, 401, "{\"detail\":\"not with this\"}");
    return;
  }
  CHECK(strstr(mock_header(request, "authorization"), script_key()) == NULL);
  mock_reply(request, 200, STREAM_TYPE, chat_stream, strlen(chat_stream));
}

TEST(I3_a_token_where_the_server_wants_one) {
  tokens_t tokens;
  outcome_t outcome;
  ear_t ear = {0};
  int n_with_key = 0;

  tokens_open(&tokens, 3600);
  mock_on(tokens.script.mock, "POST", CHAT, answer_token, &n_with_key);
  outcome_of(&outcome, ask_stream(&ear, &tokens.script, TNK_HOSTED_CHAT));
  tokens_settle(&tokens, &outcome);
  if (outcome.status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  CHECK_INT(n_with_key, 1);
  CHECK_INT(ear.n_events, 2);
  outcome_drop(&outcome);
  tokens_close(&tokens);
}

/* ---- Streams ---- */

TEST(I1_streams_of_each_form) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};

  script_open(&script);
  mock_on(script.mock, "POST", CHAT, reply_text, (void *)chat_stream);
  mock_on(script.mock, "POST", MESSAGES, reply_text, (void *)messages_stream);
  script_ok(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT));
  CHECK_STR(ear.text, "message|{\"n\":1};message|{\"n\":2};");
  CHECK_STR(mock_header(mock_find(script.mock, "POST", CHAT, 0), "accept"),
            "text/event-stream");
  CHECK_INT(tnk_hosted_n_events(tnk_promise_hosted(outcome.promise)), 2);
  CHECK(tnk_hosted_body(tnk_promise_hosted(outcome.promise), NULL) == NULL);
  outcome_drop(&outcome);
  ear = (ear_t){0};
  script_ok(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_MESSAGES));
  CHECK_STR(ear.text,
            "message_start|{\"n\":1};delta|{\"n\":2};message_stop|{};");
  outcome_drop(&outcome);
  /* The connection was kept. */
  CHECK_INT(mock_n_connections(script.mock), 1);
  script_close(&script);
}

TEST_LIMIT(I1_events_come_as_they_are_written, 30) {
  const size_t n = sizeof(messages_stream) - 1;
  script_t script;

  script_open(&script);
  for (size_t at = 1; at < n; at += 3) {
    cut_t cut = {.cut = at};
    ear_t ear = {0};
    outcome_t outcome;
    int n_before;

    mock_once(script.mock, "POST", MESSAGES, begin_cut, &cut);
    outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_MESSAGES));
    script_turns(&script);
    n_before = ear.n_events;
    CHECK_INT(n_before, (at >= FIRST_END) + (at >= SECOND_END));
    put_piece(cut.request, messages_stream + at, n - at);
    end_pieces(cut.request);
    outcome_ok(&script, &outcome);
    CHECK_STR(ear.text,
              "message_start|{\"n\":1};delta|{\"n\":2};message_stop|{};");
    outcome_drop(&outcome);
  }
  script_close(&script);
}

/* ---- Memory ---- */

static int run_without(long n, int streams) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};
  int did_fail;

  script_open(&script);
  mock_on(script.mock, "POST", CHAT, reply_text, (void *)chat_stream);
  if (!streams)
    mock_json(script.mock, "POST", CHAT, 200, "{\"id\":1}");
  test_alloc_fail_at(n);
  outcome_of(&outcome, streams ? ask_stream(&ear, &script, TNK_HOSTED_CHAT)
                               : ask(&script, TNK_HOSTED_CHAT));
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || (did_fail && outcome.status == TNK_ENOMEM));
  CHECK(ear.n_events <= 2);
  CHECK(!streams || outcome.status != TNK_OK || ear.n_events == 2);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_chats_without_memory, 60) {
  for (int streams = 0; streams < 2; streams++)
    for (long n = 0; run_without(n, streams); n++)
      CHECK(n < 1000);
}
