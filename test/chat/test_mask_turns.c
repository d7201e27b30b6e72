/* SPDX-License-Identifier: MIT */
/*
 * Masks over all answers, for each way in which templates write earlier
 * answers, and for each kind of conversation. Each answer is compared with its
 * own example.
 */
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "toy.h"

/* ---- Families ---- */

#define BEGIN                                                                  \
  "{% set ns = namespace(user=0) %}{% for m in messages %}"                    \
  "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}"        \
  "{% endfor %}{% for m in messages %}{% set t = m.reasoning_content %}"       \
  "{{ '<|im_start|>' + m.role + '\n' }}"
#define BODY                                                                   \
  "{{ m.content or '' }}{% for c in m.tool_calls or [] %}"                     \
  "{{ '<call>' + c + '</call>' }}{% endfor %}"
#define FINISH(start)                                                          \
  "{{ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"        \
  "{{ '<|im_start|>assistant\n" start "' }}{% endif %}"
#define ANSWER "{% if m.role == 'assistant' %}"
#define IS_NEW "loop.index0 > ns.user"

enum { KEEPS, QWEN3, QWEN3_5, QWEN3_5_NO, NEMOTRON, NEMOTRON_NO, HARMONY };
enum { N_FAMILIES = HARMONY + 1 };

static const char *const families[N_FAMILIES] = {
    /* Thoughts are always kept. */
    [KEEPS] = BEGIN
    "{% if t %}{{ '<think>' + t + '</think>' }}{% endif %}" BODY FINISH(""),
    /* The last answer always has a block of thoughts. Earlier answers behind
     * the last user have one if they have thoughts. */
    [QWEN3] = BEGIN ANSWER "{% if " IS_NEW " and (loop.last or t) %}"
                           "{{ '<think>' + (t or '') + '</think>' }}{% endif %}"
                           "{% endif %}" BODY FINISH(""),
    /* Answers behind the last user have a block, which the prompt begins. */
    [QWEN3_5] = BEGIN ANSWER "{% if " IS_NEW " %}{{ '<think>' + "
                             "(t or '') + '</think>' }}{% endif %}"
                             "{% endif %}" BODY FINISH("<think>"),
    /* The same, with an empty block in the prompt. */
    [QWEN3_5_NO] = BEGIN ANSWER "{% if " IS_NEW " %}{{ '<think>' + "
                                "(t or '') + '</think>' }}{% endif %}"
                                "{% endif %}" BODY FINISH("<think></think>"),
    /* All answers have a block. An empty one differs from what the prompt
     * begins. */
    [NEMOTRON] = BEGIN ANSWER
    "{% if t and " IS_NEW " %}{{ '<think>\n' + t + '</think>' }}"
    "{% else %}{{ '<think></think>' }}{% endif %}{% endif %}" BODY FINISH(
        "<think>\n"),
    [NEMOTRON_NO] = BEGIN ANSWER
    "{% if t and " IS_NEW " %}{{ '<think>\n' + t + '</think>' }}"
    "{% else %}{{ '<think></think>' }}{% endif %}{% endif %}" BODY FINISH(
        "<think></think>"),
    /* Thoughts are removed once an answer without calls follows, and such an
     * answer ends differently once others follow. */
    [HARMONY] =
        "{% for m in messages %}{% set t = m.reasoning_content %}"
        "{% set fin = namespace(has=false) %}{% for o in "
        "messages[loop.index:] %}{% if o.role == 'assistant' and not "
        "o.tool_calls %}{% set fin.has = true %}{% endif %}{% endfor %}"
        "{{ '<|im_start|>' + m.role }}{% if t and not fin.has %}"
        "{{ '<think>' + t + '<|end|><|im_start|>assistant' }}{% endif %}"
        "{{ '\n' }}" BODY "{% if m.role == 'assistant' and (loop.last or "
        "m.tool_calls) %}{{ '<|im_end|>' }}{% else %}{{ '<|end|>' }}"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant' }}{% endif %}",
};

/* ---- Conversations ---- */

#define ROLE(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define USER ROLE("user", "ask") ","
#define RESULT ROLE("tool", "res") ","
#define SAID(text) ROLE("assistant", text)
#define THOUGHT(text)                                                          \
  "{\"role\":\"assistant\",\"content\":\"" text                                \
  "\",\"reasoning_content\":\"why\"}"
#define CALLED(more) "{\"role\":\"assistant\",\"tool_calls\":[\"f\"]" more "},"

static const struct {
  const char *name, *messages;
  /* For each family: what is expected of each answer, in order.
   *   t  it tiles: the same tokens up to its end, and the same weights
   *   e  it tiles up to the text that ends it, which has no weight
   *   s  its weights are the last ones of its own example
   *   R  refused, with the offer of an example of each answer, which works
   *   r  refused, also alone */
  const char *expected[N_FAMILIES];
} kinds[] = {
    {"one answer", USER SAID("one"), {"t", "t", "t", "t", "t", "t", "t"}},
    {"several answers",
     USER SAID("one") "," USER SAID("two") "," USER SAID("three"),
     {"ttt", "sst", "R", "R", "ttt", "ttt", "eet"}},
    {"thoughts", USER THOUGHT("one"), {"t", "t", "t", "r", "t", "r", "t"}},
    {"several thoughts",
     USER THOUGHT("one") "," USER THOUGHT("two"),
     {"tt", "R", "R", "r", "R", "r", "R"}},
    {"a call and its result",
     USER CALLED("") RESULT SAID("one"),
     {"tt", "st", "tt", "tt", "tt", "tt", "tt"}},
    {"words with a call",
     USER CALLED(",\"content\":\"say\"") RESULT SAID("one"),
     {"tt", "st", "tt", "tt", "tt", "tt", "tt"}},
    {"thoughts before a call",
     USER CALLED(",\"reasoning_content\":\"why\"") RESULT THOUGHT("one"),
     {"tt", "tt", "tt", "r", "tt", "r", "R"}},
    {"thoughts before some calls",
     USER CALLED("") RESULT CALLED(",\"reasoning_content\":\"why\"")
         RESULT SAID("one"),
     {"ttt", "stt", "ttt", "r", "ttt", "r", "R"}},
    {"calls, and another question",
     USER CALLED("") RESULT SAID("one") "," USER SAID("two"),
     {"ttt", "sst", "R", "R", "ttt", "ttt", "tet"}},
};

/* ---- Comparing ---- */

typedef struct {
  tnk_chat_template_t *of;
  tnk_chat_t *chat;
  tnk_chat_tokens_t *all, *own;
  tnk_chat_options_t options;
  tnk_chat_error_t error;
  const char *name;
  int family;
} stage_t;

static void stage_open(stage_t *s, size_t kind, int family, int by_parts) {
  static const char *const none[] = {NULL};
  const tnk_chat_options_t defaults = TNK_CHAT_OPTIONS_INIT;
  const char *messages = kinds[kind].messages;
  char text[2048];

  s->of = toy_open(families[family]);
  s->chat = toy_chat(none);
  s->all = tnk_chat_tokens_new(test_allocator());
  s->own = tnk_chat_tokens_new(test_allocator());
  s->options = defaults;
  s->options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  s->options.by_parts = by_parts ? TNK_YES : TNK_NO;
  s->name = kinds[kind].name;
  s->family = family;
  snprintf(text, sizeof(text), "[%s]", messages);
  CHECK_INT(tnk_chat_read(s->chat, TNK_CHAT_TEMPLATE, text, strlen(text), NULL),
            TNK_OK);
}

static void stage_close(stage_t *s) {
  tnk_chat_template_unref(s->of);
  tnk_chat_free(s->chat);
  tnk_chat_tokens_free(s->all);
  tnk_chat_tokens_free(s->own);
}

static int encode_own(stage_t *s, size_t index) {
  return tnk_chat_encode_answer(s->own, s->of, &toy, s->chat, index,
                                &s->options, &s->error);
}

/* The range of the ids of a message that have a weight. */
static void find_run(const tnk_chat_tokens_t *tokens, size_t message,
                     size_t *begin, size_t *end) {
  const float *weights = tnk_chat_tokens_weights(tokens);
  const int32_t *messages = tnk_chat_tokens_messages(tokens);
  size_t n;

  *begin = *end = 0;
  (void)tnk_chat_tokens_ids(tokens, &n);
  for (size_t i = 0; i < n; i++)
    if (weights[i] > 0 && messages[i] == (int32_t)message) {
      *begin = *end == 0 ? i : *begin;
      CHECK(*end == 0 || *end == i);
      *end = i + 1;
    }
}

static void compare(stage_t *s, size_t index, char how) {
  const int32_t *all = tnk_chat_tokens_ids(s->all, NULL), *own;
  size_t begin, end, own_begin, own_end, n;
  int is_same;

  if (encode_own(s, index) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s, family %d: %s", s->name, s->family,
              s->error.text);
  own = tnk_chat_tokens_ids(s->own, NULL);
  find_run(s->all, index, &begin, &end);
  find_run(s->own, index, &own_begin, &own_end);
  CHECK(end > begin && own_end > own_begin);
  n = end - begin;
  own_end -= how == 'e'; /* the end is one token */
  if (how == 's')
    is_same = n < own_end - own_begin &&
              memcmp(all + begin, own + own_end - n, n * sizeof(*all)) == 0;
  else
    is_same = begin == own_begin && end == own_end &&
              memcmp(all, own, end * sizeof(*all)) == 0;
  if (!is_same)
    test_fail(__FILE__, __LINE__, "%s, family %d: message %zu is no \"%c\"",
              s->name, s->family, index, how);
}

/* Each answer has the weights that its letter says. */
static void expect_weights(stage_t *s, const char *expected) {
  size_t i = 0, n_trained = 0, n_runs = 0, n;
  const float *weights;

  if (tnk_chat_encode(s->all, s->of, &toy, s->chat, &s->options, &s->error) !=
      TNK_OK)
    test_fail(__FILE__, __LINE__, "%s, family %d: %s", s->name, s->family,
              s->error.text);
  for (; (i = tnk_chat_next_answer(s->chat, i)) != SIZE_MAX; i++) {
    size_t begin, end;

    CHECK(*expected != '\0');
    compare(s, i, *expected++);
    find_run(s->all, i, &begin, &end);
    n_runs += end - begin;
  }
  CHECK(*expected == '\0');
  weights = tnk_chat_tokens_weights(s->all);
  (void)tnk_chat_tokens_ids(s->all, &n);
  for (i = 0; i < n; i++)
    n_trained += weights[i] > 0;
  CHECK_INT(n_trained, n_runs);
}

/* The error names a turn. It offers an example of each answer if and only if
 * that works for the turn. */
static void expect_refused(stage_t *s, int is_offered) {
  const char *offer = "make an example of each answer";
  unsigned index;

  CHECK_INT(
      tnk_chat_encode(s->all, s->of, &toy, s->chat, &s->options, &s->error),
      TNK_EUNSUPPORTED);
  CHECK_INT(sscanf(s->error.text, "message %u cannot be trained", &index), 1);
  if ((strstr(s->error.text, offer) != NULL) != is_offered)
    test_fail(__FILE__, __LINE__, "%s, family %d: %s", s->name, s->family,
              s->error.text);
  CHECK_INT(encode_own(s, index), is_offered ? TNK_OK : TNK_EUNSUPPORTED);
}

TEST(all_answers_are_trained_as_in_their_own_examples) {
  size_t n_cells = 0;

  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
    for (int family = 0; family < N_FAMILIES; family++)
      for (int by_parts = 0; by_parts < 2; by_parts++, n_cells++) {
        const char *expected = kinds[kind].expected[family];
        stage_t s;

        CHECK(expected != NULL);
        stage_open(&s, kind, family, by_parts);
        if ((*expected | 0x20) == 'r')
          expect_refused(&s, *expected == 'R');
        else
          expect_weights(&s, expected);
        stage_close(&s);
      }
  CHECK_INT(n_cells, 9 * N_FAMILIES * 2);
}

/* The thoughts before the calls are in the prompt of the last answer, and no
 * longer in the whole text. */
TEST(an_answer_after_other_messages_than_its_prompt_is_rejected) {
  stage_t s;

  stage_open(&s, 7, HARMONY, 0);
  CHECK_INT(encode_own(&s, 5), TNK_EUNSUPPORTED);
  CHECK(strncmp(s.error.text, "message 5 cannot", 16) == 0);
  CHECK(strstr(s.error.text, "begins an answer with") != NULL);
  stage_close(&s);
}

/* A template that writes history differently once the answer or more messages
 * follow. The answer would be trained after other tokens than it is sampled
 * after. */
TEST(what_is_before_an_answer_must_not_change) {
#define OLD_USERS                                                              \
  "{% set ns = namespace(user=0) %}{% for m in messages %}"                    \
  "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}"        \
  "{% endfor %}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"    \
  "{% if m.role == 'user' and loop.index0 < ns.user %}"                        \
  "{{ m.content | upper }}{% else %}" BODY "{% endif %}" FINISH("")
  static const char answer[] = "{\"role\":\"assistant\",\"content\":\"so\"}";
  static const char call[] =
      "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[\"f\"]}";
  static const struct {
    const char *text, *answer;
    int is_last; /* no messages follow */
  } rows[] = {
      {OLD_USERS, answer, 0},
      {OLD_USERS, call, 0},
      /* the start of the answer, which is history too */
      {BEGIN ANSWER
       "{{ '<b>' if loop.last else '<a>' }}{% endif %}" BODY FINISH("<a>"),
       call, 0},
      /* the first words of the whole text */
      {"{{ 'open' if add_generation_prompt else 'shut' }}" BEGIN BODY FINISH(
           "<think>"),
       answer, 1},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const char *rest = rows[i].is_last ? ""
                                       : ",{\"role\":\"user\",\"content\":"
                                         "\"?\"},{\"role\":\"assistant\","
                                         "\"content\":\"x\"}";
    char text[512];
    stage_t s;

    stage_open(&s, 0, KEEPS, 0);
    tnk_chat_template_unref(s.of);
    tnk_chat_free(s.chat);
    s.of = toy_open(rows[i].text);
    s.chat = tnk_chat_new(test_allocator());
    snprintf(text, sizeof(text),
             "[{\"role\":\"user\",\"content\":\"hi\"},%s%s]", rows[i].answer,
             rest);
    CHECK_INT(
        tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, text, strlen(text), NULL),
        TNK_OK);
    snprintf(text, sizeof(text), "row %zu", i);
    test_context(text);
    CHECK_INT(tnk_chat_encode(s.all, s.of, &toy, s.chat, &s.options, &s.error),
              TNK_EUNSUPPORTED);
    CHECK(strncmp(s.error.text, "message 1 cannot be trained", 27) == 0);
    stage_close(&s);
  }
#undef OLD_USERS
}

/* The time to find a block grows with its length. */
TEST(a_block_that_is_removed_is_short) {
  static const char block[] = "'<think>'";
  const char *at = strstr(families[QWEN3], block);

  for (int n = 200; n <= 300; n += 100) {
    char text[4096], words[301] = "";
    stage_t s;

    stage_open(&s, 4, QWEN3, 0);
    tnk_chat_template_unref(s.of);
    memset(words, 'a', (size_t)n);
    snprintf(text, sizeof(text), "%.*s'%s' + %s", (int)(at - families[QWEN3]),
             families[QWEN3], words, at);
    s.of = toy_open(text);
    if (n < 256)
      expect_weights(&s, "st");
    else
      expect_refused(&s, 1);
    stage_close(&s);
  }
}

TEST_LIMIT(answers_without_memory, 60) {
  for (int family = 0; family < N_FAMILIES; family++) {
    stage_t s;
    int err = TNK_ENOMEM;

    stage_open(&s, 8, family, 0);
    for (long n = 0;; n++) {
      test_alloc_fail_at(n);
      err = tnk_chat_encode(s.all, s.of, &toy, s.chat, &s.options, &s.error);
      if (!test_alloc_did_fail())
        break;
      if (err != TNK_ENOMEM)
        test_fail(__FILE__, __LINE__, "family %d, allocation %ld: %d %s",
                  family, n, err, s.error.text);
    }
    test_alloc_fail_at(-1);
    CHECK_INT(err,
              *kinds[8].expected[family] == 'R' ? TNK_EUNSUPPORTED : TNK_OK);
    stage_close(&s);
  }
  CHECK_INT(test_alloc_live(), 0);
}
