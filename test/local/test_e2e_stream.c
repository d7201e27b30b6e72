/* SPDX-License-Identifier: MIT */
/* Samples as streams of the local server (I2, I4). */
#include "local/e2e.h"
#include "tools/local/sample/sampler.h"

enum { N = 20 };

typedef struct {
  int32_t tokens[N];
  float logprobs[N];
  size_t n;
  size_t n_texts;
  char text[N * LOCAL_TEXT_MAX];
} told_t;

static int on_token(const tnk_stream_token_t *token, void *user) {
  told_t *told = user;

  CHECK(told->n < N);
  CHECK_INT(token->index, told->n);
  told->tokens[told->n] = token->token;
  told->logprobs[told->n++] = token->logprob;
  if (token->text != NULL) {
    told->n_texts++;
    strcat(told->text, token->text);
  }
  return 0;
}

static tnk_promise_t *stream(tnk_sampling_t *sampling, told_t *told) {
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  static const int32_t tokens[] = {'t', 'h', 'e', ' '};
  const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = 4};

  *told = (told_t){.n = 0};
  options.on_token = on_token;
  options.user = told;
  params.max_tokens = N;
  params.seed = 5;
  return tnk_sampling_sample_stream(sampling, &prompt, &params, &options);
}

/* What was told, and what the samples are. */
static void check_same(const told_t *told, tnk_promise_t *promise) {
  const tnk_samples_t *samples = tnk_promise_samples(promise);
  const int32_t *tokens;
  const float *logprobs;
  size_t n;

  CHECK_INT(tnk_samples_count(samples), 1);
  tokens = tnk_samples_tokens(samples, 0, &n);
  CHECK_INT(n, told->n);
  CHECK(memcmp(tokens, told->tokens, n * sizeof(*tokens)) == 0);
  logprobs = tnk_samples_logprobs(samples, 0, &n);
  CHECK_INT(n, told->n);
  CHECK(memcmp(logprobs, told->logprobs, n * sizeof(*logprobs)) == 0);
}

TEST_LIMIT(I2_a_stream_has_the_tokens_of_a_sample, 60) {
  tnk_sampling_t *sampling;
  tnk_promise_t *sampled;
  tnk_promise_t *streamed;
  told_t told;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  sampling = e2e_snapshot(&e2e);
  sampled = e2e_ok(e2e_sample(sampling, N, 5, NULL));
  streamed = e2e_ok(stream(sampling, &told));
  CHECK_INT(told.n, N);
  check_same(&told, streamed);
  check_same(&told, sampled);
  CHECK_INT(tnk_samples_stop_reason(tnk_promise_samples(streamed), 0),
            TNK_STOP_LENGTH);
  tnk_promise_unref(sampled);
  tnk_promise_unref(streamed);
  e2e_close(&e2e);
}

/* The texts of the tokens, each followed by `mark`. */
static const char *pieces(const int32_t *tokens, size_t n, const char *mark) {
  static char out[N * LOCAL_TEXT_MAX];
  local_text_t text = {.n = 0};
  size_t len = 0;

  for (size_t i = 0; i < n; i++) {
    len += local_text_add(&text, tokens[i], i + 1 == n, out + len);
    out[len] = '\0';
    strcat(out, mark);
    len += strlen(mark);
  }
  CHECK_INT(text.n, 0);
  return out;
}

#define FFFD "\xef\xbf\xbd"

TEST(I2_a_character_is_the_text_of_its_last_token) {
  static const struct {
    const char *text;
    int32_t tokens[8];
    size_t n;
  } rows[] = {
      {"a|b|", {'a', 'b'}, 2},
      {"||\xe2\x82\xac|x|", {0xe2, 0x82, 0xac, 'x'}, 4},
      {"|||\xf0\x9f\x98\x80|", {0xf0, 0x9f, 0x98, 0x80}, 4},
      {"|" FFFD "a|", {0xe2, 'a'}, 2},
      {"||" FFFD "|\xc3\xa9|", {0xe2, 0x82, 0xc3, 0xa9}, 4},
      {"|||" FFFD FFFD "|", {0xf0, 0x9f, 0x98, 0xff}, 4},
      {FFFD "|" FFFD "|", {0x80, 0xff}, 2},
      {"|" FFFD FFFD "|" FFFD "|", {0xed, 0xa0, 0x80}, 3},
      {"||" FFFD "|", {0xf0, 0x9f, 0x98}, 3},
      {"a|" FFFD "|b|", {'a', 0, 'b'}, 3},
      {"|" FFFD FFFD "|", {0xe2, 0}, 2},
      {"<|begin|>|a|<|end|>|", {256, 'a', 257}, 3},
      {"|" FFFD "<|end|>|", {0xe2, 257}, 2},
      {"||" FFFD "<|begin|>||\xc3\xa9|", {0xe2, 0x82, 256, 0xc3, 0xa9}, 5},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    CHECK_STR(pieces(rows[i].tokens, rows[i].n, "|"), rows[i].text);
}

/* Only bytes have a known text. */
TEST_LIMIT(I2_a_stream_has_the_text_of_bytes, 60) {
  static const struct {
    int32_t n_vocab;
    int has_tokenizer;
    size_t n_texts;
  } rows[] = {{0, 0, N}, {1000, 0, 0}, {0, 1, 0}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    local_options_t options = LOCAL_OPTIONS_INIT;
    told_t told;
    e2e_t e2e;

    options.n_vocab = rows[i].n_vocab;
    options.has_tokenizer = rows[i].has_tokenizer;
    e2e_open(&e2e, options);
    e2e_train(&e2e, 4);
    e2e_done(stream(e2e_snapshot(&e2e), &told));
    CHECK_INT(told.n, N);
    CHECK_INT(told.n_texts, rows[i].n_texts);
    CHECK_STR(told.text, rows[i].n_texts > 0 ? pieces(told.tokens, N, "") : "");
    e2e_close(&e2e);
  }
}

/* Before the first token it is asked for again, and the server, which knows the
 * number, gives the same once more; after it, it is over. */
TEST_LIMIT(I4_streams_that_a_fault_cuts, 60) {
  tnk_sampling_t *sampling;
  tnk_promise_t *promise;
  told_t told;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  sampling = e2e_snapshot(&e2e);
  e2e_faults(&e2e, "drop_after_commit/stream_sample@1,"
                   "cut_body/stream_sample@2:10,503/stream_sample@3");
  promise = e2e_ok(stream(sampling, &told));
  CHECK_INT(told.n, N);
  check_same(&told, promise);
  tnk_promise_unref(promise);
  e2e_faults(&e2e, "cut_body/stream_sample@1:200");
  promise = stream(sampling, &told);
  if (tnk_wait(promise) != TNK_OK) {
    CHECK_INT(tnk_promise_status(promise), TNK_ECONN);
    CHECK(told.n > 0 && told.n < N);
    CHECK(strstr(tnk_promise_text(promise), "broke off after") != NULL);
    CHECK_INT(tnk_promise_error(promise)->ran, TNK_RAN_YES);
  } else {
    /* The end has come with the tokens, before any was given out. */
    CHECK(e2e.wire[0] != '\0');
    check_same(&told, promise);
  }
  tnk_promise_unref(promise);
  e2e_close(&e2e);
}

/* Many at once, with everything that may go wrong. */
TEST_LIMIT(I4_streams_with_faults_end_one_way_or_the_other, 120) {
  enum { N_STREAMS = 60 };
  static told_t told[N_STREAMS];
  tnk_promise_t *promises[N_STREAMS];
  tnk_sampling_t *sampling;
  e2e_t e2e;

  e2e_open(&e2e, (local_options_t)LOCAL_OPTIONS_INIT);
  e2e_train(&e2e, 4);
  sampling = e2e_snapshot(&e2e);
  e2e_faults(&e2e, "seed=3,drop_after_commit/stream_sample=10%,"
                   "cut_body/stream_sample=20%:300,reset/stream_sample=10%");
  for (size_t i = 0; i < N_STREAMS; i++)
    promises[i] = stream(sampling, &told[i]);
  for (size_t i = 0; i < N_STREAMS; i++) {
    const int status = tnk_wait(promises[i]);

    CHECK(status == TNK_OK || (status == TNK_ECONN && told[i].n > 0));
    if (status == TNK_OK)
      check_same(&told[i], promises[i]);
    tnk_promise_unref(promises[i]);
  }
  e2e_close(&e2e);
}
