/* SPDX-License-Identifier: MIT */
/*
 * Samples as streams of tokens (I2): what is sent, what comes, what is counted.
 */
#include "task/stream.h"

/* ---- What is sent and what comes ---- */

TEST(I2_tokens_come_one_by_one) {
  const mock_request_t *request;
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  stream_open(&script, reply_text, three_tokens);
  script_ok(&script, &outcome, stream(&ear, &script));
  check_three(&outcome, &ear);
  request = mock_find(script.mock, "POST", STREAM, 0);
  CHECK_STR(mock_header(request, "accept"), "text/event-stream");
  CHECK_STR(mock_header(request, "x-tinker-sampling-backpressure"), "1");
  CHECK(mock_header(request, "x-sdk-method") == NULL);
  CHECK_INT(script_number(request, "seq_id"), 0);
  CHECK_INT(script_number(request, "num_samples"), 1);
  outcome_drop(&outcome);
  /* The numbers are those of all samples of the client. */
  ear = (stream_ear_t){0};
  script_ok(&script, &outcome, stream(&ear, &script));
  CHECK_INT(script_number(mock_find(script.mock, "POST", STREAM, 1), "seq_id"),
            1);
  outcome_drop(&outcome);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/retrieve_future"), 0);
  script_close(&script);
}

/* At every byte: nothing is held back, and nothing comes twice. */
TEST_LIMIT(I2_tokens_come_as_they_are_written, 60) {
  const size_t n = sizeof(three_tokens) - 1;
  script_t script;
  piece_t piece = {0};

  stream_open(&script, reply_piece, &piece);
  for (piece.n = 0; piece.n <= n; piece.n++) {
    stream_ear_t ear = {0};
    outcome_t outcome;

    outcome_of(&outcome, stream(&ear, &script));
    script_turns(&script);
    CHECK_INT(ear.n_tokens, n_whole(piece.n));
    put_piece(piece.request, three_tokens + piece.n, n - piece.n);
    end_pieces(piece.request);
    outcome_ok(&script, &outcome);
    check_three(&outcome, &ear);
    outcome_drop(&outcome);
  }
  script_close(&script);
}

TEST(I2_streams_without_listeners_or_tokens) {
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;
  size_t n;

  stream_open(&script, reply_text, three_tokens);
  script_ok(
      &script, &outcome,
      tnk_sampling_sample_stream(script.sampling, script_prompt(), NULL, NULL));
  tnk_samples_tokens(tnk_promise_samples(outcome.promise), 0, &n);
  CHECK_INT(n, 3);
  outcome_drop(&outcome);
  mock_once(script.mock, "POST", STREAM, reply_text,
            (void *)"data: {\"finish_reason\":\"stop\",\"total_tokens\":2}\n\n"
                    "data: [DONE]\n\n");
  script_ok(&script, &outcome,
            tnk_sampling_sample_stream(script.sampling, script_prompt(), NULL,
                                       &options));
  CHECK(tnk_samples_tokens(tnk_promise_samples(outcome.promise), 0, &n) ==
        NULL);
  CHECK_INT(n, 0);
  CHECK(tnk_samples_logprobs(tnk_promise_samples(outcome.promise), 0, &n) ==
        NULL);
  CHECK_INT(tnk_samples_stop_reason(tnk_promise_samples(outcome.promise), 0),
            TNK_STOP_SEQUENCE);
  outcome_drop(&outcome);
  options.silence_ms = 86400001;
  script_fails(&script, &outcome,
               tnk_sampling_sample_stream(script.sampling, script_prompt(),
                                          NULL, &options),
               TNK_EINVAL);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- What it holds, and what is counted ---- */

TEST(I2_streams_under_way_keep_nothing_from_others) {
  enum { N = 80 }; /* more than may be submitted at once */
  script_t script;
  outcome_t outcomes[N];
  outcome_t sample;
  stream_ear_t ears[N] = {0};

  stream_open(&script, mock_hold, NULL);
  mock_on(script.mock, "POST", STREAM, reply_piece,
          &(piece_t){.n = three_ends[0]});
  for (size_t i = 0; i < N; i++)
    outcome_of(&outcomes[i], stream(&ears[i], &script));
  while (ears[N - 1].n_tokens == 0)
    script_turns(&script);
  script_ok(&script, &sample, script_sample(&script));
  outcome_drop(&sample);
  CHECK_INT(script.service->session.limits.sample_slots.n_held, 0);
  CHECK(script.service->session.limits.sample_bytes.balance ==
        script.service->session.limits.sample_bytes.size);
  script_close(&script);
  for (size_t i = 0; i < N; i++)
    CHECK_INT(outcomes[i].status, TNK_ECLOSED);
  outcome_drop_all(outcomes, N);
}

static tnk_totals_t totals_of(const script_t *script) {
  tnk_totals_t totals = TNK_TOTALS_INIT;

  CHECK_INT(tnk_service_totals(&totals, script->service), TNK_OK);
  return totals;
}

TEST(I2_what_streams_use_is_counted) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  piece_t piece = {.n = 100};
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};

  stream_open(&script, reply_text, three_tokens);
  params.max_tokens = 3;
  script_ok(&script, &outcome, stream_with(&ear, &script, &params));
  outcome_drop(&outcome);
  CHECK_INT(totals_of(&script).n_prompt_tokens, 2);
  CHECK_INT(totals_of(&script).n_sampled_tokens, 3);
  CHECK_INT(totals_of(&script).n_doubtful_tokens, 0);
  /* One that breaks may have used all that it could. */
  ear = (stream_ear_t){0};
  mock_once(script.mock, "POST", STREAM, reply_piece, &piece);
  outcome_of(&outcome, stream_with(&ear, &script, &params));
  script_turns(&script);
  CHECK_INT(ear.n_tokens, 1);
  mock_break(piece.request);
  stream_wait(&script, &outcome);
  CHECK_INT(outcome.status, TNK_ECONN);
  CHECK_INT(tnk_promise_error(outcome.promise)->ran, TNK_RAN_YES);
  outcome_drop(&outcome);
  CHECK_INT(totals_of(&script).n_sampled_tokens, 3);
  CHECK_INT(totals_of(&script).n_doubtful_tokens, 5);
  script_close(&script);
}

TEST(I2_streams_are_observed) {
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};
  piece_t piece = {.n = three_ends[1]};
  tnk_promise_t *promise;
  char text[512];

  stream_open(&script, reply_piece, &piece);
  promise = stream(&ear, &script);
  outcome_of(&outcome, promise);
  script_turns(&script);
  CHECK_INT(ear.n_tokens, 2);
  script_advance(&script, 3000);
  CHECK(tnk_promise_explain(promise, text, sizeof(text)) > 0);
  if (strstr(text, "sample_stream: 2 tokens have come") == NULL)
    test_fail(__FILE__, __LINE__, "%s", text);
  put_piece(piece.request, three_tokens + piece.n,
            sizeof(three_tokens) - 1 - piece.n);
  end_pieces(piece.request);
  outcome_ok(&script, &outcome);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Memory ---- */

static int run_without(long n) {
  script_t script;
  outcome_t outcome;
  stream_ear_t ear = {0};
  int did_fail;

  stream_open(&script, reply_text, three_tokens);
  test_alloc_fail_at(n);
  outcome_of(&outcome, stream(&ear, &script));
  for (int i = 0; i < 100 && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || (did_fail && outcome.status == TNK_ENOMEM));
  CHECK(ear.n_tokens <= 3);
  if (outcome.status == TNK_OK)
    check_three(&outcome, &ear);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(S3_26a_streams_without_memory, 60) {
  for (long n = 0; run_without(n); n++)
    CHECK(n < 1000);
}
