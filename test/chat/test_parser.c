/* SPDX-License-Identifier: MIT */
/*
 * Sampled ids to messages. What families write is tested with the parsers of
 * text; here it is ids, characters and prompts.
 */
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "toy.h"

typedef struct {
  char text[512]; /* kinds and texts, one behind the other */
  size_t n;
} heard_t;

static void hear(const tnk_chat_delta_t *delta, void *user) {
  static const char kinds[] = "tcbaeu";
  heard_t *heard = user;

  CHECK(heard->n + delta->n + 2 < sizeof(heard->text));
  if (heard->n == 0 || delta->kind != TNK_CHAT_DELTA_CONTENT ||
      strchr(heard->text, 'c') == NULL)
    heard->text[heard->n++] = kinds[delta->kind];
  memcpy(heard->text + heard->n, delta->text, delta->n);
  heard->n += delta->n;
  heard->text[heard->n] = '\0';
}

static tnk_chat_parser_t *open_parser(tnk_chat_family_t family,
                                      const tnk_chat_t *chat) {
  tnk_chat_parser_t *parser;
  tnk_chat_error_t error;

  if (tnk_chat_parser_open(&parser, family, &toy, chat, test_allocator(),
                           &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  return parser;
}

static size_t put(int32_t *ids, const char *text) {
  size_t n = 0;

  for (; text[n] != '\0'; n++)
    ids[n] = (unsigned char)text[n];
  return n;
}

TEST(an_answer_is_told_in_whole_characters) {
  int32_t ids[64];
  const size_t n = put(ids, "\xe4\xb8\xad\xc3\xa9!\xff");

  for (size_t step = 1; step <= n; step++) {
    tnk_chat_parser_t *parser = open_parser(TNK_CHAT_PLAIN, NULL);
    heard_t heard = {.n = 0};
    const char *json;
    size_t n_json;

    for (size_t i = 0; i < n; i += step) {
      CHECK_INT(tnk_chat_parser_feed(parser, ids + i,
                                     i + step < n ? step : n - i, hear, &heard),
                TNK_OK);
      if (step == 1 && i == 1)
        CHECK_INT(heard.n, 0);
    }
    CHECK_INT(tnk_chat_parser_finish(parser, hear, &heard, &json, &n_json),
              TNK_OK);
    CHECK_STR(heard.text, "c\xe4\xb8\xad\xc3\xa9!\xef\xbf\xbd");
    CHECK_STR(json, "{\"role\": \"assistant\", \"content\": "
                    "\"\xe4\xb8\xad\xc3\xa9!\xef\xbf\xbd\"}");
    CHECK_INT(n_json, strlen(json));
    CHECK_INT(tnk_chat_parser_feed(parser, ids, 1, NULL, NULL), TNK_EINVAL);
    CHECK_INT(tnk_chat_parser_finish(parser, NULL, NULL, NULL, NULL),
              TNK_EINVAL);
    tnk_chat_parser_free(parser);
  }
  tnk_chat_parser_free(NULL);
}

TEST(stops_and_the_prompt_count) {
  static const char *const stops[] = {"<|im_end|>", NULL};
  static const char *const empty[] = {"!", "", NULL};
  int32_t ids[64], prompt[64];
  const size_t n_prompt = put(prompt, "x\n<think>\n");
  size_t n = put(ids, "why</think>Hi");
  tnk_chat_parser_t *parser = open_parser(TNK_CHAT_THINK, NULL);
  const char *json;

  ids[n++] = TOY_END;
  CHECK_INT(tnk_chat_parser_prompt(parser, prompt, n_prompt, empty),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_parser_prompt(parser, prompt, n_prompt, stops), TNK_OK);
  CHECK_INT(tnk_chat_parser_feed(parser, ids, n, NULL, NULL), TNK_OK);
  CHECK_INT(tnk_chat_parser_prompt(parser, prompt, n_prompt, stops),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_parser_finish(parser, NULL, NULL, &json, NULL), TNK_OK);
  CHECK(strstr(json, "\"reasoning_content\": \"why\"") != NULL);
  CHECK(strstr(json, "\"content\": \"Hi\"") != NULL);
  tnk_chat_parser_free(parser);
}

TEST(what_is_no_call_is_kept) {
  int32_t ids[64];
  const size_t n = put(ids, "a<tool_call>{nonsense</tool_call>");
  tnk_chat_parser_t *parser = open_parser(TNK_CHAT_HERMES, NULL);
  const char *json;

  CHECK_INT(tnk_chat_parser_feed(parser, ids, n, NULL, NULL), TNK_OK);
  CHECK_INT(tnk_chat_parser_finish(parser, NULL, NULL, &json, NULL), TNK_OK);
  CHECK(strstr(json, "\"extra\": {\"unparsed\": [") != NULL);
  CHECK(strstr(json, "{nonsense") != NULL);
  tnk_chat_parser_free(parser);
}

/* The model may write what is JSON and fits in no number. */
TEST(numbers_that_are_too_large_stay_json) {
  static const char *const none[] = {NULL};
  static const char body[] = "{\"messages\":[],\"tools\":[{\"a\":1e999}]}";
  int32_t ids[128];
  const size_t n = put(ids, "<tool_call>{\"name\":\"f\",\"arguments\":"
                            "{\"a\":-1e999}}</tool_call>");
  tnk_chat_t *chat = toy_chat(none);
  tnk_chat_parser_t *parser;
  const char *json;
  char *text;

  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_TEMPLATE, body, strlen(body), NULL),
            TNK_OK);
  CHECK_INT(tnk_chat_write(chat, TNK_CHAT_TEMPLATE, &text, NULL, NULL), TNK_OK);
  CHECK_STR(text, "{\"messages\": [], \"tools\": [{\"a\": 1e999}]}");
  tnk_chat_free_text(chat, text);
  parser = open_parser(TNK_CHAT_HERMES, chat);
  CHECK_INT(tnk_chat_parser_feed(parser, ids, n, NULL, NULL), TNK_OK);
  CHECK_INT(tnk_chat_parser_finish(parser, NULL, NULL, &json, NULL), TNK_OK);
  CHECK(strstr(json, "\"arguments\": {\"a\": -1e999}") != NULL);
  tnk_chat_parser_free(parser);
  tnk_chat_free(chat);
}

TEST(parsers_that_cannot_be_had) {
  tnk_tokenizer_plugin_t old = toy_plugin;
  tnk_chat_tokenizer_t tokenizer = {&old, NULL};
  tnk_chat_parser_t *parser;
  tnk_chat_error_t error;

  old.decode = NULL;
  CHECK_INT(tnk_chat_parser_open(&parser, TNK_CHAT_PLAIN, &tokenizer, NULL,
                                 NULL, &error),
            TNK_EUNSUPPORTED);
  CHECK(parser == NULL);
  CHECK_INT(tnk_chat_parser_open(&parser, (tnk_chat_family_t)99, &toy, NULL,
                                 NULL, NULL),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_parser_feed(NULL, NULL, 0, NULL, NULL), TNK_EINVAL);
  old = toy_plugin;
  old.encode = NULL;
  CHECK_INT(tnk_chat_parser_open(&parser, TNK_CHAT_PLAIN, &tokenizer, NULL,
                                 NULL, &error),
            TNK_OK);
  tnk_chat_parser_free(parser);
}

TEST_LIMIT(parsers_without_memory, 30) {
  static const char body[] = "{\"messages\":[],\"tools\":[{\"a\":\"b\"}]}";
  static const char *const stops[] = {"!", NULL};
  static const char *const none[] = {NULL};
  int32_t ids[64];
  const size_t n_ids = put(ids, "<think>a</think>b<tool_call>{}</tool_call>!");
  tnk_chat_t *chat = toy_chat(none);

  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_TEMPLATE, body, strlen(body), NULL),
            TNK_OK);
  for (long n = 0, is_done = 0; !is_done; n++) {
    tnk_chat_parser_t *parser;
    const char *json;
    int err;

    test_alloc_fail_at(n);
    err = tnk_chat_parser_open(&parser, TNK_CHAT_HERMES, &toy, chat,
                               test_allocator(), NULL);
    if (err == TNK_OK)
      err = tnk_chat_parser_prompt(parser, ids, 3, stops);
    if (err == TNK_OK)
      err = tnk_chat_parser_feed(parser, ids, n_ids, NULL, NULL);
    if (err == TNK_OK)
      err = tnk_chat_parser_finish(parser, NULL, NULL, &json, NULL);
    is_done = !test_alloc_did_fail();
    CHECK_INT(err, is_done ? TNK_OK : TNK_ENOMEM);
    test_alloc_fail_at(-1);
    tnk_chat_parser_free(parser);
  }
  tnk_chat_free(chat);
  CHECK_INT(test_alloc_live(), 0);
}
