/* SPDX-License-Identifier: MIT */
/*
 * Conversations to tokens with weights.
 */
#include <string.h>

#include "support/test.h"
#include "toy.h"

static const char *const four[] = {"user",      "Hi",   "assistant",
                                   "Hello",     "user", "2+2",
                                   "assistant", "Four", NULL};

typedef struct {
  tnk_chat_template_t *of;
  tnk_chat_t *chat;
  tnk_chat_tokens_t *tokens;
  tnk_chat_options_t options;
  tnk_chat_error_t error;
} stage_t;

static void stage_open(stage_t *s, const char *text, const char *const *pairs) {
  const tnk_chat_options_t defaults = TNK_CHAT_OPTIONS_INIT;

  s->of = toy_open(text);
  s->chat = toy_chat(pairs);
  s->tokens = tnk_chat_tokens_new(test_allocator());
  s->options = defaults;
}

static void stage_close(stage_t *s) {
  tnk_chat_template_unref(s->of);
  tnk_chat_free(s->chat);
  tnk_chat_tokens_free(s->tokens);
}

static int encode(stage_t *s) {
  return tnk_chat_encode(s->tokens, s->of, &toy, s->chat, &s->options,
                         &s->error);
}

/* The tokens are those of the text, whatever is trained of them. */
static void expect(stage_t *s, const char *trained) {
  tnk_chat_options_t whole = TNK_CHAT_OPTIONS_INIT;
  const int32_t *ids;
  char *text;
  size_t n;

  if (encode(s) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", s->error.text);
  CHECK_STR(toy_trained(s->tokens), trained);
  whole.generation_prompt = s->options.generation_prompt;
  whole.train_on = s->options.train_on;
  CHECK_INT(tnk_chat_text(&text, NULL, s->of, s->chat, &whole, NULL), TNK_OK);
  ids = tnk_chat_tokens_ids(s->tokens, &n);
  CHECK_STR(toy_text(ids, n), text);
  tnk_chat_free_text(s->chat, text);
}

static void expect_refused(stage_t *s, int code, const char *words) {
  size_t n;

  CHECK_INT(encode(s), code);
  CHECK_INT(s->error.code, code);
  if (strstr(s->error.text, words) == NULL)
    test_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", s->error.text, words);
  (void)tnk_chat_tokens_ids(s->tokens, &n);
  CHECK_INT(n, 0);
}

TEST(a_prompt_ends_with_what_begins_an_answer) {
  static const char *const one[] = {"user", "Hi", NULL};
  stage_t s;
  char *text;

  stage_open(&s, toy_turns, one);
  expect(&s, "");
  CHECK_INT(tnk_chat_text(&text, NULL, s.of, s.chat, NULL, NULL), TNK_OK);
  CHECK_STR(text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  tnk_chat_free_text(s.chat, text);
  s.options.generation_prompt = TNK_NO;
  CHECK_INT(tnk_chat_text(&text, NULL, s.of, s.chat, &s.options, NULL), TNK_OK);
  CHECK_STR(text, "<|im_start|>user\nHi<|im_end|>\n");
  tnk_chat_free_text(s.chat, text);
  stage_close(&s);
}

TEST(answers_are_trained_with_what_ends_them) {
  static const char *const user[] = {"user"};
  static const float weights[] = {0, 0.5f, 0, 0};
  stage_t s;

  stage_open(&s, toy_turns, four);
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect(&s, "Four<|im_end|>|");
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  expect(&s, "Hello<|im_end|>|Four<|im_end|>|");
  s.options.train_on = TNK_CHAT_TRAIN_ROLES;
  s.options.roles = user;
  s.options.n_roles = 1;
  expect(&s, "Hi<|im_end|>|2+2<|im_end|>|");
  s.options.train_on = TNK_CHAT_TRAIN_BY_MESSAGE;
  s.options.message_weights = weights;
  s.options.n_message_weights = 4;
  expect(&s, "Hello<|im_end|>|");
  s.options.generation_prompt = TNK_YES;
  expect(&s, "Hello<|im_end|>|");
  s.options.train_on = TNK_CHAT_TRAIN_EVERYTHING;
  CHECK_INT(encode(&s), TNK_OK);
  CHECK(strchr(toy_trained(s.tokens), '\n') != NULL);
  stage_close(&s);
}

TEST(each_id_knows_its_message) {
  stage_t s;
  const int32_t *messages, *ids;
  const float *weights;
  size_t n;

  stage_open(&s, toy_turns, four);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  CHECK_INT(encode(&s), TNK_OK);
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  messages = tnk_chat_tokens_messages(s.tokens);
  weights = tnk_chat_tokens_weights(s.tokens);
  for (size_t i = 0; i < n; i++) {
    if (ids[i] == TOY_START && i > 0)
      CHECK_INT(messages[i], messages[i - 2] + 1);
    if (weights[i] > 0)
      CHECK(messages[i] == 1 || messages[i] == 3);
  }
  CHECK_INT(messages[0], 0);
  CHECK_INT(messages[n - 1], -1); /* the line break at the end */
  stage_close(&s);
}

/* By bytes "ends with X" is found although what it says begins with that. */
TEST(words_are_found_that_are_in_the_marks_too) {
  static const char *const odd[] = {"user", "user\n", "assistant", "X",
                                    "user", "Xy",     NULL};
  static const char *const roles[] = {"user", "assistant"};
  stage_t s;

  stage_open(&s, toy_turns, odd);
  s.options.train_on = TNK_CHAT_TRAIN_ROLES;
  s.options.roles = roles;
  s.options.n_roles = 2;
  expect(&s, "user\n<|im_end|>|X<|im_end|>|Xy<|im_end|>|");
  stage_close(&s);
}

/* They leave out what ends an answer here. */
TEST(generation_blocks_say_what_is_trained) {
  stage_t s;

  stage_open(&s, toy_blocks, four);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  expect(&s, "Hello|Four|");
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect(&s, "Four|");
  stage_close(&s);
}

TEST(a_template_that_drops_thoughts_is_refused_for_earlier_answers) {
  static const char chat[] =
      "[{\"role\":\"user\",\"content\":\"a\"},"
      "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"t\"},"
      "{\"role\":\"user\",\"content\":\"c\"},"
      "{\"role\":\"assistant\",\"content\":\"d\",\"reasoning_content\":\"u\"}]";
  static const char *const none[] = {NULL};
  stage_t s;

  stage_open(&s, toy_thinks, none);
  CHECK_INT(tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, chat, strlen(chat), NULL),
            TNK_OK);
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect(&s, "<think>u</think>d<|im_end|>|");
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  expect_refused(&s, TNK_EUNSUPPORTED, "message 1 cannot be trained");
  CHECK(strstr(s.error.text, "<think>t") != NULL);
  stage_close(&s);
}

/* One example of each answer shows each with its thoughts. */
TEST(each_answer_is_an_example_of_its_own) {
  static const char chat[] = "[{\"role\":\"user\",\"content\":\"a\"},"
                             "{\"role\":\"assistant\",\"content\":\"b\","
                             "\"reasoning_content\":\"t\"},"
                             "{\"role\":\"user\",\"content\":\"c\"},"
                             "{\"role\":\"assistant\",\"content\":\"d\","
                             "\"reasoning_content\":\"u\"},"
                             "{\"role\":\"user\",\"content\":\"e\"}]";
  static const char *const none[] = {NULL};
  static const char *const trained[] = {"<think>t</think>b<|im_end|>|",
                                        "<think>u</think>d<|im_end|>|"};
  stage_t s;
  size_t n = 0, n_ids;

  for (int by_parts = 0; by_parts < 2; by_parts++) {
    stage_open(&s, toy_thinks, none);
    CHECK_INT(
        tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, chat, strlen(chat), NULL),
        TNK_OK);
    s.options.by_parts = by_parts ? TNK_YES : TNK_NO;
    n = 0;
    for (size_t i = 0; (i = tnk_chat_next_answer(s.chat, i)) != SIZE_MAX; i++) {
      CHECK_INT(i, 2 * n + 1);
      if (tnk_chat_encode_answer(s.tokens, s.of, &toy, s.chat, i, &s.options,
                                 &s.error) != TNK_OK)
        test_fail(__FILE__, __LINE__, "%s", s.error.text);
      CHECK_STR(toy_trained(s.tokens), trained[n++]);
      /* Nothing stands behind it but a line break. */
      (void)tnk_chat_tokens_ids(s.tokens, &n_ids);
      CHECK_INT(tnk_chat_tokens_ids(s.tokens, NULL)[n_ids - 2], TOY_END);
    }
    CHECK_INT(n, 2);
    CHECK_INT(
        tnk_chat_encode_answer(s.tokens, s.of, &toy, s.chat, 2, NULL, &s.error),
        TNK_EINVAL);
    CHECK_STR(s.error.text, "message 2 is no answer of the assistant");
    CHECK_INT(
        tnk_chat_encode_answer(s.tokens, s.of, &toy, s.chat, 5, NULL, &s.error),
        TNK_EINVAL);
    stage_close(&s);
  }
  CHECK(tnk_chat_next_answer(NULL, 0) == SIZE_MAX);
}

/* A template that writes an empty block into the last answer alone, as Qwen3's
 * does. Answers of words alone can be trained as they stand there. */
TEST(answers_of_words_alone_are_trained_as_they_stand) {
  static const char source[] =
      "{% set ns = namespace(user=0) %}{% for m in messages %}"
      "{% if m.role == 'user' %}{% set ns.user = loop.index0 %}{% endif %}"
      "{% endfor %}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
      "{% if m.role == 'assistant' and loop.index0 > ns.user %}"
      "{{ '<think></think>' }}{% endif %}"
      "{{ (m.content or '').split('</think>')[-1] }}"
      "{% for c in m.tool_calls or [] %}{{ c }}{% endfor %}"
      "{{ '<|im_end|>' + '\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif "
      "%}";
#define TALK(members)                                                          \
  "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\"," members    \
  "},{\"role\":\"user\",\"content\":\"c\"},"                                   \
  "{\"role\":\"assistant\",\"content\":\"d\"}]"
  static const struct {
    const char *talk, *trained; /* NULL: refused */
  } rows[] = {
      {TALK("\"content\":\"b\""), "b<|im_end|>|<think></think>d<|im_end|>|"},
      {TALK("\"content\":\"Xb Y\""),
       "Xb Y<|im_end|>|<think></think>d<|im_end|>|"},
      {TALK("\"content\":\"b\",\"thinking\":\"t\""), NULL},
      {TALK("\"content\":\"b\",\"tool_calls\":[1]"),
       "b1<|im_end|>|<think></think>d<|im_end|>|"},
      {TALK("\"tool_calls\":[1]"), "1<|im_end|>|<think></think>d<|im_end|>|"},
      {TALK("\"content\":\"t</think>b\",\"tool_calls\":[1]"), NULL},
      {TALK("\"content\":\"t</think>b\""), NULL},
      {TALK("\"content\":\"\""), NULL},
  };
  static const char *const none[] = {NULL};
  stage_t s;

  for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
    const char *talk = rows[i / 2].talk;

    stage_open(&s, source, none);
    CHECK_INT(
        tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, talk, strlen(talk), NULL),
        TNK_OK);
    s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
    s.options.by_parts = i % 2 == 0 ? TNK_NO : TNK_YES;
    if (rows[i / 2].trained != NULL)
      expect(&s, rows[i / 2].trained);
    else
      expect_refused(&s, TNK_EUNSUPPORTED, "make an example of each answer");
    stage_close(&s);
  }
}

/* By parts all messages are cut, also answers that nobody learns from and that
 * are written otherwise once others follow. */
TEST(by_parts_history_is_cut_where_it_stands) {
  static const char chat[] = "[{\"role\":\"user\",\"content\":\"a\"},"
                             "{\"role\":\"assistant\",\"content\":\"X Z\","
                             "\"reasoning_content\":\"t\"},"
                             "{\"role\":\"user\",\"content\":\"\\nc\"},"
                             "{\"role\":\"assistant\",\"content\":\"d\"}]";
  static const char *const none[] = {NULL};
  stage_t s;
  const int32_t *ids, *messages;
  size_t n, at = 0;

  stage_open(&s, toy_thinks, none);
  CHECK_INT(tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, chat, strlen(chat), NULL),
            TNK_OK);
  s.options.by_parts = TNK_YES;
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect(&s, "d<|im_end|>|");
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  messages = tnk_chat_tokens_messages(s.tokens);
  while (at < n && messages[at] != 1)
    at++;
  /* From the end of the one before it on. */
  CHECK_STR(toy_text(ids + at, 16), "\n<|im_start|>assistant\nX Z<|im_end|>");
  CHECK_INT(messages[at + 15], 1);
  CHECK_INT(messages[at + 16], 2);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  expect_refused(&s, TNK_EUNSUPPORTED, "message 1 cannot be trained");
  stage_close(&s);
}

/* The plain template ends an answer with the beginning of the next message: the
 * last answer is trained with that. */
TEST(a_stop_that_goes_on_in_the_next_message_is_trained) {
  static const char *const stops[] = {"\n\n", NULL};
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  stage_t s;
  const int32_t *ids;
  size_t n;

  stage_open(&s, NULL, four);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  CHECK_INT(encode(&s), TNK_OK);
  CHECK_STR(toy_trained(s.tokens), " Hello\n\n| Four\n\nUser:");
  (void)tnk_chat_tokens_ids(s.tokens, &n);
  CHECK_INT(tnk_chat_tokens_messages(s.tokens)[n - 1], 3);
  s.options.by_parts = TNK_YES;
  CHECK_INT(encode(&s), TNK_OK);
  CHECK_STR(toy_trained(s.tokens), " Hello\n\n| Four\n\nUser:");
  s.options.train_on = TNK_CHAT_TRAIN_EVERYTHING;
  CHECK_INT(encode(&s), TNK_OK);
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  CHECK_STR(toy_text(ids + n - 5, 5), "User:");
  s.options.train_on = TNK_CHAT_TRAIN_NOTHING;
  CHECK_INT(encode(&s), TNK_OK);
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  CHECK_STR(toy_text(ids + n - 5, 5), "Four\n\n");
  stage_close(&s);

  stage_open(&s, NULL, four);
  tnk_chat_template_unref(s.of);
  options.stops = stops;
  CHECK_INT(tnk_chat_template_open(&s.of, NULL, 0, &options, NULL), TNK_OK);
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect(&s, " Four\n\n");
  CHECK_INT(tnk_chat_set(s.chat, "bos_token", "\"<|im_start|>\"", NULL),
            TNK_OK);
  CHECK_INT(encode(&s), TNK_OK);
  CHECK_INT(tnk_chat_tokens_ids(s.tokens, &n)[0], TOY_START);
  stage_close(&s);
}

/* The line break that ends the header and the one that begins the answer are
 * one token: as a whole that cannot be cut, by parts it can. */
TEST(a_token_that_holds_both_sides_is_refused_unless_by_parts) {
  static const char *const odd[] = {"user", "Hi", "assistant", "\nHo", NULL};
  stage_t s;
  const int32_t *ids;
  size_t n, n_lines = 0;

  stage_open(&s, toy_turns, odd);
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect_refused(&s, TNK_EUNSUPPORTED, "one token");
  s.options.by_parts = TNK_YES;
  expect(&s, "\nHo<|im_end|>|");
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  for (size_t i = 0; i < n; i++)
    n_lines += ids[i] == TOY_LINES;
  CHECK_INT(n_lines, 0);
  s.options.by_parts = TNK_NO;
  s.options.train_on = TNK_CHAT_TRAIN_EVERYTHING;
  CHECK_INT(encode(&s), TNK_OK);
  stage_close(&s);
}

TEST(bad_masks_are_told) {
  static const char *const one[] = {"user", "Hi", NULL};
  static const float wrong[] = {1.0f / 0.0f};
  static const char *const roles[] = {"judge"};
  stage_t s;

  stage_open(&s, toy_turns, one);
  s.options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  expect_refused(&s, TNK_EINVAL, "no answer");
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  expect_refused(&s, TNK_EINVAL, "anything to be trained");
  s.options.train_on = TNK_CHAT_TRAIN_ROLES;
  s.options.roles = roles;
  s.options.n_roles = 1;
  expect_refused(&s, TNK_EINVAL, "anything to be trained");
  s.options.train_on = TNK_CHAT_TRAIN_BY_MESSAGE;
  expect_refused(&s, TNK_EINVAL, "1 messages and 0 weights");
  s.options.message_weights = wrong;
  s.options.n_message_weights = 1;
  expect_refused(&s, TNK_EINVAL, "no number");
  s.options.train_on = (tnk_chat_train_t)77;
  expect_refused(&s, TNK_EINVAL, "train_on");
  s.options.roles = NULL;
  expect_refused(&s, TNK_EINVAL, "n_roles");
  stage_close(&s);
}

TEST(a_stop_without_text_is_told) {
  static const char *const stops[] = {"a", "", NULL};
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  options.stops = stops;
  CHECK_INT(tnk_chat_template_open(&of, "x", 1, &options, &error), TNK_EINVAL);
  CHECK(of == NULL && strstr(error.text, "stops[1]") != NULL);
}

TEST(a_tokenizer_that_cannot_is_told) {
  static const char *const odd[] = {"user", "\x01", NULL};
  tnk_tokenizer_plugin_t old = toy_plugin;
  tnk_chat_tokenizer_t tokenizer = {&old, NULL};
  stage_t s;

  stage_open(&s, toy_turns, odd);
  expect_refused(&s, TNK_EUNSUPPORTED, "toy: no control characters");
  old.size = offsetof(tnk_tokenizer_plugin_t, decode);
  CHECK_INT(tnk_chat_encode(s.tokens, s.of, &tokenizer, s.chat, NULL, &s.error),
            TNK_EUNSUPPORTED);
  CHECK(strstr(s.error.text, "`decode`") != NULL);
  CHECK_INT(tnk_chat_encode(s.tokens, s.of, NULL, s.chat, NULL, NULL),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_encode(NULL, s.of, &toy, s.chat, NULL, NULL), TNK_EINVAL);
  CHECK_INT(tnk_chat_encode(s.tokens, NULL, &toy, s.chat, NULL, NULL),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_encode(s.tokens, s.of, &toy, NULL, NULL, NULL),
            TNK_EINVAL);
  stage_close(&s);
}

static int encode_with_end(const void *tokenizer, const char *text, size_t n,
                           unsigned flags, tnk_take_ids_cb take, void *user,
                           char *why, size_t why_size) {
  const int32_t end = 7;
  int err =
      toy_plugin.encode(tokenizer, text, n, flags, take, user, why, why_size);

  return err == TNK_OK && n > 100 ? take(&end, 1, user) : err;
}

static int decode_to_other(const void *tokenizer, const int32_t *ids, size_t n,
                           unsigned flags, tnk_take_bytes_cb take, void *user,
                           char *why, size_t why_size) {
  (void)tokenizer, (void)ids, (void)flags, (void)why, (void)why_size;
  return n > 0 ? take("?", 1, user) : TNK_OK;
}

/* Where tokens have no places in the text, its pieces must give all ids. */
TEST(pieces_that_give_fewer_tokens_are_refused) {
  tnk_tokenizer_plugin_t odd = toy_plugin;
  const tnk_chat_tokenizer_t tokenizer = {&odd, NULL};
  stage_t s;
  size_t n;

  stage_open(&s, toy_turns, four);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  odd.decode = decode_to_other;
  CHECK_INT(
      tnk_chat_encode(s.tokens, s.of, &tokenizer, s.chat, &s.options, &s.error),
      TNK_OK);
  CHECK_STR(toy_trained(s.tokens), "Hello<|im_end|>|Four<|im_end|>|");
  odd.encode = encode_with_end;
  CHECK_INT(
      tnk_chat_encode(s.tokens, s.of, &tokenizer, s.chat, &s.options, &s.error),
      TNK_EUNSUPPORTED);
  CHECK(strstr(s.error.text, "fewer tokens") != NULL);
  (void)tnk_chat_tokens_ids(s.tokens, &n);
  CHECK_INT(n, 0);
  stage_close(&s);
}

TEST_LIMIT(masks_without_memory, 30) {
  stage_t s;
  int err = TNK_ENOMEM;

  stage_open(&s, toy_turns, four);
  s.options.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  for (long n = 0;; n++) {
    test_alloc_fail_at(n);
    err = encode(&s);
    if (!test_alloc_did_fail())
      break;
    CHECK_INT(err, TNK_ENOMEM);
  }
  test_alloc_fail_at(-1);
  CHECK_INT(err, TNK_OK);
  CHECK_STR(toy_trained(s.tokens), "Hello<|im_end|>|Four<|im_end|>|");
  stage_close(&s);
  CHECK_INT(test_alloc_live(), 0);
}
