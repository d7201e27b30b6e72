/* SPDX-License-Identifier: MIT */
/*
 * What follows sampled ids in a conversation that goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "toy.h"

/* A result of a tool is a turn of its own. */
static const char calls[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.tool_calls %}{{ m.content }}{% for call in m.tool_calls %}"
    "{{ '<call>' + call.function.name + '</call>' }}{% endfor %}"
    "{{ '<|im_end|>' + '\n' }}{% else %}{{ m.content + '<|im_end|>' + '\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}";

typedef struct {
  tnk_chat_template_t *of;
  tnk_chat_t *chat;
  tnk_chat_tokens_t *tokens;
  tnk_chat_error_t error;
  int32_t ids[4096];
  size_t n;
} stage_t;

static void stage_open(stage_t *s, const char *text, const char *const *pairs) {
  s->of = toy_open(text);
  s->chat = toy_chat(pairs);
  s->tokens = tnk_chat_tokens_new(test_allocator());
  s->n = 0;
}

static void stage_close(stage_t *s) {
  tnk_chat_template_unref(s->of);
  tnk_chat_free(s->chat);
  tnk_chat_tokens_free(s->tokens);
}

/* The prompt of the conversation as it is, then bytes that were sampled, and
 * what ends an answer if `is_ended`. */
static void sample(stage_t *s, const char *text, int is_ended) {
  const int32_t *ids;
  size_t n;

  CHECK_INT(tnk_chat_encode(s->tokens, s->of, &toy, s->chat, NULL, &s->error),
            TNK_OK);
  ids = tnk_chat_tokens_ids(s->tokens, &n);
  memcpy(s->ids, ids, n * sizeof(*ids));
  s->n = n;
  for (; *text != '\0'; text++)
    s->ids[s->n++] = (unsigned char)*text;
  if (is_ended)
    s->ids[s->n++] = TOY_END;
}

static int go_on(stage_t *s, size_t first) {
  return tnk_chat_continue(s->tokens, s->of, &toy, s->ids, s->n, s->chat, first,
                           NULL, &s->error);
}

/* The ids so far and those that follow are the text of the conversation. */
static void expect_whole(stage_t *s, size_t first) {
  const int32_t *ids;
  char *text;
  size_t n;

  if (go_on(s, first) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", s->error.text);
  ids = tnk_chat_tokens_ids(s->tokens, &n);
  CHECK(s->n + n < sizeof(s->ids) / sizeof(*s->ids));
  memcpy(s->ids + s->n, ids, n * sizeof(*ids));
  CHECK_INT(tnk_chat_text(&text, NULL, s->of, s->chat, NULL, &s->error),
            TNK_OK);
  CHECK_STR(toy_text(s->ids, s->n + n), text);
  tnk_chat_free_text(s->chat, text);
}

TEST(what_was_sampled_stays_as_it_is) {
  static const char *const one[] = {"user", "Hi", NULL};

  for (int is_ended = 0; is_ended < 2; is_ended++) {
    stage_t s;
    size_t n;

    stage_open(&s, toy_turns, one);
    /* The empty line is two tokens here: it was sampled so. */
    sample(&s, "a\n\nb", is_ended);
    CHECK_INT(tnk_chat_add(s.chat, "assistant", "a\n\nb", NULL), TNK_OK);
    CHECK_INT(tnk_chat_add(s.chat, "user", "More", NULL), TNK_OK);
    expect_whole(&s, 2);
    (void)tnk_chat_tokens_ids(s.tokens, &n);
    for (size_t i = 0; i < n; i++) {
      CHECK_INT(tnk_chat_tokens_messages(s.tokens)[i], -1);
      CHECK(!(tnk_chat_tokens_weights(s.tokens)[i] > 0));
    }
    stage_close(&s);
  }
}

TEST(new_messages_alone_are_enough) {
  static const char *const one[] = {"user", "Hi", NULL};
  static const char *const more[] = {"user", "More", NULL};
  const int32_t *ids;
  stage_t s;
  size_t n;

  stage_open(&s, toy_turns, one);
  sample(&s, "Hello", 1);
  tnk_chat_free(s.chat);
  s.chat = toy_chat(more);
  CHECK_INT(go_on(&s, 0), TNK_OK);
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  CHECK_STR(toy_text(ids, n),
            "\n<|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n");
  stage_close(&s);
}

/* A result is told with the name of what was called. */
TEST(results_go_to_the_calls_of_the_answer) {
  static const char named[] =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
      "{% if m.role == 'tool' %}"
      "{{ messages[loop.index0 - 1].tool_calls[0].function.name + '=' }}"
      "{% endif %}{{ m.content }}{% for call in m.tool_calls or [] %}"
      "{{ '<call>' + call.function.name + '</call>' }}{% endfor %}"
      "{{ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\n' }}{% endif %}";
  static const char *const one[] = {"user", "Hi", NULL};
  static const char more[] =
      "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"id\":"
      "\"1\","
      "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]},"
      "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"7\"}]";
  stage_t s;

  stage_open(&s, named, one);
  sample(&s, "x<call>f</call>", 1);
  CHECK_INT(tnk_chat_read(s.chat, TNK_CHAT_TEMPLATE, more, strlen(more), NULL),
            TNK_OK);
  expect_whole(&s, 2);
  stage_close(&s);
}

TEST(a_template_that_drops_thoughts_is_refused) {
  static const char *const one[] = {"user", "Hi", NULL};
  stage_t s;

  stage_open(&s, toy_thinks, one);
  sample(&s, "<think>t</think>Hello", 1);
  CHECK_INT(tnk_chat_add(s.chat, "assistant", "Hello", NULL), TNK_OK);
  CHECK_INT(tnk_chat_add(s.chat, "user", "More", NULL), TNK_OK);
  CHECK_INT(go_on(&s, 2), TNK_EUNSUPPORTED);
  CHECK(strstr(s.error.text, "what was sampled cannot stay") != NULL);
  stage_close(&s);
  /* A result of a tool keeps them. */
  stage_open(&s, toy_thinks, one);
  sample(&s, "<think>t</think>Hello", 1);
  CHECK_INT(tnk_chat_add(s.chat, "assistant", "Hello", NULL), TNK_OK);
  CHECK_INT(tnk_chat_add(s.chat, "tool", "7", NULL), TNK_OK);
  CHECK_INT(go_on(&s, 2), TNK_OK);
  stage_close(&s);
}

TEST(an_answer_that_begins_otherwise_later_is_refused) {
  static const char *const one[] = {"user", "Hi", NULL};
  static const char begins[] =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
      "'<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\n<think>' }}{% endif %}";
  stage_t s;

  stage_open(&s, begins, one);
  sample(&s, "t</think>Hello", 1);
  CHECK_INT(tnk_chat_add(s.chat, "assistant", "Hello", NULL), TNK_OK);
  CHECK_INT(tnk_chat_add(s.chat, "user", "More", NULL), TNK_OK);
  CHECK_INT(go_on(&s, 2), TNK_EUNSUPPORTED);
  CHECK(strstr(s.error.text, "<think>") != NULL);
  stage_close(&s);
}

/* The plain template: what ends an answer is text, and may be in any tokens. */
TEST(a_text_that_ends_answers_is_not_doubled) {
  static const char *const three[] = {"user", "Hi",   "assistant", "Hello",
                                      "user", "More", NULL};
  static const char *const tool[] = {"user", "Hi", "assistant", "Hello",
                                     "tool", "7",  NULL};
  static const int32_t sampled[] = {':',       ' ', 'H', 'e', 'l', 'l', 'o',
                                    TOY_LINES, 'U', 's', 'e', 'r', ':'};
  tnk_chat_template_t *of;
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());
  tnk_chat_t *chat = toy_chat(three);
  tnk_chat_error_t error;
  const int32_t *ids;
  size_t n;

  CHECK_INT(tnk_chat_template_open(&of, NULL, 0, NULL, &error), TNK_OK);
  CHECK_INT(
      tnk_chat_continue(tokens, of, &toy, sampled, 13, chat, 2, NULL, &error),
      TNK_OK);
  ids = tnk_chat_tokens_ids(tokens, &n);
  CHECK_STR(toy_text(ids, n), " More\n\nAssistant:");
  CHECK_INT(
      tnk_chat_continue(tokens, of, &toy, sampled, 7, chat, 2, NULL, &error),
      TNK_OK);
  ids = tnk_chat_tokens_ids(tokens, &n);
  CHECK_STR(toy_text(ids, n), "\n\nUser: More\n\nAssistant:");
  tnk_chat_free(chat);
  chat = toy_chat(tool);
  CHECK_INT(
      tnk_chat_continue(tokens, of, &toy, sampled, 13, chat, 2, NULL, &error),
      TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "ended with") != NULL);
  tnk_chat_free(chat);
  tnk_chat_tokens_free(tokens);
  tnk_chat_template_unref(of);
}

/* No list of stops names what ends an answer here: the token does. */
TEST(a_token_that_ends_answers_is_not_doubled) {
  static const char *const three[] = {"user", "Hi",   "assistant", "Hello",
                                      "user", "More", NULL};
  static const char *const none[] = {NULL};
  static const int32_t sampled[] = {'H', TOY_END};
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_template_t *of;
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());
  tnk_chat_t *chat = toy_chat(three);
  const int32_t *ids;
  size_t n;

  options.stops = none;
  CHECK_INT(
      tnk_chat_template_open(&of, toy_turns, strlen(toy_turns), &options, NULL),
      TNK_OK);
  for (size_t with = 1; with <= 2; with++) {
    CHECK_INT(
        tnk_chat_continue(tokens, of, &toy, sampled, with, chat, 2, NULL, NULL),
        TNK_OK);
    ids = tnk_chat_tokens_ids(tokens, &n);
    CHECK_STR(toy_text(ids, n) + (with == 1 ? strlen("<|im_end|>") : 0),
              "\n<|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n");
  }
  tnk_chat_free(chat);
  tnk_chat_tokens_free(tokens);
  tnk_chat_template_unref(of);
}

/* The end is neither a token nor in the list of stops. The white space after it
 * may have been sampled or not. */
TEST(a_plain_text_that_ends_answers_is_not_doubled) {
  static const char format[] =
      "{%% for m in messages %%}{{ '[' + m.role + ']' + m.content + '%s' }}"
      "{%% endfor %%}{%% if add_generation_prompt %%}{{ '[assistant]' }}"
      "{%% endif %%}";
  static const char *const one[] = {"user", "Hi", NULL};
  static const struct {
    const char *ending, *sampled;
  } rows[] = {{"[/]", ""},      {"[/]", "[/]"},     {"[/]\n", ""},
              {"[/]\n", "[/]"}, {"[/]\n", "[/]\n"}, {"[/]\n\n", "[/]\n"}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    char plain[256], sampled[32];
    stage_t s;

    snprintf(plain, sizeof(plain), format, rows[i].ending);
    snprintf(sampled, sizeof(sampled), "Hello[%s", rows[i].sampled);
    stage_open(&s, plain, one);
    sample(&s, sampled, 0);
    CHECK_INT(tnk_chat_add(s.chat, "assistant", "Hello[", NULL), TNK_OK);
    CHECK_INT(tnk_chat_add(s.chat, "user", "More", NULL), TNK_OK);
    expect_whole(&s, 2);
    stage_close(&s);
  }
}

/* This template numbers the messages. */
TEST(what_follows_is_what_the_whole_conversation_says) {
  static const char *const one[] = {"user", "Hi", NULL};
  static const char counts[] =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
      "'<|im_end|>' }}{{ loop.index }}{{ '\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif "
      "%}";
  static const char *const five[] = {
      "user", "Hi", "assistant", "a", "user", "b", "assistant", "c", NULL};
  stage_t s;
  const int32_t *ids;
  size_t n;

  stage_open(&s, counts, one);
  sample(&s, "c", 1);
  tnk_chat_free(s.chat);
  s.chat = toy_chat(five);
  CHECK_INT(tnk_chat_add(s.chat, "user", "d", NULL), TNK_OK);
  CHECK_INT(go_on(&s, 4), TNK_OK);
  ids = tnk_chat_tokens_ids(s.tokens, &n);
  CHECK(strstr(toy_text(ids, n), "d<|im_end|>5\n") != NULL);
  stage_close(&s);
}

TEST(bad_calls_are_told) {
  static const char *const two[] = {"user", "Hi", "user", "More", NULL};
  stage_t s;

  stage_open(&s, toy_turns, two);
  sample(&s, "Hello", 1);
  CHECK_INT(go_on(&s, 2), TNK_EINVAL);
  CHECK_INT(go_on(&s, 1), TNK_EINVAL);
  CHECK(strstr(s.error.text, "no answer") != NULL);
  s.n = 0;
  CHECK_INT(go_on(&s, 0), TNK_EINVAL);
  stage_close(&s);
}

static unsigned next_random(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

/* Words with line breaks, blanks and characters of several bytes. */
static void make_text(char *text, unsigned *state) {
  static const char *const words[] = {"a", "\n", "\n\n", " ",  "\xc3\xa9",
                                      "<", "x ", "user", "Yy", "\xe4\xb8\xad"};
  unsigned n = next_random(state) % 8;

  text[0] = '\0';
  while (n-- > 0)
    strncat(text, words[next_random(state) % 10], 8);
}

/* Several turns, each sampled byte by byte. */
TEST_LIMIT(random_conversations_are_those_of_a_fresh_rendering, 30) {
  const char *count = getenv("TNK_CHAT_BRIDGES");
  const unsigned n_chats =
      count != NULL ? (unsigned)strtoul(count, NULL, 10) : 100;
  static const char *const none[] = {NULL};
  unsigned state = 7;

  for (unsigned i = 0; i < n_chats; i++) {
    stage_t s;
    char text[128];

    stage_open(&s, i % 2 == 0 ? toy_turns : calls, none);
    make_text(text, &state);
    CHECK_INT(tnk_chat_add(s.chat, "user", text, NULL), TNK_OK);
    for (unsigned turn = 0; turn < 1 + i % 3; turn++) {
      int32_t before[4096];
      size_t n_before, first;

      make_text(text, &state);
      if (turn == 0) {
        sample(&s, text, next_random(&state) % 2 != 0);
      } else {
        for (const char *p = text; *p != '\0'; p++)
          s.ids[s.n++] = (unsigned char)*p;
        s.ids[s.n++] = TOY_END;
      }
      n_before = s.n;
      memcpy(before, s.ids, n_before * sizeof(*before));
      CHECK_INT(tnk_chat_add(s.chat, "assistant", text, NULL), TNK_OK);
      first = tnk_chat_count(s.chat);
      for (unsigned k = 0; k <= next_random(&state) % 2; k++) {
        make_text(text, &state);
        CHECK_INT(tnk_chat_add(s.chat, k == 0 ? "user" : "tool", text, NULL),
                  TNK_OK);
      }
      expect_whole(&s, first);
      CHECK_MEM(s.ids, n_before * sizeof(*before), before,
                n_before * sizeof(*before));
      (void)tnk_chat_tokens_ids(s.tokens, &first);
      s.n += first;
    }
    stage_close(&s);
  }
}

TEST_LIMIT(to_go_on_without_memory, 30) {
  static const char *const three[] = {"user", "Hi",   "assistant", "Hello",
                                      "user", "More", NULL};
  stage_t s;
  int err;

  stage_open(&s, toy_turns, three);
  sample(&s, "", 1);
  for (long n = 0;; n++) {
    test_alloc_fail_at(n);
    err = go_on(&s, 2);
    if (!test_alloc_did_fail())
      break;
    CHECK_INT(err, TNK_ENOMEM);
  }
  test_alloc_fail_at(-1);
  CHECK_INT(err, TNK_OK);
  stage_close(&s);
  CHECK_INT(test_alloc_live(), 0);
}
