/* SPDX-License-Identifier: MIT */
/*
 * Templates as they are opened, conversations as they are read, and the small
 * tables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"
#include "toy.h"

static const char *const one[] = {"user", "Hi", NULL};

static void expect_text(const tnk_chat_template_t *of, const tnk_chat_t *chat,
                        const char *expected) {
  tnk_chat_error_t error;
  char *text;
  size_t n;

  if (tnk_chat_text(&text, &n, of, chat, NULL, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  CHECK_STR(text, expected);
  CHECK_INT(n, strlen(expected));
  tnk_chat_free_text(chat, text);
}

static int open_with(tnk_chat_template_t **of, const char *text,
                     const char *config, const char *name,
                     tnk_chat_error_t *error) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;

  options.allocator = test_allocator();
  options.config = config;
  options.n_config = config != NULL ? strlen(config) : 0;
  options.name = name;
  return tnk_chat_template_open(of, text, text != NULL ? strlen(text) : 0,
                                &options, error);
}

TEST(tokens_of_a_config_are_variables_and_the_end_is_a_stop) {
  static const char config[] =
      "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
      "\"unk_token\":null,\"additional_special_tokens\":[\"<a>\"]}";
  static const char text[] =
      "{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}"
      "{% for t in additional_special_tokens %}{{ t }}{% endfor %}"
      "{% if tools is none %}-{% endif %}";
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_template_t *of;

  CHECK_INT(open_with(&of, text, config, NULL, NULL), TNK_OK);
  expect_text(of, chat, "<s></s>False<a>-");
  CHECK_STR(tnk_chat_template_stops(of)[0], "</s>");
  CHECK(tnk_chat_template_stops(of)[1] == NULL);
  CHECK(tnk_chat_template_ref(of) == of);
  tnk_chat_template_unref(of);
  tnk_chat_template_unref(of);
  tnk_chat_template_unref(NULL);
  CHECK(tnk_chat_template_stops(NULL)[0] == NULL);
  tnk_chat_free(chat);
}

TEST(a_config_that_is_no_text_is_told_as_such) {
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  CHECK_INT(open_with(&of, "x", "{\"eos_token\":\"\xff\"}", NULL, &error),
            TNK_EPROTO);
  CHECK_STR(error.text, "the config is not UTF-8");
}

TEST(a_config_may_have_several_templates) {
  static const char config[] =
      "{\"chat_template\":[{\"name\":\"default\",\"template\":\"plain\"},"
      "{\"name\":\"tool_use\",\"template\":\"tools\"},"
      "{\"name\":\"rag\",\"template\":\"rag\"}]}";
  static const char body[] = "{\"messages\":[],\"tools\":[{\"a\":1}]}";
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  CHECK_INT(open_with(&of, NULL, config, NULL, NULL), TNK_OK);
  expect_text(of, chat, "plain");
  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_TEMPLATE, body, strlen(body), NULL),
            TNK_OK);
  expect_text(of, chat, "tools");
  tnk_chat_template_unref(of);
  CHECK_INT(open_with(&of, NULL, config, "rag", NULL), TNK_OK);
  expect_text(of, chat, "rag");
  tnk_chat_template_unref(of);
  CHECK_INT(open_with(&of, NULL, config, "none", &error), TNK_ENOTFOUND);
  CHECK(of == NULL && strstr(error.text, "\"none\"") != NULL);
  tnk_chat_free(chat);
}

TEST(what_is_no_template_is_told) {
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  CHECK_INT(open_with(&of, "a\n{% nonsense %}", NULL, NULL, &error),
            error.code);
  CHECK(error.code != TNK_OK && of == NULL);
  CHECK_INT(error.line, 2);
  CHECK_INT(open_with(&of, "\xff", NULL, NULL, &error), TNK_EINVAL);
  CHECK_INT(open_with(&of, NULL, "{\"a\":1}", NULL, &error), TNK_ENOTFOUND);
  CHECK_INT(open_with(&of, NULL, "[", NULL, &error), TNK_EPROTO);
  CHECK_INT(open_with(&of, NULL, "[]", NULL, &error), TNK_EPROTO);
  CHECK_INT(tnk_chat_template_open(NULL, NULL, 0, NULL, NULL), TNK_EINVAL);
}

/* ---- Files ---- */

static void put_file(const char *folder, const char *name, const char *text) {
  char path[256];
  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  file = fopen(path, "w");
  CHECK(file != NULL);
  fputs(text, file);
  fclose(file);
}

static void remove_file(const char *folder, const char *name) {
  char path[256];

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  CHECK_INT(remove(path), 0);
}

TEST(a_folder_of_a_model_has_its_template) {
  char folder[] = "/tmp/tnk-chat-XXXXXX", path[256];
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_template_t *of;
  tnk_chat_error_t error;

  CHECK(mkdtemp(folder) != NULL);
  CHECK_INT(tnk_chat_template_load(&of, folder, NULL, &error), TNK_ENOTFOUND);
  CHECK(strstr(error.text, "tokenizer_config.json") != NULL);
  put_file(folder, "tokenizer_config.json",
           "{\"eos_token\":\"E\",\"chat_template\":\"old{{ eos_token }}\"}");
  CHECK_INT(tnk_chat_template_load(&of, folder, NULL, &error), TNK_OK);
  expect_text(of, chat, "oldE");
  tnk_chat_template_unref(of);
  put_file(folder, "chat_template.jinja", "new{{ eos_token }}");
  CHECK_INT(tnk_chat_template_load(&of, folder, NULL, &error), TNK_OK);
  expect_text(of, chat, "newE");
  tnk_chat_template_unref(of);
  snprintf(path, sizeof(path), "%s/tokenizer_config.json", folder);
  CHECK_INT(tnk_chat_template_load(&of, path, NULL, &error), TNK_OK);
  expect_text(of, chat, "oldE");
  tnk_chat_template_unref(of);
  snprintf(path, sizeof(path), "%s/chat_template.jinja", folder);
  CHECK_INT(tnk_chat_template_load(&of, path, NULL, &error), TNK_OK);
  expect_text(of, chat, "newE");
  tnk_chat_template_unref(of);
  CHECK_INT(tnk_chat_template_load(&of, "/dev/null/x", NULL, &error),
            TNK_ENOTFOUND);
  CHECK_INT(tnk_chat_template_load(&of, "/dev/null", NULL, &error),
            TNK_ENOTFOUND);
  CHECK(of == NULL);
  remove_file(folder, "chat_template.jinja");
  remove_file(folder, "tokenizer_config.json");
  CHECK_INT(rmdir(folder), 0);
  tnk_chat_free(chat);
}

/* A template fails with its path, line, message and member. */
TEST(errors_say_where_the_template_failed) {
#define AT "test/chat_template.jinja: line "
  static const struct {
    const char *text, *error; /* behind the folder */
  } rows[] = {
      {"{% for m in messages %}{% for k in m.content | items %}{% endfor %}"
       "{% endfor %}",
       AT "1: \"items\" needs a dict, and not \"str\", in message 0, member "
          "\"content\""},
      {"{% for m in messages[1:] %}\n{% set x = m['content'] | items | list "
       "%}{% endfor %}",
       AT "2: \"items\" needs a dict, and not \"str\", in message 1, member "
          "\"content\""},
      {"{% for m in messages %}{% for x in [1, 2] %}{% if loop.last and "
       "m.role == 'user' and m.content == 'b' %}{{ raise_exception('no') }}"
       "{% endif %}{% endfor %}{% endfor %}",
       AT "1: the template refuses: no, in message 2"},
      {"{% for m in messages %}{% endfor %}{{ raise_exception('no') }}",
       AT "1: the template refuses: no"},
      {"{% for m in messages %}{{ m.role | round }}{% endfor %}",
       AT "1: a number is needed to be rounded, and not \"str\", in message 0, "
          "member \"role\""},
      {"{% for m in messages %}", AT "1: "},
  };
  static const char *const talk[] = {"system", "a", "assistant", "x",
                                     "user",   "b", NULL};
  char folder[] = "/tmp/tnk-chat-XXXXXX", path[256], *text;
  tnk_chat_t *chat = toy_chat(talk);

  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/test", folder);
  CHECK_INT(mkdir(path, 0700), 0);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk_chat_template_t *of;
    tnk_chat_error_t error;
    char file[300];
    int err;

    put_file(path, "chat_template.jinja", rows[i].text);
    snprintf(file, sizeof(file), "%s/chat_template.jinja", path);
    err = tnk_chat_template_load(&of, file, NULL, &error);
    if (err == TNK_OK)
      err = tnk_chat_text(&text, NULL, of, chat, NULL, &error);
    CHECK_INT(err, TNK_EINVAL);
    CHECK(error.line > 0);
    if (strncmp(error.text, folder, strlen(folder)) != 0 ||
        strncmp(error.text + strlen(folder) + 1, rows[i].error,
                strlen(rows[i].error)) != 0)
      test_fail(__FILE__, __LINE__, "%s", error.text);
    tnk_chat_template_unref(of);
  }
  remove_file(path, "chat_template.jinja");
  CHECK_INT(rmdir(path), 0);
  CHECK_INT(rmdir(folder), 0);
  tnk_chat_free(chat);
}

/* ---- Conversations ---- */

TEST(the_plain_template_writes_roles) {
  static const char body[] =
      "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
      "\"text\":\"Hi\"}]},{\"role\":\"assistant\",\"content\":null,"
      "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":"
      "{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},"
      "{\"role\":\"tool\",\"content\":\"7\"}],"
      "\"tools\":[{\"type\":\"function\"}]}";
  tnk_chat_t *chat = tnk_chat_new(test_allocator());
  tnk_chat_template_t *of;

  CHECK_INT(tnk_chat_template_open(&of, NULL, 0, NULL, NULL), TNK_OK);
  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_TEMPLATE, body, strlen(body), NULL),
            TNK_OK);
  expect_text(of, chat,
              "Tools: {\"type\": \"function\"}\n\nUser: Hi\n\nAssistant:\n"
              "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}"
              "</tool_call>\n\nTool: 7\n\nAssistant:");
  CHECK_STR(tnk_chat_template_stops(of)[0], "\n\nUser:");
  tnk_chat_template_unref(of);
  tnk_chat_free(chat);
}

/* Append a body of a shape, and expect the text. */
static void expect_body(tnk_chat_shape_t shape, const char *body,
                        const tnk_chat_template_t *of, const char *text) {
  tnk_chat_t *chat = tnk_chat_new(test_allocator());

  CHECK_INT(tnk_chat_read(chat, shape, body, strlen(body), NULL), TNK_OK);
  expect_text(of, chat, text);
  tnk_chat_free(chat);
}

TEST(an_answer_of_calls_alone_says_an_empty_text) {
#define CALL_OF(arguments)                                                     \
  "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{"         \
  "\"name\":\"f\",\"arguments\":" arguments "}}]}]}"
#define ANSWER "{\"messages\":[{\"role\":\"assistant\","
  static const struct {
    tnk_chat_shape_t shape;
    const char *body, *text;
  } rows[] = {
      {TNK_CHAT_OPENAI, ANSWER "\"content\":null," CALL_OF("\"{}\""), "[]y"},
      {TNK_CHAT_OPENAI, ANSWER CALL_OF("\"{}\""), "[]y"},
      {TNK_CHAT_OPENAI, ANSWER "\"content\":\"\"," CALL_OF("\"{}\""), "[]y"},
      {TNK_CHAT_OPENAI, ANSWER "\"content\":[]," CALL_OF("\"{}\""), "[]y"},
      {TNK_CHAT_OPENAI, ANSWER "\"content\":\"No\"," CALL_OF("\"{}\""),
       "[No]y"},
      {TNK_CHAT_OPENAI, ANSWER "\"content\":null}]}", "[]n"},
      {TNK_CHAT_RESPONSES,
       "{\"input\":[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":"
       "\"f\",\"arguments\":\"{}\"}]}",
       "[]y"},
      {TNK_CHAT_ANTHROPIC,
       ANSWER "\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\","
              "\"input\":{}}]}]}",
       "[]y"},
      /* As templates have it, a null is no member. */
      {TNK_CHAT_TEMPLATE, ANSWER "\"content\":null," CALL_OF("{}"), "-y"},
      {TNK_CHAT_TEMPLATE, ANSWER "\"content\":\"\"," CALL_OF("{}"), "[]y"},
      {TNK_CHAT_TEMPLATE,
       ANSWER "\"content\":\"\",\"tool_calls\":null,\"name\":null}]}", "[]n"},
  };
  tnk_chat_template_t *of = toy_open(
      "{% for m in messages %}{% if m.content is defined %}[{{ m.content }}]"
      "{% else %}-{% endif %}{{ 'y' if m.tool_calls is defined else 'n' }}"
      "{{ 'name' if 'name' in m }}{% endfor %}");

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    expect_body(rows[i].shape, rows[i].body, of, rows[i].text);
  tnk_chat_template_unref(of);
}

TEST(thoughts_are_seen_by_both_names) {
#define THOUGHTS(members) ANSWER members "\"content\":\"c\"}]}"
  static const struct {
    const char *members, *text;
  } rows[] = {
      {THOUGHTS("\"reasoning_content\":\"a\","),
       "thinking=a role=assistant reasoning_content=a content=c "},
      {THOUGHTS("\"thinking\":\"a\","),
       "thinking=a role=assistant content=c reasoning_content=a "},
      {THOUGHTS("\"reasoning\":\"a\","),
       "thinking=a role=assistant reasoning=a content=c reasoning_content=a "},
      /* The first name counts. */
      {THOUGHTS("\"reasoning\":\"a\",\"thinking\":\"b\","),
       "thinking=b role=assistant reasoning=a content=c reasoning_content=b "},
      {THOUGHTS("\"thinking\":\"b\",\"reasoning_content\":\"c\","),
       "thinking=b role=assistant reasoning_content=c content=c "},
      {THOUGHTS("\"reasoning_content\":null,\"thinking\":\"b\","),
       "thinking=b role=assistant content=c reasoning_content=b "},
      {THOUGHTS("\"thinking\":null,"), "role=assistant content=c "},
      {THOUGHTS("\"thinking\":\"\","),
       "thinking= role=assistant content=c reasoning_content= "},
      {THOUGHTS(""), "role=assistant content=c "},
  };
  static const char *const names[] = {"reasoning_content", "thinking",
                                      "reasoning"};
  tnk_chat_template_t *of =
      toy_open("{% for m in messages %}{% for k in m %}{{ k }}={{ m[k] }} "
               "{% endfor %}{% endfor %}");
  tnk_chat_template_t *both = toy_open(
      "{% for m in messages %}{{ m.thinking }}{{ m.reasoning_content }}"
      "{% endfor %}");

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    expect_body(TNK_CHAT_TEMPLATE, rows[i].members, of, rows[i].text);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    char body[256];

    snprintf(body, sizeof(body), THOUGHTS("\"%s\":\"Hm\","), names[i]);
    expect_body(TNK_CHAT_OPENAI, body, both, "HmHm");
  }
  tnk_chat_template_unref(both);
  tnk_chat_template_unref(of);
}

TEST(variables_are_set_and_taken_back) {
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_template_t *of = toy_open("{{ a }},{{ b is defined }}");
  tnk_chat_error_t error;

  CHECK_INT(tnk_chat_set(chat, "a", "1", NULL), TNK_OK);
  CHECK_INT(tnk_chat_set(chat, "b", "null", NULL), TNK_OK);
  expect_text(of, chat, "1,True");
  CHECK_INT(tnk_chat_set(chat, "a", "\"x\"", NULL), TNK_OK);
  CHECK_INT(tnk_chat_set(chat, "b", NULL, NULL), TNK_OK);
  expect_text(of, chat, "x,False");
  CHECK_INT(tnk_chat_set(chat, "a", "{", &error), TNK_EINVAL);
  CHECK(strstr(error.text, "\"a\"") != NULL);
  CHECK_INT(tnk_chat_set(chat, "messages", "[]", &error), TNK_EINVAL);
  CHECK_INT(tnk_chat_set(chat, "", "1", &error), TNK_EINVAL);
  CHECK_INT(tnk_chat_set(NULL, "a", "1", &error), TNK_EINVAL);
  expect_text(of, chat, "x,False");
  tnk_chat_template_unref(of);
  tnk_chat_free(chat);
}

/* One that is set again takes no room beside its value, however many there
 * are. */
TEST(variables_are_set_in_their_place) {
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_template_t *of = toy_open("{{ v0 }},{{ v7 }},{{ v499 }}");
  char name[16], value[16];
  size_t n_bytes;

  for (int i = 0; i < 500; i++) {
    (void)snprintf(name, sizeof(name), "v%d", i);
    CHECK_INT(tnk_chat_set(chat, name, "0", NULL), TNK_OK);
  }
  n_bytes = test_alloc_bytes();
  for (int i = 0; i <= 500; i++) {
    (void)snprintf(value, sizeof(value), "%d", i);
    CHECK_INT(tnk_chat_set(chat, "v7", value, NULL), TNK_OK);
  }
  CHECK(test_alloc_bytes() - n_bytes < 100000);
  expect_text(of, chat, "0,500,0");
  CHECK_INT(tnk_chat_set(chat, "v7", "[", NULL), TNK_EINVAL);
  expect_text(of, chat, "0,500,0");
  CHECK_INT(tnk_chat_set(chat, "v7", NULL, NULL), TNK_OK);
  CHECK_INT(tnk_chat_set(chat, "v7", NULL, NULL), TNK_OK);
  expect_text(of, chat, "0,,0");
  tnk_chat_template_unref(of);
  tnk_chat_free(chat);
}

TEST(what_is_read_wrong_leaves_the_conversation_as_it_was) {
  static const char *const bad[] = {"{",
                                    "7",
                                    "{\"messages\":{}}",
                                    "[{\"content\":\"a\"}]",
                                    "[{\"role\":\"user\"},7]",
                                    "{\"messages\":[],\"tools\":7}",
                                    "\"\xff\""};
  tnk_chat_t *chat = toy_chat(one);
  tnk_chat_error_t error;
  char *json;
  size_t n;

  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    CHECK_INT(
        tnk_chat_read(chat, TNK_CHAT_TEMPLATE, bad[i], strlen(bad[i]), &error),
        TNK_EINVAL);
    CHECK(error.text[0] != '\0');
  }
  CHECK_INT(tnk_chat_read(chat, (tnk_chat_shape_t)9, "[]", 2, NULL),
            TNK_EINVAL);
  CHECK_INT(tnk_chat_add(chat, "user", "\xff", &error), TNK_EINVAL);
  CHECK_INT(tnk_chat_add(chat, "", "a", &error), TNK_EINVAL);
  CHECK_INT(tnk_chat_count(chat), 1);
  CHECK_INT(tnk_chat_write(chat, TNK_CHAT_TEMPLATE, &json, &n, NULL), TNK_OK);
  CHECK_STR(json,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
  CHECK_INT(n, strlen(json));
  tnk_chat_free_text(chat, json);
  tnk_chat_free(chat);
  CHECK_INT(tnk_chat_count(NULL), 0);
  tnk_chat_free(NULL);
}

TEST(a_conversation_that_is_too_large_is_told) {
  const size_t n = (size_t)60 << 20;
  tnk_chat_t *chat = toy_chat(one);
  char *json = malloc(n);
  tnk_chat_error_t error;
  int err = TNK_OK;

  CHECK(json != NULL);
  memset(json, ' ', n);
  memcpy(json, "[]", 2);
  for (int i = 0; i < 9 && err == TNK_OK; i++)
    err = tnk_chat_read(chat, TNK_CHAT_TEMPLATE, json, n, &error);
  CHECK_INT(err, TNK_ETOOBIG);
  CHECK_INT(error.code, TNK_ETOOBIG);
  CHECK_STR(error.text, "the conversation is too large");
  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_OPENAI, json, n, &error), TNK_ETOOBIG);
  CHECK_STR(error.text, "the conversation is too large");
  CHECK_INT(tnk_chat_add(chat, "user", "x", NULL), TNK_OK);
  CHECK_INT(tnk_chat_count(chat), 2);
  free(json);
  tnk_chat_free(chat);
}

TEST(the_shapes_of_apis_are_read_and_written) {
  static const char body[] =
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"
      "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
      "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
      "\"{\\\"a\\\": 1}\"}}]}]}";
  tnk_chat_t *chat = tnk_chat_new(test_allocator());
  char *json;

  CHECK_INT(tnk_chat_read(chat, TNK_CHAT_OPENAI, body, strlen(body), NULL),
            TNK_OK);
  CHECK_INT(tnk_chat_write(chat, TNK_CHAT_TEMPLATE, &json, NULL, NULL), TNK_OK);
  CHECK(strstr(json, "\"arguments\": {\"a\": 1}") != NULL);
  tnk_chat_free_text(chat, json);
  CHECK_INT(tnk_chat_write(chat, TNK_CHAT_ANTHROPIC, &json, NULL, NULL),
            TNK_OK);
  CHECK(strstr(json, "\"tool_use\"") != NULL);
  tnk_chat_free_text(chat, json);
  tnk_chat_free(chat);
}

TEST_LIMIT(conversations_without_memory, 30) {
  static const char body[] =
      "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[{}]}";

  for (long n = 0, is_done = 0; !is_done; n++) {
    tnk_chat_template_t *of = NULL;
    tnk_chat_t *chat;
    char *json = NULL;
    int err = TNK_ENOMEM;

    test_alloc_fail_at(n);
    chat = tnk_chat_new(test_allocator());
    if (chat != NULL)
      err = tnk_chat_add(chat, "user", "Hi", NULL);
    if (err == TNK_OK)
      err = tnk_chat_read(chat, TNK_CHAT_TEMPLATE, body, strlen(body), NULL);
    if (err == TNK_OK)
      err = tnk_chat_set(chat, "a", "[1]", NULL);
    if (err == TNK_OK)
      err = tnk_chat_write(chat, TNK_CHAT_TEMPLATE, &json, NULL, NULL);
    if (err == TNK_OK)
      err = open_with(&of, "{{ a }}", "{\"eos_token\":\"E\"}", NULL, NULL);
    is_done = !test_alloc_did_fail();
    CHECK_INT(err, is_done ? TNK_OK : TNK_ENOMEM);
    test_alloc_fail_at(-1);
    tnk_chat_template_unref(of);
    tnk_chat_free_text(chat, json);
    tnk_chat_free(chat);
    CHECK_INT(test_alloc_live(), 0);
  }
}

/* ---- Tables ---- */

typedef struct {
  int32_t ids[600];
  char bytes[600];
  size_t n;
} got_t;

static int take_ids(const int32_t *ids, size_t n, void *user) {
  got_t *got = user;

  memcpy(got->ids + got->n, ids, n * sizeof(*ids));
  got->n += n;
  return TNK_OK;
}

static int take_bytes(const char *bytes, size_t n, void *user) {
  got_t *got = user;

  memcpy(got->bytes + got->n, bytes, n);
  got->n += n;
  return TNK_OK;
}

TEST(bytes_are_tokens) {
  const tnk_tokenizer_plugin_t *bytes = tnk_chat_bytes_plugin();
  const int32_t odd[] = {'a', 256, 257, 258, -1, 0xc3};
  char text[560], why[64];
  const tnk_pair_t pair = {"a", "b"};
  got_t got = {.n = 0};
  void *tokenizer;

  memset(text, 'x', sizeof(text));
  memcpy(text, "<|begin|>\xc3<|en<|end|>", 22);
  CHECK_INT(bytes->encode(NULL, text, sizeof(text), 0, take_ids, &got, why,
                          sizeof(why)),
            TNK_OK);
  CHECK_INT(got.n, sizeof(text) - 8 - 6);
  CHECK_INT(got.ids[0], 256);
  CHECK_INT(got.ids[1], 0xc3);
  CHECK_INT(got.ids[6], 257);
  CHECK_INT(got.ids[got.n - 1], 'x');
  got.n = 0;
  CHECK_INT(bytes->decode(NULL, odd, 6, 0, take_bytes, &got, why, sizeof(why)),
            TNK_OK);
  CHECK_MEM(got.bytes, got.n, "a<|begin|><|end|>\xc3", 18);
  CHECK_INT(bytes->decode(NULL, odd, 6, 1, take_bytes, &got, why, sizeof(why)),
            TNK_EINVAL);
  CHECK_INT(bytes->encode(NULL, "a", 1, 2, take_ids, &got, why, sizeof(why)),
            TNK_EINVAL);
  CHECK_INT(bytes->open(&tokenizer, "x", &pair, 1, NULL, why, sizeof(why)),
            TNK_ENOTSUP);
  CHECK_INT(bytes->open(&tokenizer, "x", NULL, 0, NULL, why, sizeof(why)),
            TNK_OK);
  bytes->close(tokenizer);
}

/* ---- Canceling ---- */

typedef struct {
  int n_asked, cancel_at;
} caller_t;

static int is_canceled(void *user) {
  caller_t *caller = user;

  return ++caller->n_asked >= caller->cancel_at;
}

typedef int (*encode_fn)(tnk_chat_tokens_t *tokens,
                         const tnk_chat_template_t *of, const tnk_chat_t *chat,
                         const tnk_chat_options_t *options,
                         tnk_chat_error_t *error);

static int to_text(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *of,
                   const tnk_chat_t *chat, const tnk_chat_options_t *options,
                   tnk_chat_error_t *error) {
  char *text;
  const int err = tnk_chat_text(&text, NULL, of, chat, options, error);

  (void)tokens;
  CHECK((text != NULL) == (err == TNK_OK));
  tnk_chat_free_text(chat, text);
  return err;
}

static int to_tokens(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *of,
                     const tnk_chat_t *chat, const tnk_chat_options_t *options,
                     tnk_chat_error_t *error) {
  return tnk_chat_encode(tokens, of, &toy, chat, options, error);
}

static int to_masked(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *of,
                     const tnk_chat_t *chat, const tnk_chat_options_t *options,
                     tnk_chat_error_t *error) {
  tnk_chat_options_t all = *options;

  all.train_on = TNK_CHAT_TRAIN_ALL_ANSWERS;
  return tnk_chat_encode(tokens, of, &toy, chat, &all, error);
}

static int to_answer(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *of,
                     const tnk_chat_t *chat, const tnk_chat_options_t *options,
                     tnk_chat_error_t *error) {
  return tnk_chat_encode_answer(tokens, of, &toy, chat, 3, options, error);
}

static int to_next(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *of,
                   const tnk_chat_t *chat, const tnk_chat_options_t *options,
                   tnk_chat_error_t *error) {
  static const int32_t ids[] = {'x', TOY_END};

  return tnk_chat_continue(tokens, of, &toy, ids, 2, chat, 4, options, error);
}

/* Each call is canceled at each of the questions that it asks. */
TEST(each_call_ends_when_it_is_canceled) {
  static const char *const turns[] = {"user", "Hi", "assistant", "Hello",
                                      "user", "?",  "assistant", "x",
                                      "user", "!",  NULL};
  static const encode_fn calls[] = {to_text, to_tokens, to_masked, to_answer,
                                    to_next};
  static const int n_least[] = {1, 1, 5, 3, 3};
  tnk_chat_template_t *of = toy_open(toy_turns);
  tnk_chat_t *chat = toy_chat(turns);
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(test_allocator());

  for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
    tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
    caller_t caller = {.cancel_at = 0};
    tnk_chat_error_t error;
    size_t n;
    int err;

    options.is_canceled = is_canceled;
    options.user = &caller;
    do {
      caller = (caller_t){.cancel_at = caller.cancel_at + 1};
      err = calls[i](tokens, of, chat, &options, &error);
      CHECK_INT(error.code, err);
      if (err == TNK_OK)
        break;
      CHECK_INT(err, TNK_ECANCELED);
      CHECK_INT(caller.n_asked, caller.cancel_at);
      CHECK(strstr(error.text, "the rendering was canceled") != NULL);
      (void)tnk_chat_tokens_ids(tokens, &n);
      CHECK_INT(n, 0);
    } while (caller.cancel_at < 1000);
    CHECK_INT(err, TNK_OK);
    CHECK(caller.cancel_at > n_least[i]);
  }
  tnk_chat_tokens_free(tokens);
  tnk_chat_free(chat);
  tnk_chat_template_unref(of);
}

TEST(renderers_are_found_by_name) {
  size_t n;
  const tnk_chat_renderer_t *rows = tnk_chat_renderers(&n);

  CHECK(n >= 40);
  for (size_t i = 0; i < n; i++) {
    CHECK(tnk_chat_find(rows[i].name) == &rows[i]);
    CHECK(i == 0 || strcmp(rows[i - 1].name, rows[i].name) < 0);
    CHECK(rows[i].stops[0] != NULL || rows[i].note != NULL);
    for (uint32_t k = 0; k < rows[i].n_variables; k++) {
      tnk_chat_t *chat = toy_chat(one);

      CHECK_INT(tnk_chat_set(chat, rows[i].variables[k].name,
                             rows[i].variables[k].value, NULL),
                TNK_OK);
      tnk_chat_free(chat);
    }
  }
  CHECK(tnk_chat_find("qwen3") != NULL);
  CHECK(tnk_chat_find("nobody") == NULL);
  CHECK(tnk_chat_find(NULL) == NULL);
}
