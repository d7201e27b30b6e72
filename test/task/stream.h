/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_STREAM_H
#define TNK_TEST_TASK_STREAM_H

#include <math.h>

#include "task/hosted.h"

#define STREAM "/api/v1/stream_sample"

/* A stream of three tokens, of which the last comes with the end. */
static const char three_tokens[] =
    "data: {\"token\":\"a\",\"token_id\":7,\"index\":0,\"logprob\":-0.5}\n\n"
    ": still here\n\n"
    "data: {\"token_id\":8,\"index\":1,\"logprob\":null,\"new\":{\"x\":[]}}\r\n"
    "\r\n"
    "event: token\ndata: {\"token_id\":9,\"logprob\":-2,\"finish_reason\":"
    "\"length\",\"total_tokens\":3}\n\n";

/* Where its tokens are whole. */
static const size_t three_ends[] = {59, 136, sizeof(three_tokens) - 1};

/* What the program hears of a stream. */
typedef struct {
  script_t *script;
  tnk_promise_t *promise;
  char text[512]; /* "index:token:text;" */
  int n_tokens;
  int act_at; /* the token at which it acts; 0: none */
  ear_act_t act;
} stream_ear_t;

static inline int on_token(const tnk_stream_token_t *token, void *user) {
  stream_ear_t *ear = user;
  const size_t n = strlen(ear->text);

  ear->n_tokens++;
  if (ear->n_tokens == ear->act_at && ear->act == ACT_CANCEL)
    tnk_promise_cancel(ear->promise);
  if (ear->n_tokens == ear->act_at && ear->act == ACT_CLOSE)
    tnk_service_close(ear->script->service, script_closed, ear->script);
  /* It is still whole. */
  snprintf(ear->text + n, sizeof(ear->text) - n, "%u:%d:%s;",
           (unsigned)token->index, token->token,
           token->text != NULL ? token->text : "");
  CHECK(isnan(token->logprob) || token->logprob <= 0);
  return ear->n_tokens == ear->act_at && ear->act == ACT_REFUSE;
}

static inline tnk_promise_t *stream_with(stream_ear_t *ear, script_t *script,
                                         const tnk_sampling_params_t *params) {
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;

  ear->script = script;
  options.on_token = on_token;
  options.user = ear;
  return tnk_sampling_sample_stream(script->sampling, script_prompt(), params,
                                    &options);
}

static inline tnk_promise_t *stream(stream_ear_t *ear, script_t *script) {
  return stream_with(ear, script, NULL);
}

/* A script with a client, whose server answers streams by `handler`. */
static inline void stream_open(script_t *script,
                               void (*handler)(mock_request_t *, void *),
                               const void *user) {
  script_open(script);
  script_sampler(script);
  mock_on(script->mock, "POST", STREAM, handler, (void *)user);
}

/* So many bytes of a stream, and then what `how` says. */
typedef struct {
  size_t n;
  int breaks;
  mock_request_t *request;
} piece_t;

static inline void reply_piece(mock_request_t *request, void *user) {
  piece_t *piece = user;

  piece->request = request;
  begin_pieces(request);
  put_piece(request, three_tokens, piece->n);
  if (piece->breaks)
    mock_break(request);
}

static inline int n_whole(size_t n) {
  int n_tokens = 0;

  for (size_t i = 0; i < 3; i++)
    n_tokens += n >= three_ends[i];
  return n_tokens;
}

static inline void stream_wait(script_t *script, const outcome_t *outcome) {
  for (int i = 0; i < 400 && outcome->n_done == 0; i++)
    script_advance(script, 500);
  CHECK_INT(outcome->n_done, 1);
}

static inline void check_three(const outcome_t *outcome,
                               const stream_ear_t *ear) {
  const tnk_samples_t *samples = tnk_promise_samples(outcome->promise);
  const int32_t *tokens;
  const float *logprobs;
  size_t n;

  CHECK_STR(ear->text, "0:7:a;1:8:;2:9:;");
  CHECK_INT(tnk_samples_count(samples), 1);
  tokens = tnk_samples_tokens(samples, 0, &n);
  CHECK(n == 3 && tokens[0] == 7 && tokens[1] == 8 && tokens[2] == 9);
  logprobs = tnk_samples_logprobs(samples, 0, &n);
  CHECK(n == 3 && logprobs[0] == -0.5f && isnan(logprobs[1]) &&
        logprobs[2] == -2.0f);
  CHECK_INT(tnk_samples_stop_reason(samples, 0), TNK_STOP_LENGTH);
}

#endif
