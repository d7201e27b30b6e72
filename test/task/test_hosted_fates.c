/* SPDX-License-Identifier: MIT */
/* The fates of a stream (I4): how it breaks, ends, and is ended. */
#include <jansson.h>

#include "task/hosted.h"

/* ---- Fates ---- */

static void reply_part(mock_request_t *request, void *user) {
  const size_t *n = user;

  begin_pieces(request);
  put_piece(request, chat_stream, *n);
  mock_break(request);
}

/* What an attempt has left of an event is none of the next attempt's. */
TEST(I4_half_an_event_is_forgotten) {
  script_t script;
  cut_t cut = {.cut = FIRST_END - 4};
  outcome_t outcome;
  ear_t ear = {0};

  script_open(&script);
  mock_on(script.mock, "POST", MESSAGES, reply_text, (void *)messages_stream);
  mock_once(script.mock, "POST", MESSAGES, begin_cut, &cut);
  outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_MESSAGES));
  script_turns(&script);
  mock_break(cut.request);
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_advance(&script, 500);
  outcome_ok(&script, &outcome);
  CHECK_STR(ear.text,
            "message_start|{\"n\":1};delta|{\"n\":2};message_stop|{};");
  outcome_drop(&outcome);
  script_close(&script);
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

static void *no_memory(size_t size) {
  (void)size;
  return NULL;
}

/* What cannot be looked into may be a failure, and is not given out. */
TEST(I4_an_event_without_memory_to_read_it) {
  json_malloc_t had_malloc;
  json_free_t had_free;
  outcome_t outcome;
  script_t script;
  ear_t ear = {0};

  script_open(&script);
  mock_once(script.mock, "POST", CHAT, reply_text,
            (void *)"data: {\"n\":1}\n\ndata: {\"error\":\"no\"}\n\n"
                    "data: [DONE]\n\n");
  outcome_of(&outcome, ask_stream(&ear, &script, TNK_HOSTED_CHAT));
  json_get_alloc_funcs(&had_malloc, &had_free);
  json_set_alloc_funcs(no_memory, had_free);
  outcome_fails(&script, &outcome, TNK_ENOMEM);
  json_set_alloc_funcs(had_malloc, had_free);
  CHECK_INT(ear.n_events, 1);
  outcome_drop(&outcome);
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

static tnk_promise_t *ask_held(script_t *script, const script_held_t *held,
                               int n) {
  tnk_promise_t *promise = ask(script, TNK_HOSTED_CHAT);

  while (held->n < n)
    script_turns(script);
  return promise;
}

static void answer_held(script_t *script, mock_request_t *request,
                        tnk_promise_t *promise) {
  outcome_t outcome;

  outcome_of(&outcome, promise);
  mock_reply_json(request, 200, "{\"id\":1}");
  outcome_ok(script, &outcome);
  outcome_drop(&outcome);
}

/* One on a new connection, which nobody has been served on, while others are
 * on an older one: that is no sign that it is not generated. */
TEST(I3_what_takes_long_is_not_asked_twice) {
  script_held_t held = {.n = 0};
  script_t script;
  tnk_promise_t *first;
  tnk_promise_t *slow;
  tnk_promise_t *third;

  script_open(&script);
  mock_on(script.mock, "POST", CHAT, script_hold, &held);
  first = ask_held(&script, &held, 1);
  slow = ask_held(&script, &held, 2);
  answer_held(&script, held.requests[0], first);
  script_advance(&script, 1000);
  third = ask_held(&script, &held, 3);
  answer_held(&script, held.requests[2], third);
  for (int i = 0; i < 60; i++)
    script_advance(&script, 1000);
  CHECK_INT(held.n, 3);
  answer_held(&script, held.requests[1], slow);
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
  static const ear_act_t acts[] = {ACT_REFUSE, ACT_CANCEL, ACT_CLOSE};

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
