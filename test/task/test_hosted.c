/*
 * The chat endpoints of a service: answers whole and as streams, and the fates
 * of a stream (I1, I4).
 */
#include "task/script.h"
#include "tnk/hosted.h"

#define CHAT "/oai/api/v1/chat/completions"
#define MESSAGES "/anthropic/api/v1/messages"
#define STREAM_TYPE "Content-Type: text/event-stream\r\n"

static const char chat_stream[] = "data: {\"n\":1}\n\n"
                                  ": still here\n\n"
                                  "data: {\"n\":2}\r\n\r\n"
                                  "data: [DONE]\n\n";
static const char messages_stream[] =
    "event: message_start\ndata: {\"n\":1}\n\n"
    "event: delta\ndata: {\"n\":2}\n\n"
    "event: message_stop\ndata: {}\n\n";

/* What the program hears. */
typedef struct {
  script_t *script;
  tnk_promise_t *promise;
  char text[2048]; /* "type|data;" */
  int n_events;
  int act_at; /* the event in which it acts; 0: none */
  enum { ACT_REFUSE, ACT_CANCEL, ACT_CLOSE } act;
} ear_t;

static int on_event(const tnk_hosted_event_t *event, void *user) {
  ear_t *ear = user;
  size_t n = strlen(ear->text);

  CHECK_INT(event->n_data, strlen(event->data));
  ear->n_events++;
  if (ear->n_events == ear->act_at && ear->act == ACT_CANCEL)
    tnk_promise_cancel(ear->promise);
  if (ear->n_events == ear->act_at && ear->act == ACT_CLOSE)
    tnk_service_close(ear->script->service, script_closed, ear->script);
  /* It is still whole. */
  snprintf(ear->text + n, sizeof(ear->text) - n, "%s|%s;", event->type,
           event->data);
  return ear->n_events == ear->act_at && ear->act == ACT_REFUSE;
}

static tnk_promise_t *ask(script_t *script, tnk_hosted_form_t form) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  request.form = form;
  request.body = "{\"model\":\"m\"}";
  return tnk_service_hosted(script->service, &request);
}

static tnk_promise_t *ask_stream(ear_t *ear, script_t *script,
                                 tnk_hosted_form_t form) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  ear->script = script;
  request.form = form;
  request.body = "{\"stream\":true}";
  request.on_event = on_event;
  request.user = ear;
  return tnk_service_hosted(script->service, &request);
}

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
  CHECK(strstr(outcome.text, "no stream of events") != NULL);
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

/* ---- Streams ---- */

static void reply_text(mock_request_t *request, void *user) {
  mock_reply(request, 200, STREAM_TYPE, user, strlen(user));
}

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

/* Where the events of messages_stream end. */
#define FIRST_END (sizeof("event: message_start\ndata: {\"n\":1}\n\n") - 1)
#define SECOND_END (FIRST_END + sizeof("event: delta\ndata: {\"n\":2}\n\n") - 1)

/* On HTTP/1.1 an answer in pieces is framed, so that its end is known. */
static void begin_pieces(mock_request_t *request) {
  mock_begin(request, 200,
             mock_over_http2() ? STREAM_TYPE
                               : STREAM_TYPE "Transfer-Encoding: chunked\r\n");
}

static void put_piece(mock_request_t *request, const char *data, size_t n) {
  char size[24];
  int n_size = snprintf(size, sizeof(size), "%zx\r\n", n);

  if (n == 0)
    return;
  if (!mock_over_http2())
    mock_piece(request, size, (size_t)n_size);
  mock_piece(request, data, n);
  if (!mock_over_http2())
    mock_piece(request, "\r\n", 2);
}

static void end_pieces(mock_request_t *request) {
  if (!mock_over_http2())
    mock_piece(request, "0\r\n\r\n", 5);
  mock_end(request, 0);
}

/* Of a stream, so many bytes at first and the rest later. */
typedef struct {
  size_t cut;
  mock_request_t *request;
} cut_t;

static void begin_cut(mock_request_t *request, void *user) {
  cut_t *cut = user;

  cut->request = request;
  begin_pieces(request);
  put_piece(request, messages_stream, cut->cut);
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

/* ---- Fates ---- */

static void reply_part(mock_request_t *request, void *user) {
  const size_t *n = user;

  begin_pieces(request);
  put_piece(request, chat_stream, *n);
  mock_break(request);
}

static size_t events_within(size_t n) {
  return (size_t)(n >= 15) + (n >= 45);
}

/* It breaks at every place: what has come is given out once, and the end says
 * how much. Before the first event it is asked again. */
TEST_LIMIT(I4_streams_that_break_anywhere, 60) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.max_retries = 2;
  for (size_t n = 0; n < sizeof(chat_stream); n++) {
    const int is_whole = n >= 60; /* with its mark */
    script_t script;
    outcome_t outcome;
    ear_t ear = {0};
    char words[64];

    script_open_with(&script, options);
    mock_on(script.mock, "POST", CHAT, reply_part, &n);
    outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT));
    for (int i = 0; i < 200 && outcome.n_done == 0; i++)
      script_advance(&script, 500);
    CHECK_INT(outcome.n_done, 1);
    CHECK_INT(ear.n_events, events_within(n));
    CHECK_INT(outcome.status, is_whole ? TNK_OK : TNK_ECONN);
    snprintf(words, sizeof(words), "broke off after %d events", ear.n_events);
    if (!is_whole && ear.n_events > 0 && strstr(outcome.text, words) == NULL)
      test_fail(__FILE__, __LINE__, "%s", outcome.text);
    /* Over HTTP/2 the break may come with the events, before they are given
     * out; then it is asked again too. */
    CHECK(mock_count(script.mock, "POST", CHAT) <= 3);
    if (!is_whole && (ear.n_events == 0 || !mock_over_http2()))
      CHECK_INT(mock_count(script.mock, "POST", CHAT),
                ear.n_events > 0 ? 1 : 3);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(I4_streams_that_end_without_their_end) {
  static const struct {
    const char *text;
    const char *where;
  } rows[] = {{"data: 1\n\n: x\n", "without its end"},
              {"data: 1\n\ndata: [DONE]\n", "within an event"}};
  script_t script;

  script_open(&script);
  for (size_t i = 0; i < 2; i++) {
    outcome_t outcome;
    ear_t ear = {0};
    char words[128];

    mock_once(script.mock, "POST", CHAT, reply_text, (void *)rows[i].text);
    script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
                 TNK_ECONN);
    snprintf(words, sizeof(words),
             "chat: the stream was truncated: it ended %s, after 1 events",
             rows[i].where);
    CHECK_STR(outcome.text, words);
    CHECK_INT(ear.n_events, 1);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(I4_streams_that_report_an_error) {
  static const struct {
    tnk_hosted_form_t form;
    const char *path;
    const char *text;
    int n_events;
  } rows[] = {
      {TNK_HOSTED_CHAT, CHAT,
       "data: {\"n\":1}\n\ndata: {\"error\":{\"message\":\"out of luck\"}}\n\n"
       "data: {\"n\":2}\n\ndata: [DONE]\n\n",
       1},
      {TNK_HOSTED_CHAT, CHAT,
       "event: error\ndata: {\"message\":\"out of luck\"}\n\n", 0},
      {TNK_HOSTED_MESSAGES, MESSAGES,
       "event: a\ndata: {\"error\":{\"message\":\"no\"}}\n\nevent: error\n"
       "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
       "\"message\":\"out of luck\"}}\n\n",
       1}};
  script_t script;

  script_open(&script);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    outcome_t outcome;
    ear_t ear = {0};

    mock_once(script.mock, "POST", rows[i].path, reply_text,
              (void *)rows[i].text);
    script_fails(&script, &outcome, ask_stream(&ear, &script, rows[i].form),
                 TNK_ESERVER);
    CHECK(strstr(outcome.text, "out of luck") != NULL);
    CHECK_INT(ear.n_events, rows[i].n_events);
    outcome_drop(&outcome);
  }
  /* Of an error that is none, and of texts that speak of one. */
  {
    outcome_t outcome;
    ear_t ear = {0};

    mock_once(script.mock, "POST", CHAT, reply_text,
              (void *)"data: {\"error\":null}\n\ndata: {\"t\":\"\\\"error\\\"\""
                      "}\n\ndata: \"error\"\n\ndata: [DONE]\n\n");
    script_ok(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT));
    CHECK_INT(ear.n_events, 3);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

static void reply_large(mock_request_t *request, void *user) {
  const int *status = user;
  static char text[1400000];

  memset(text, 'x', sizeof(text));
  memcpy(text, "data: 1\n\ndata: ", 15);
  mock_reply(request, *status, STREAM_TYPE, text, sizeof(text));
}

TEST(I1_events_and_refusals_that_are_too_large) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};
  int status = 200;

  script_open(&script);
  mock_on(script.mock, "POST", CHAT, reply_large, &status);
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_ETOOBIG);
  CHECK(strstr(outcome.text, "larger than 1 MiB, after 1 events") != NULL);
  CHECK_INT(ear.n_events, 1);
  outcome_drop(&outcome);
  status = 404;
  script_fails(&script, &outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT),
               TNK_ETOOBIG);
  CHECK(strstr(outcome.text, "HTTP 404") != NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(I4_a_stream_that_falls_silent) {
  script_t script;
  cut_t cut = {.cut = SECOND_END};
  ear_t ear = {0};
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", MESSAGES, begin_cut, &cut);
  outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_MESSAGES));
  script_turns(&script);
  CHECK_INT(ear.n_events, 2);
  script_advance(&script, 599000);
  CHECK_INT(outcome.n_done, 0);
  for (int i = 0; i < 10 && outcome.n_done == 0; i++)
    script_advance(&script, 600000);
  CHECK_INT(outcome.status, TNK_ETIMEDOUT);
  CHECK_STR(outcome.text, "messages: the stream fell silent after 2 events");
  outcome_drop(&outcome);
  script_close(&script);
}

/* Nobody waits for what comes behind the end. */
TEST(I4_a_stream_that_goes_on_behind_its_end) {
  script_t script;
  cut_t cut = {.cut = sizeof(messages_stream) - 1};
  ear_t ear = {0};
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", MESSAGES, begin_cut, &cut);
  outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_MESSAGES));
  script_turns(&script);
  put_piece(cut.request, messages_stream, sizeof(messages_stream) - 1);
  script_turns(&script);
  CHECK_INT(ear.n_events, 3);
  CHECK_INT(outcome.n_done, 0);
  script_advance(&script, 1000);
  outcome_ok(&script, &outcome);
  CHECK_INT(ear.n_events, 3);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(I3_repeats_come_before_the_first_event) {
  script_t script;
  outcome_t outcome;
  ear_t ear = {0};

  script_open(&script);
  mock_on(script.mock, "POST", CHAT, reply_text, (void *)chat_stream);
  mock_json_once(script.mock, "POST", CHAT, 429, "{}");
  mock_json_once(script.mock, "POST", CHAT, 503, "{}");
  mock_once(script.mock, "POST", CHAT, mock_reset, NULL);
  outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT));
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  outcome_ok(&script, &outcome);
  CHECK_STR(ear.text, "message|{\"n\":1};message|{\"n\":2};");
  CHECK_INT(mock_count(script.mock, "POST", CHAT), 4);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- What the program does meanwhile ---- */

/* In each event, each way to end it. */
TEST(I4_the_program_ends_it_inside_of_an_event) {
  static const int acts[] = {ACT_REFUSE, ACT_CANCEL, ACT_CLOSE};

  for (int at = 1; at <= 3; at++)
    for (size_t i = 0; i < 3; i++) {
      script_t script;
      outcome_t outcome;
      ear_t ear = {.act_at = at, .act = acts[i]};

      script_open(&script);
      mock_on(script.mock, "POST", MESSAGES, reply_text,
              (void *)messages_stream);
      ear.promise = ask_stream(&ear, &script, TNK_HOSTED_MESSAGES);
      tnk_promise_ref(ear.promise);
      outcome_of(&outcome, ear.promise);
      outcome_fails(&script, &outcome,
                    ear.act == ACT_CLOSE ? TNK_ECLOSED : TNK_ECANCELED);
      CHECK_INT(ear.n_events, at);
      outcome_drop(&outcome);
      tnk_promise_unref(ear.promise);
      if (ear.act == ACT_CLOSE)
        script_end(&script);
      else
        script_close(&script);
    }
}

TEST(I4_cancel_ends_the_request) {
  script_t script;
  cut_t cut = {.cut = FIRST_END + 4};
  ear_t ear = {0};
  outcome_t outcome;

  script_open(&script);
  mock_on(script.mock, "POST", MESSAGES, begin_cut, &cut);
  ear.promise = ask_stream(&ear, &script, TNK_HOSTED_MESSAGES);
  tnk_promise_ref(ear.promise);
  outcome_of(&outcome, ear.promise);
  script_turns(&script);
  CHECK_INT(ear.n_events, 1);
  tnk_promise_cancel(ear.promise);
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  script_turns(&script);
  CHECK(cut.request->is_gone);
  CHECK_INT(ear.n_events, 1);
  outcome_drop(&outcome);
  tnk_promise_unref(ear.promise);
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
