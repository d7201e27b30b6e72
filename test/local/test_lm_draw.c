/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "lm_help.h"
#include "tools/local/lm/model.h"

/* A model that has trained a little, and its weights. */
typedef struct {
  tnk__lm_base_t *base;
  tnk__lm_t *lm;
  tnk__lm_weights_t *weights;
  int32_t prompt[LM_MAX_TEST];
  tnk__lm_draw_options_t o;
} setup_t;

static void set_up(setup_t *s, size_t n_prompt) {
  lm_example_t ex;

  s->base = tnk__lm_base_new(test_allocator());
  CHECK(s->base != NULL);
  s->lm = lm_model(s->base, 8, 1);
  lm_learn(s->lm, 4, 64);
  s->weights = tnk__lm_snapshot(s->lm);
  CHECK(s->weights != NULL);
  lm_datum(&ex, 0, n_prompt);
  memcpy(s->prompt, ex.tokens, n_prompt * sizeof(*s->prompt));
  memset(&s->o, 0, sizeof(s->o));
  s->o.prompt = s->prompt;
  s->o.n_prompt = n_prompt;
  s->o.n_samples = 1;
  s->o.max_tokens = 12;
  s->o.seed = 42;
  s->o.temperature = 1;
  s->o.top_p = 1;
}

static void tear_down(setup_t *s) {
  tnk__lm_weights_free(s->weights);
  tnk__lm_free(s->lm);
  tnk__lm_base_free(s->base);
}

static tnk__lm_draw_t *draw_in(setup_t *s, size_t slice) {
  tnk__lm_draw_t *draw;
  int done = 0;

  CHECK_INT(tnk__lm_draw_new(&draw, s->weights, &s->o, test_allocator(), NULL),
            TNK_OK);
  while (!done)
    CHECK_INT(tnk__lm_draw_step(draw, slice, &done), TNK_OK);
  return draw;
}

/* Logprobs that a pass reports for tokens 1 .. n - 1. */
static void pass(setup_t *s, const int32_t *tokens, size_t n, float *out) {
  tnk__lm_loss_t loss = lm_loss(NULL);
  tnk__lm_datum_t d = {.tokens = tokens, .n_tokens = n - 1, .n_targets = 1};
  int64_t targets[LM_MAX_TEST];
  double sum = 0;
  size_t i;

  for (i = 0; i + 1 < n; i++)
    targets[i] = tokens[i + 1];
  d.targets = targets;
  CHECK_INT(tnk__lm_run(s->lm, &loss, &d, 0, out, &sum), TNK_OK);
}

/* Three samples, of as many tokens as a pass can hold in the tests. */
static void check_against_passes(size_t n_prompt, size_t n_sampled) {
  setup_t s;
  tnk__lm_draw_t *draw;
  const float *logprobs;
  int32_t tokens[LM_MAX_TEST];
  float expected[LM_MAX_TEST];
  uint32_t i;

  set_up(&s, n_prompt);
  s.o.n_samples = 3;
  s.o.max_tokens = (uint32_t)n_sampled;
  s.o.prompt_logprobs = 1;
  s.o.stop_kind = TNK__LM_STOP_LISTED;
  draw = draw_in(&s, 17);
  logprobs = tnk__lm_draw_prompt(draw).logprobs;
  memcpy(tokens, s.prompt, n_prompt * sizeof(*tokens));
  for (i = 0; i < 3; i++) {
    tnk__lm_sample_t sample = tnk__lm_draw_sample(draw, i);
    CHECK_INT(sample.n_tokens, n_sampled);
    CHECK_INT(sample.reason, TNK__LM_LENGTH);
    memcpy(tokens + n_prompt, sample.tokens, n_sampled * sizeof(*tokens));
    pass(&s, tokens, n_prompt + n_sampled, expected);
    CHECK_MEM(sample.logprobs, n_sampled * sizeof(float),
              expected + n_prompt - 1, n_sampled * sizeof(float));
    CHECK(isnan(logprobs[0]));
    CHECK_MEM(logprobs + 1, (n_prompt - 1) * sizeof(float), expected,
              (n_prompt - 1) * sizeof(float));
  }
  tnk__lm_draw_free(draw);
  tear_down(&s);
}

TEST(logprobs_equal_those_of_a_pass_bit_for_bit) {
  check_against_passes(70, 70);
  check_against_passes(1, 3);
}

TEST(logprobs_beyond_the_window) {
  CHECK(TNK__LM_WINDOW + TNK__LM_BLOCK < 330);
  check_against_passes(310, 20);
}

static void check_same(const tnk__lm_draw_t *a, uint32_t i,
                       const tnk__lm_draw_t *b, uint32_t j) {
  tnk__lm_sample_t x = tnk__lm_draw_sample(a, i);
  tnk__lm_sample_t y = tnk__lm_draw_sample(b, j);

  CHECK_INT(x.reason, y.reason);
  CHECK_MEM(x.tokens, x.n_tokens * sizeof(int32_t), y.tokens,
            y.n_tokens * sizeof(int32_t));
  CHECK_MEM(x.logprobs, x.n_tokens * sizeof(float), y.logprobs,
            y.n_tokens * sizeof(float));
}

static int differ(const tnk__lm_draw_t *a, uint32_t i, const tnk__lm_draw_t *b,
                  uint32_t j) {
  tnk__lm_sample_t x = tnk__lm_draw_sample(a, i);
  tnk__lm_sample_t y = tnk__lm_draw_sample(b, j);

  return x.n_tokens != y.n_tokens ||
         memcmp(x.tokens, y.tokens, x.n_tokens * sizeof(int32_t)) != 0;
}

TEST(slices_do_not_matter_and_seeds_do) {
  setup_t s;
  tnk__lm_draw_t *whole;
  tnk__lm_draw_t *sliced;
  tnk__lm_draw_t *more;
  tnk__lm_draw_t *other;

  set_up(&s, 20);
  s.o.n_samples = 2;
  whole = draw_in(&s, 100000);
  sliced = draw_in(&s, 1);
  s.o.n_samples = 3;
  s.o.topk_sample = 4;
  more = draw_in(&s, 7);
  s.o.seed = 43;
  other = draw_in(&s, 100000);
  check_same(whole, 0, sliced, 0);
  check_same(whole, 1, sliced, 1);
  check_same(whole, 1, more, 1);
  CHECK(differ(whole, 0, whole, 1));
  CHECK(differ(whole, 0, other, 0));
  tnk__lm_draw_free(whole);
  tnk__lm_draw_free(sliced);
  tnk__lm_draw_free(more);
  tnk__lm_draw_free(other);
  tear_down(&s);
}

/* At temperature 0, top_k 1 or a tiny top_p the best token is taken. */
TEST(greedy_three_ways) {
  setup_t s;
  tnk__lm_draw_t *draw[3];
  tnk__lm_sample_t sample;
  size_t i;

  set_up(&s, 9);
  s.o.topk_sample = 3;
  s.o.temperature = 0;
  draw[0] = draw_in(&s, 100);
  s.o.temperature = 2;
  s.o.top_k = 1;
  draw[1] = draw_in(&s, 100);
  s.o.top_k = -1;
  s.o.top_p = 1e-6;
  draw[2] = draw_in(&s, 100);
  check_same(draw[0], 0, draw[1], 0);
  check_same(draw[0], 0, draw[2], 0);
  sample = tnk__lm_draw_sample(draw[0], 0);
  for (i = 0; i < sample.n_tokens; i++) {
    const float *best = sample.topk_logprobs + 3 * i;
    CHECK_INT(sample.topk_tokens[3 * i], sample.tokens[i]);
    CHECK_NEAR(best[0], sample.logprobs[i], 0);
    CHECK(best[0] >= best[1] && best[1] >= best[2]);
  }
  for (i = 0; i < 3; i++)
    tnk__lm_draw_free(draw[i]);
  tear_down(&s);
}

TEST(top_k_keeps_to_the_best) {
  setup_t s;
  tnk__lm_draw_t *draw;
  tnk__lm_sample_t sample;
  int second = 0;
  size_t i;

  set_up(&s, 9);
  s.o.topk_sample = 2;
  s.o.top_k = 2;
  s.o.max_tokens = 40;
  s.o.temperature = 5;
  draw = draw_in(&s, 100);
  sample = tnk__lm_draw_sample(draw, 0);
  for (i = 0; i < sample.n_tokens; i++) {
    CHECK(sample.tokens[i] == sample.topk_tokens[2 * i] ||
          sample.tokens[i] == sample.topk_tokens[2 * i + 1]);
    second += sample.tokens[i] == sample.topk_tokens[2 * i + 1];
  }
  CHECK(second > 0 && second < 40);
  tnk__lm_draw_free(draw);
  tear_down(&s);
}

TEST(stops) {
  setup_t s;
  tnk__lm_draw_t *draw;
  tnk__lm_draw_t *stopped;
  tnk__lm_sample_t all;
  tnk__lm_sample_t cut;
  tnk__lm_text_t text;
  char bytes[2];

  set_up(&s, 9);
  s.o.temperature = 0;
  s.o.stop_kind = TNK__LM_STOP_LISTED;
  draw = draw_in(&s, 100);
  all = tnk__lm_draw_sample(draw, 0);
  CHECK_INT(all.n_tokens, 12);
  /* By a token of the list. */
  s.o.stop_tokens = all.tokens + 4;
  s.o.n_stop_tokens = 1;
  stopped = draw_in(&s, 100);
  cut = tnk__lm_draw_sample(stopped, 0);
  CHECK_INT(cut.reason, TNK__LM_STOPPED);
  CHECK(cut.n_tokens >= 1 && cut.n_tokens <= 5);
  CHECK_INT(cut.tokens[cut.n_tokens - 1], all.tokens[4]);
  tnk__lm_draw_free(stopped);
  /* By a text. */
  s.o.n_stop_tokens = 0;
  bytes[0] = (char)all.tokens[2];
  bytes[1] = (char)all.tokens[3];
  text.bytes = bytes;
  text.length = 2;
  s.o.stop_texts = &text;
  s.o.n_stop_texts = 1;
  stopped = draw_in(&s, 100);
  cut = tnk__lm_draw_sample(stopped, 0);
  CHECK_INT(cut.reason, TNK__LM_STOPPED);
  CHECK(cut.n_tokens >= 2 && cut.n_tokens <= 4);
  CHECK_MEM(cut.tokens, cut.n_tokens * sizeof(int32_t), all.tokens,
            cut.n_tokens * sizeof(int32_t));
  tnk__lm_draw_free(stopped);
  /* The lists count only when they are asked for. */
  s.o.stop_kind = TNK__LM_STOP_EOS;
  stopped = draw_in(&s, 100);
  CHECK_INT(tnk__lm_draw_sample(stopped, 0).reason, TNK__LM_LENGTH);
  tnk__lm_draw_free(stopped);
  tnk__lm_draw_free(draw);
  tear_down(&s);
}

/* The base knows nothing, so its end token comes up by itself. */
TEST(the_end_token_stops_by_default) {
  setup_t s;
  tnk__lm_weights_t *weights;
  tnk__lm_draw_t *draw;
  tnk__lm_sample_t sample;
  int stopped = 0;
  uint32_t i;

  set_up(&s, 3);
  weights = tnk__lm_base_weights(s.base, test_allocator());
  CHECK(weights != NULL);
  s.o.n_samples = 20;
  s.o.max_tokens = 60;
  CHECK_INT(tnk__lm_draw_new(&draw, weights, &s.o, test_allocator(), NULL),
            TNK_OK);
  {
    int done = 0;
    while (!done)
      CHECK_INT(tnk__lm_draw_step(draw, 50, &done), TNK_OK);
  }
  for (i = 0; i < 20; i++) {
    sample = tnk__lm_draw_sample(draw, i);
    if (sample.reason == TNK__LM_STOPPED) {
      stopped++;
      CHECK_INT(sample.tokens[sample.n_tokens - 1], TNK__LM_EOS);
    } else {
      CHECK_INT(sample.n_tokens, 60);
    }
  }
  CHECK(stopped > 0 && stopped < 20);
  tnk__lm_draw_free(draw);
  tnk__lm_weights_free(weights);
  tear_down(&s);
}

TEST(questions_about_the_prompt) {
  setup_t s;
  tnk__lm_draw_t *draw;
  tnk__lm_prompt_t p;
  int64_t ask[9 * 2];
  size_t i;

  set_up(&s, 10);
  for (i = 0; i < 9; i++) {
    ask[2 * i] = i == 4 ? -1 : s.prompt[i + 1];
    ask[2 * i + 1] = 'z';
  }
  s.o.prompt_logprobs = 1;
  s.o.topk_prompt = 2;
  s.o.n_alternatives = 3;
  s.o.ask = ask;
  s.o.n_ask = 2;
  draw = draw_in(&s, 4);
  p = tnk__lm_draw_prompt(draw);
  CHECK_INT(p.topk_tokens[0], -1);
  CHECK(isnan(p.topk_logprobs[1]));
  for (i = 1; i < 10; i++) {
    const float *asked = p.ask_logprobs + 2 * (i - 1);
    CHECK(p.logprobs[i] <= p.topk_logprobs[2 * i]);
    CHECK(p.topk_logprobs[2 * i] >= p.topk_logprobs[2 * i + 1]);
    CHECK_NEAR(asked[0], i == 5 ? 0 : p.logprobs[i], 0);
    CHECK(asked[1] < 0);
    CHECK(p.alt_tokens[3 * (i - 1)] >= 0);
    CHECK(p.alt_logprobs[3 * (i - 1) + 2] <= p.topk_logprobs[2 * i]);
  }
  tnk__lm_draw_free(draw);
  s.o.last_n = 3;
  draw = draw_in(&s, 100);
  p = tnk__lm_draw_prompt(draw);
  CHECK(isnan(p.logprobs[6]) && !isnan(p.logprobs[7]));
  CHECK_INT(p.topk_tokens[2 * 6], -1);
  CHECK(p.topk_tokens[2 * 7] >= 0);
  CHECK(p.ask_logprobs[1] < 0);
  tnk__lm_draw_free(draw);
  tear_down(&s);
}

TEST_LIMIT(the_context_ends_a_sample, 30) {
  setup_t s;
  static int32_t prompt[TNK__LM_MAX_CONTEXT];
  tnk__lm_draw_t *draw;

  set_up(&s, 1);
  s.o.prompt = prompt;
  s.o.stop_kind = TNK__LM_STOP_LISTED;
  s.o.n_prompt = TNK__LM_MAX_CONTEXT - 2;
  s.o.max_tokens = 0;
  draw = draw_in(&s, 100000);
  CHECK_INT(tnk__lm_draw_sample(draw, 0).n_tokens, 2);
  CHECK_INT(tnk__lm_draw_sample(draw, 0).reason, TNK__LM_LENGTH);
  tnk__lm_draw_free(draw);
  s.o.n_prompt = TNK__LM_MAX_CONTEXT;
  draw = draw_in(&s, 100000);
  CHECK_INT(tnk__lm_draw_sample(draw, 0).n_tokens, 0);
  CHECK_INT(tnk__lm_draw_sample(draw, 0).reason, TNK__LM_LENGTH);
  tnk__lm_draw_free(draw);
  tear_down(&s);
}

static void refused(setup_t *s, tnk__lm_draw_options_t o, const char *text) {
  tnk__lm_draw_t *draw;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_draw_new(&draw, s->weights, &o, test_allocator(), &why),
            TNK_EINVAL);
  CHECK(draw == NULL);
  CHECK_STR(why.text, text);
}

TEST(options_nobody_can_draw_with) {
  setup_t s;
  tnk__lm_draw_options_t o;
  tnk__lm_text_t empty = {"", 0};
  int32_t bad = 258;

  set_up(&s, 4);
  o = s.o;
  o.n_prompt = 0;
  refused(&s, o, "the prompt has 0 tokens, 1 to 4096 are possible");
  o = s.o;
  o.n_samples = 0;
  refused(&s, o, "num_samples must be at least 1");
  o = s.o;
  o.temperature = -1;
  refused(&s, o, "temperature must be at least 0");
  o = s.o;
  o.top_p = 0;
  refused(&s, o, "top_p must be above 0 and at most 1");
  o = s.o;
  o.topk_prompt = 259;
  refused(&s, o, "at most 258 logprobs a position are possible");
  o = s.o;
  o.last_n = 4;
  refused(&s, o, "prompt_logprobs_last_n must be below the prompt's 4 tokens");
  o = s.o;
  o.stop_texts = &empty;
  o.n_stop_texts = 1;
  refused(&s, o, "stop[0] is empty");
  o = s.o;
  o.stop_tokens = &bad;
  o.n_stop_tokens = 1;
  refused(&s, o, "stop[0] is 258, the vocabulary has ids 0 to 257");
  tear_down(&s);
}

/* Everything on, each allocation failing in turn. */
TEST(every_allocation_of_a_draw_may_fail) {
  setup_t s;
  tnk__lm_text_t text = {"zq", 2};
  int64_t ask[4] = {1, 2, 3, 4};
  int32_t stop = 'q';
  tnk__lm_draw_t *draw;
  long n;
  int err = TNK_ENOMEM;

  set_up(&s, 5);
  s.o.stop_kind = TNK__LM_STOP_LISTED;
  s.o.stop_tokens = &stop;
  s.o.n_stop_tokens = 1;
  s.o.stop_texts = &text;
  s.o.n_stop_texts = 1;
  s.o.prompt_logprobs = 1;
  s.o.topk_prompt = s.o.topk_sample = 1;
  s.o.n_alternatives = 1;
  s.o.ask = ask;
  s.o.n_ask = 1;
  for (n = 0; err != TNK_OK; n++) {
    int done = 0;
    test_alloc_fail_at(n);
    err = tnk__lm_draw_new(&draw, s.weights, &s.o, test_allocator(), NULL);
    while (err == TNK_OK && !done)
      err = tnk__lm_draw_step(draw, 3, &done);
    tnk__lm_draw_free(draw);
    CHECK(err == TNK_ENOMEM || (err == TNK_OK && !test_alloc_did_fail()));
  }
  test_alloc_fail_at(-1);
  CHECK(n > 8);
  tear_down(&s);
}
