/* SPDX-License-Identifier: MIT */
/* The fates of a sample's stream (I4): how it breaks, ends, and is ended. */
#include "task/stream.h"

/* ---- It breaks ---- */

/* At every byte. What has come is given out once, and the end says how much;
 * before the first token it is sampled again. */
TEST_LIMIT(I4_sample_streams_that_break_anywhere, 90) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const size_t n = sizeof(three_tokens) - 1;
  piece_t piece = {.breaks = 1};

  options.max_retries = 1;
  options.patience_ms = 1000;
  for (piece.n = 0; piece.n <= n; piece.n += piece.n % 16 < 12 ? 1 : 3) {
    const int is_whole = piece.n == n;
    script_t script;
    outcome_t outcome;
    stream_ear_t ear = {0};
    char words[64];

    script_open_with(&script, options);
    script_sampler(&script);
    mock_on(script.mock, "POST", STREAM, reply_piece, &piece);
    outcome_of(&outcome, stream(&ear, &script));
    stream_wait(&script, &outcome);
    CHECK_INT(ear.n_tokens, n_whole(piece.n));
    CHECK_INT(outcome.status, is_whole ? TNK_OK : TNK_ECONN);
    snprintf(words, sizeof(words), "broke off after %d tokens", ear.n_tokens);
    if (!is_whole && ear.n_tokens > 0 && strstr(outcome.text, words) == NULL)
      test_fail(__FILE__, __LINE__, "%s", outcome.text);
    /* Over HTTP/2 the break may come with the events, before they are given
     * out; then it is sampled again too. */
    if (ear.n_tokens > 0 && !mock_over_http2())
      CHECK_INT(mock_count(script.mock, "POST", STREAM), 1);
    else if (ear.n_tokens == 0)
      CHECK(mock_count(script.mock, "POST", STREAM) > 1);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(I4_a_sample_begins_anew_before_its_first_token) {
  piece_t piece = {.n = three_ends[0] - 3, .breaks = 1};
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  stream_open(&script, reply_text, three_tokens);
  mock_once(script.mock, "POST", STREAM, reply_piece, &piece);
  mock_json_once(script.mock, "POST", STREAM, 429, "{}");
  mock_json_once(script.mock, "POST", STREAM, 503, "{}");
  mock_once(script.mock, "POST", STREAM, mock_reset, NULL);
  mock_once(script.mock, "POST", STREAM, reply_text,
            (void *)"data: [DONE]\n\n");
  outcome_of(&outcome, stream(&ear, &script));
  stream_wait(&script, &outcome);
  outcome_ok(&script, &outcome);
  check_three(&outcome, &ear);
  CHECK_INT(mock_count(script.mock, "POST", STREAM), 6);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(I4_a_sample_stream_that_falls_silent) {
  piece_t piece = {.n = three_ends[1]};
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  stream_open(&script, reply_piece, &piece);
  outcome_of(&outcome, stream(&ear, &script));
  script_turns(&script);
  CHECK_INT(ear.n_tokens, 2);
  script_advance(&script, 599000);
  CHECK_INT(outcome.n_done, 0);
  for (int i = 0; i < 10 && outcome.n_done == 0; i++)
    script_advance(&script, 600000);
  CHECK_INT(outcome.status, TNK_ETIMEDOUT);
  CHECK(strstr(outcome.text, "fell silent after 2 tokens") != NULL);
  CHECK_INT(mock_count(script.mock, "POST", STREAM), 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- It ends otherwise ---- */

#define ONE "data: {\"token_id\":7,\"index\":0}\n\n"
#define END "data: {\"finish_reason\":\"stop\"}\n\n"

TEST(I4_sample_streams_that_are_none_or_lack_something) {
  static const struct {
    const char *text;
    int code;
    const char *says;
    int n_tokens;
  } rows[] = {
      {ONE, TNK_ECONN, "without a finish_reason, after 1 tokens", 1},
      {ONE "data: [DONE]\n\n", TNK_ECONN, "without a finish_reason", 1},
      {ONE "data: \"[DONE]\"\n\n", TNK_ECONN, "without a finish_reason", 1},
      {ONE "data: {\"finish_reason\":\"stop\"}\n", TNK_ECONN, "within an event",
       1},
      {ONE "data: {\"token_id\":8,\"index\":2}\n\n" END, TNK_EPROTO,
       "left out tokens, or repeats them, after 1 tokens", 1},
      {ONE ONE END, TNK_EPROTO, "left out tokens", 1},
      {ONE "data: {\"finish_reason\":\"stop\",\"total_tokens\":2}\n\n",
       TNK_EPROTO, "counts other tokens than have come, after 1", 1},
      {ONE "data: {\"token_id\":8,\"index\":1}\n\n"
           "data: {\"token_id\":9,\"index\":2}\n\n" END,
       TNK_EPROTO, "more tokens than were asked for, after 2", 2},
      {ONE "data: no\n\n" END, TNK_EPROTO, "cannot be read, after 1", 1},
      {ONE "data: [1]\n\n" END, TNK_EPROTO, "cannot be read", 1},
      {"data: {\"token\":\"a\"}\n\n" END, TNK_EPROTO, "cannot be read", 0},
      {"data: {\"token_id\":-1}\n\n" END, TNK_EPROTO, "cannot be read", 0},
      {"data: {\"token_id\":2147483648}\n\n" END, TNK_EPROTO, "cannot be read",
       0},
      {"data: {\"token_id\":1.5}\n\n" END, TNK_EPROTO, "cannot be read", 0},
      {"data: {\"token_id\":1,\"index\":-1}\n\n" END, TNK_EPROTO,
       "cannot be read", 0},
      {"data: {\"token_id\":1,\"logprob\":\"x\"}\n\n" END, TNK_EPROTO,
       "cannot be read", 0},
      {ONE "data: {\"finish_reason\":\"whim\"}\n\n", TNK_EPROTO,
       "cannot be read", 1},
      {ONE "data: {\"finish_reason\":1}\n\n", TNK_EPROTO, "cannot be read", 1}};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  script_t script;

  params.max_tokens = 2;
  script_open(&script);
  script_sampler(&script);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    outcome_t outcome;
    stream_ear_t ear = {0};

    mock_once(script.mock, "POST", STREAM, reply_text, (void *)rows[i].text);
    outcome_of(&outcome, stream_with(&ear, &script, &params));
    stream_wait(&script, &outcome);
    if (outcome.status != rows[i].code ||
        strstr(outcome.text, rows[i].says) == NULL)
      test_fail(__FILE__, __LINE__, "%zu: %s", i, outcome.text);
    CHECK_INT(ear.n_tokens, rows[i].n_tokens);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

/* Counts of the sequence, and of the prompt with it. */
TEST(I4_totals_that_servers_count) {
  static const char *const texts[] = {
      ONE "data: {\"finish_reason\":\"stop\",\"total_tokens\":1}\n\n",
      ONE "data: {\"finish_reason\":\"stop\",\"total_tokens\":3}\n\n",
      ONE "data: {\"finish_reason\":\"stop\",\"total_tokens\":null}\n\n"};
  script_t script;

  script_open(&script);
  script_sampler(&script);
  for (size_t i = 0; i < 3; i++) {
    outcome_t outcome;
    stream_ear_t ear = {0};

    mock_once(script.mock, "POST", STREAM, reply_text, (void *)texts[i]);
    script_ok(&script, &outcome, stream(&ear, &script));
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(I4_sample_streams_that_report_an_error) {
  static const struct {
    const char *text;
    int n_tokens;
  } rows[] = {
      {ONE "data: {\"error\":\"out of luck\",\"category\":\"server\"}\n\n" END,
       1},
      {ONE "data: {\"error\":{\"message\":\"out of luck\"}}\n\n", 1},
      {"event: error\ndata: {\"message\":\"out of luck\"}\n\n", 0}};
  script_t script;

  script_open(&script);
  script_sampler(&script);
  for (size_t i = 0; i < 3; i++) {
    outcome_t outcome;
    stream_ear_t ear = {0};
    char words[64];

    mock_once(script.mock, "POST", STREAM, reply_text, (void *)rows[i].text);
    script_fails(&script, &outcome, stream(&ear, &script), TNK_EFAILED);
    CHECK(strstr(outcome.text, "out of luck") != NULL);
    snprintf(words, sizeof(words), "sample_stream after %d tokens",
             rows[i].n_tokens);
    if (strstr(outcome.text, words) == NULL)
      test_fail(__FILE__, __LINE__, "%s", outcome.text);
    CHECK_STR(tnk_promise_error(outcome.promise)->message, "out of luck");
    CHECK_INT(ear.n_tokens, rows[i].n_tokens);
    outcome_drop(&outcome);
  }
  {
    outcome_t outcome;
    stream_ear_t ear = {0};

    mock_once(script.mock, "POST", STREAM, reply_text,
              (void *)"data: {\"token_id\":7,\"error\":null}\n\n" END);
    script_ok(&script, &outcome, stream(&ear, &script));
    CHECK_INT(ear.n_tokens, 1);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

/* ---- Servers without it ---- */

TEST(I2_servers_that_offer_no_streams) {
  static const int statuses[] = {404, 405, 501};
  script_t script;

  script_open(&script);
  script_sampler(&script);
  for (size_t i = 0; i < 3; i++) {
    outcome_t outcome;
    stream_ear_t ear = {0};

    mock_json_once(script.mock, "POST", STREAM, statuses[i],
                   "{\"detail\":\"Not Found\"}");
    script_fails(&script, &outcome, stream(&ear, &script), TNK_EUNSUPPORTED);
    CHECK(strstr(outcome.text, "not offered by this server") != NULL);
    outcome_drop(&outcome);
    if (statuses[i] != 404)
      break;
  }
  /* That is kept, other than a 404, which may be of the sampler. */
  {
    outcome_t outcome;
    stream_ear_t ear = {0};

    script_fails(&script, &outcome, stream(&ear, &script), TNK_EUNSUPPORTED);
    outcome_drop(&outcome);
  }
  CHECK_INT(mock_count(script.mock, "POST", STREAM), 2);
  script_close(&script);
  script_open(&script);
  script_sampler(&script);
  mock_json_once(script.mock, "POST", STREAM, 501, "{}");
  {
    outcome_t outcome;
    stream_ear_t ear = {0};

    script_fails(&script, &outcome, stream(&ear, &script), TNK_EUNSUPPORTED);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(I2_answers_that_are_no_streams) {
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  script_open(&script);
  script_sampler(&script);
  mock_json(script.mock, "POST", STREAM, 200, "{\"request_id\":\"x\"}");
  script_fails(&script, &outcome, stream(&ear, &script), TNK_EPROTO);
  CHECK(strstr(outcome.text, "not an event stream") != NULL);
  CHECK_INT(mock_count(script.mock, "POST", STREAM), 1);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- What the program does meanwhile ---- */

TEST(I4_the_program_ends_it_inside_of_a_token) {
  static const ear_act_t acts[] = {ACT_REFUSE, ACT_CANCEL, ACT_CLOSE};

  for (int at = 1; at <= 3; at++)
    for (size_t i = 0; i < 3; i++) {
      script_t script;
      outcome_t outcome;
      stream_ear_t ear = {.act_at = at, .act = acts[i]};

      stream_open(&script, reply_text, three_tokens);
      ear.promise = stream(&ear, &script);
      tnk_promise_ref(ear.promise);
      outcome_of(&outcome, ear.promise);
      outcome_fails(&script, &outcome,
                    ear.act == ACT_CLOSE ? TNK_ECLOSED : TNK_ECANCELED);
      CHECK_INT(ear.n_tokens, at);
      outcome_drop(&outcome);
      tnk_promise_unref(ear.promise);
      if (ear.act == ACT_CLOSE)
        script_end(&script);
      else
        script_close(&script);
    }
}

/* Also where the server wants to be told of samples that nobody waits for. */
TEST(I4_cancel_ends_a_sample_stream) {
  for (size_t n = 0; n <= three_ends[0]; n += three_ends[0]) {
    piece_t piece = {.n = n};
    script_t script;
    outcome_t outcome;
    stream_ear_t ear = {0};

    script_open(&script);
    script_flags(&script, "{\"sample_cancel_enabled\":true}");
    script_sampler(&script);
    mock_on(script.mock, "POST", STREAM, reply_piece, &piece);
    ear.promise = stream(&ear, &script);
    tnk_promise_ref(ear.promise);
    outcome_of(&outcome, ear.promise);
    while (piece.request == NULL)
      script_turns(&script);
    script_turns(&script);
    CHECK_INT(ear.n_tokens, n > 0);
    tnk_promise_cancel(ear.promise);
    outcome_fails(&script, &outcome, TNK_ECANCELED);
    script_turns(&script);
    CHECK(piece.request->is_gone);
    outcome_drop(&outcome);
    tnk_promise_unref(ear.promise);
    script_close(&script);
  }
}

/* Nobody waits for what comes behind the end. */
TEST(I4_a_sample_stream_that_goes_on_behind_its_end) {
  piece_t piece = {.n = sizeof(three_tokens) - 1};
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  stream_open(&script, reply_piece, &piece);
  outcome_of(&outcome, stream(&ear, &script));
  script_turns(&script);
  put_piece(piece.request, three_tokens, sizeof(three_tokens) - 1);
  script_turns(&script);
  CHECK_INT(ear.n_tokens, 3);
  CHECK_INT(outcome.n_done, 0);
  script_advance(&script, 1000);
  outcome_ok(&script, &outcome);
  check_three(&outcome, &ear);
  outcome_drop(&outcome);
  script_close(&script);
}
