/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/message/message.h"
#include "lib/base/buf.h"
#include "support/test.h"

/* Messages of each shape: what they become, what is refused, and that there and
 * back nothing is lost; conversations of any kind are in test_message_loop.c.
 */

typedef struct {
  tnk__heap_t heap;
  tnk__value_t messages, tools;
  tnk__why_t why;
  tnk__buf_t buf;
} read_t;

static tnk__value_t parse(read_t *read, const char *json) {
  tnk__value_t value;

  if (tnk__value_from_json(&read->heap, json, strlen(json), &value) != TNK_OK)
    test_fail(__FILE__, __LINE__, "no JSON: %s", json);
  return value;
}

static int do_read(read_t *read, tnk_chat_shape_t shape, const char *json) {
  memset(&read->why, 0, sizeof(read->why));
  tnk__heap_init(&read->heap, test_allocator(), 1 << 22);
  tnk__buf_init(&read->buf, test_allocator(), 1 << 22);
  return tnk__message_read(&read->heap, shape, parse(read, json),
                           &read->messages, &read->tools, &read->why);
}

static const char *text_of(read_t *read, tnk__value_t value) {
  tnk__buf_clear(&read->buf);
  CHECK_INT(tnk__value_to_json(&read->buf, value, NULL), TNK_OK);
  return tnk__buf_cstr(&read->buf);
}

static void done(read_t *read) {
  tnk__buf_deinit(&read->buf);
  tnk__heap_deinit(&read->heap);
}

/* The same without what is kept. */
static tnk__value_t bare(read_t *read, tnk__value_t messages) {
  tnk__value_t out = tnk__value_list(&read->heap);

  for (size_t i = 0; i < messages.as.list->n; i++) {
    tnk__value_t copy = tnk__value_dict(&read->heap);
    tnk__value_dict_t *dict = messages.as.list->items[i].as.dict;

    for (size_t k = 0; k < dict->n; k++)
      if (!tnk__value_is(dict->entries[k].key, "extra"))
        tnk__value_put(&read->heap, copy, dict->entries[k].key,
                       dict->entries[k].value);
    tnk__value_append(&read->heap, out, copy);
  }
  return out;
}

typedef struct {
  tnk_chat_shape_t shape;
  const char *body;
  const char *messages; /* expected */
  const char *tools;    /* likewise; NULL: there are none */
} good_t;

/* It becomes that, and comes back as it was. */
static void check_good(const good_t *good) {
  tnk__value_t back;
  read_t read;
  int err = do_read(&read, good->shape, good->body);

  if (err != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", good->body, read.why.text);
  CHECK_STR(text_of(&read, bare(&read, read.messages)), good->messages);
  if (good->tools == NULL)
    CHECK(read.tools.kind == TNK__VALUE_UNDEFINED);
  else
    CHECK_STR(text_of(&read, read.tools), good->tools);
  CHECK_INT(tnk__message_write(&read.heap, good->shape, read.messages,
                               read.tools, &back, &read.why),
            TNK_OK);
  if (!tnk__value_equal(back, parse(&read, good->body)))
    test_fail(__FILE__, __LINE__, "%s came back as %s", good->body,
              text_of(&read, back));
  done(&read);
}

#define CHECK_GOOD(list)                                                       \
  for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)                  \
  check_good(&list[i])

TEST(messages_of_openai) {
  static const good_t list[] = {
      {TNK_CHAT_OPENAI,
       "{\"messages\": [{\"role\": \"developer\", \"content\": \"Be brief.\"}, "
       "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
       "\"What?\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
       "\"data:image/png;base64,AA==\", \"detail\": \"low\"}}], \"name\": "
       "\"ann\"}]}",
       "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": "
       "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"What?\"}, "
       "{\"type\": \"image\", \"image\": \"data:image/png;base64,AA==\"}], "
       "\"name\": \"ann\"}]",
       NULL},
      {TNK_CHAT_OPENAI,
       "{\"messages\": [{\"role\": \"assistant\", \"content\": null, "
       "\"refusal\": null, \"annotations\": [], \"reasoning_content\": \"Hm\", "
       "\"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", "
       "\"function\": {\"name\": \"f\", \"arguments\": "
       "\"{\\\"a\\\":[1,2.0]}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": "
       "\"c1\", \"content\": [{\"type\": \"text\", \"text\": \"7\"}]}], "
       "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
       "\"strict\": true}}]}",
       "[{\"role\": \"assistant\", \"content\": \"\", \"reasoning_content\": "
       "\"Hm\", \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", "
       "\"function\": {\"name\": \"f\", \"arguments\": {\"a\": [1, 2.0]}}}]}, "
       "{\"role\": \"tool\", \"content\": \"7\", \"tool_call_id\": \"c1\"}]",
       "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": "
       "true}}]"},
      {TNK_CHAT_OPENAI,
       "{\"messages\": [{\"role\": \"assistant\", \"content\": null, "
       "\"refusal\": \"No.\"}, {\"role\": \"assistant\", \"content\": "
       "[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"refusal\", "
       "\"refusal\": \"b\"}]}, {\"role\": \"assistant\", \"reasoning\": \"x\"}"
       "]}",
       "[{\"role\": \"assistant\", \"content\": \"No.\"}, {\"role\": "
       "\"assistant\", \"content\": \"ab\"}, {\"role\": \"assistant\", "
       "\"content\": \"\", \"reasoning_content\": \"x\"}]",
       NULL},
      {TNK_CHAT_OPENAI, "{\"messages\": []}", "[]", NULL},
  };

  CHECK_GOOD(list);
}

TEST(items_of_responses) {
  static const good_t list[] = {
      {TNK_CHAT_RESPONSES,
       "{\"input\": \"Hi\", \"instructions\": \"Be brief.\"}",
       "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": "
       "\"user\", \"content\": \"Hi\"}]",
       NULL},
      {TNK_CHAT_RESPONSES,
       "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": "
       "\"input_text\", \"text\": \"a\"}, {\"type\": \"input_image\", "
       "\"image_url\": \"https://x/y.png\", \"detail\": \"auto\"}]}, "
       "{\"type\": \"reasoning\", \"id\": \"rs_1\", \"summary\": [{\"type\": "
       "\"summary_text\", \"text\": \"s\"}], \"encrypted_content\": \"zz\"}, "
       "{\"type\": \"message\", \"id\": \"msg_1\", \"status\": \"completed\", "
       "\"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", "
       "\"text\": \"b\", \"annotations\": []}]}, {\"type\": \"function_call\", "
       "\"id\": \"fc_1\", \"call_id\": \"c1\", \"name\": \"f\", \"arguments\": "
       "\"\"}, {\"type\": \"function_call_output\", \"call_id\": \"c1\", "
       "\"output\": \"7\"}, {\"type\": \"message\", \"role\": \"assistant\", "
       "\"content\": \"c\"}], \"tools\": [{\"type\": \"function\", \"name\": "
       "\"f\", \"parameters\": {}, \"strict\": null, \"x\": 1}]}",
       "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
       "\"a\"}, {\"type\": \"image\", \"image\": \"https://x/y.png\"}]}, "
       "{\"role\": \"assistant\", \"content\": \"b\", \"reasoning_content\": "
       "\"s\", \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", "
       "\"function\": {\"name\": \"f\", \"arguments\": {}}}]}, {\"role\": "
       "\"tool\", \"content\": \"7\", \"tool_call_id\": \"c1\"}, {\"role\": "
       "\"assistant\", \"content\": \"c\"}]",
       "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
       "\"parameters\": {}, \"strict\": null}}]"},
  };

  CHECK_GOOD(list);
}

/* Reasoning and text begin another answer, where this one has either. */
TEST(answers_of_responses_are_told_apart) {
  static const good_t list[] = {
      {TNK_CHAT_RESPONSES,
       "{\"input\": [{\"role\": \"assistant\", \"content\": \"a\"}, {\"role\": "
       "\"assistant\", \"content\": \"b\"}, {\"type\": \"reasoning\", "
       "\"summary\": [], \"content\": [{\"type\": \"reasoning_text\", "
       "\"text\": "
       "\"c\"}]}, {\"type\": \"reasoning\", \"summary\": []}]}",
       "[{\"role\": \"assistant\", \"content\": \"a\"}, {\"role\": "
       "\"assistant\", \"content\": \"b\"}, {\"role\": \"assistant\", "
       "\"content\": \"\", \"reasoning_content\": \"c\"}]",
       NULL},
  };

  CHECK_GOOD(list);
}

TEST(blocks_of_anthropic) {
  static const good_t list[] = {
      {TNK_CHAT_ANTHROPIC,
       "{\"system\": [{\"type\": \"text\", \"text\": \"Be brief.\", "
       "\"cache_control\": {\"type\": \"ephemeral\"}}], \"messages\": "
       "[{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"source\": "
       "{\"type\": \"base64\", \"media_type\": \"image/png\", \"data\": "
       "\"AA==\"}}, {\"type\": \"text\", \"text\": \"What?\"}]}, {\"role\": "
       "\"assistant\", \"content\": [{\"type\": \"thinking\", \"thinking\": "
       "\"Hm\", \"signature\": \"sig\"}, {\"type\": \"redacted_thinking\", "
       "\"data\": \"zz\"}, {\"type\": \"text\", \"text\": \"See.\"}, "
       "{\"type\": \"tool_use\", \"id\": \"c1\", \"name\": \"f\", \"input\": "
       "{\"a\": 1}}, {\"type\": \"tool_use\", \"id\": \"c2\", \"name\": \"g\", "
       "\"input\": {}}]}, {\"role\": \"user\", \"content\": [{\"type\": "
       "\"tool_result\", \"tool_use_id\": \"c1\", \"content\": \"7\", "
       "\"is_error\": true}, {\"type\": \"tool_result\", \"tool_use_id\": "
       "\"c2\"}, {\"type\": \"text\", \"text\": \"So?\"}]}], \"tools\": "
       "[{\"name\": \"f\", \"description\": \"d\", \"input_schema\": "
       "{\"type\": \"object\"}, \"cache_control\": null}]}",
       "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": "
       "\"user\", \"content\": [{\"type\": \"image\", \"image\": "
       "\"data:image/png;base64,AA==\"}, {\"type\": \"text\", \"text\": "
       "\"What?\"}]}, {\"role\": \"assistant\", \"content\": \"See.\", "
       "\"reasoning_content\": \"Hm\", \"tool_calls\": [{\"id\": \"c1\", "
       "\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": "
       "{\"a\": 1}}}, {\"id\": \"c2\", \"type\": \"function\", \"function\": "
       "{\"name\": \"g\", \"arguments\": {}}}]}, {\"role\": \"tool\", "
       "\"content\": \"7\", \"tool_call_id\": \"c1\"}, {\"role\": \"tool\", "
       "\"content\": \"\", \"tool_call_id\": \"c2\"}, {\"role\": \"user\", "
       "\"content\": \"So?\"}]",
       "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
       "\"description\": \"d\", \"parameters\": {\"type\": \"object\"}}}]"},
      /* what stands before a result */
      {TNK_CHAT_ANTHROPIC,
       "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
       "\"text\", "
       "\"text\": \"a\"}, {\"type\": \"tool_result\", \"tool_use_id\": \"c\", "
       "\"content\": []}]}]}",
       "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"tool\", "
       "\"content\": \"\", \"tool_call_id\": \"c\"}]",
       NULL},
      /* results that came apart stay apart */
      {TNK_CHAT_ANTHROPIC,
       "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
       "\"tool_result\", \"tool_use_id\": \"a\", \"content\": \"1\"}]}, "
       "{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", "
       "\"tool_use_id\": \"b\", \"content\": \"2\"}, {\"type\": "
       "\"tool_result\", \"tool_use_id\": \"c\", \"content\": \"3\"}]}, "
       "{\"role\": \"user\", \"content\": []}]}",
       "[{\"role\": \"tool\", \"content\": \"1\", \"tool_call_id\": \"a\"}, "
       "{\"role\": \"tool\", \"content\": \"2\", \"tool_call_id\": \"b\"}, "
       "{\"role\": \"tool\", \"content\": \"3\", \"tool_call_id\": \"c\"}, "
       "{\"role\": \"user\", \"content\": \"\"}]",
       NULL},
  };

  CHECK_GOOD(list);
}

/* A tool call and its result, from one shape to another. */
TEST(what_is_kept_counts_while_it_means_the_same) {
  static const char body[] =
      "{\"messages\": [{\"role\": \"developer\", \"content\": \"a\"}]}";
  tnk__value_t back, first;
  read_t read;

  CHECK_INT(do_read(&read, TNK_CHAT_OPENAI, body), TNK_OK);
  first = read.messages.as.list->items[0];
  CHECK(tnk__value_get(first, "extra").kind == TNK__VALUE_DICT);
  tnk__value_set(&read.heap, first, "content", tnk__value_text("b", 1));
  CHECK_INT(tnk__message_write(&read.heap, TNK_CHAT_OPENAI, read.messages,
                               read.tools, &back, NULL),
            TNK_OK);
  CHECK_STR(text_of(&read, back),
            "{\"messages\": [{\"role\": \"system\", \"content\": \"b\"}]}");
  CHECK_INT(tnk__message_write(&read.heap, TNK_CHAT_ANTHROPIC, read.messages,
                               read.tools, &back, NULL),
            TNK_OK);
  CHECK_STR(text_of(&read, back), "{\"system\": \"b\", \"messages\": []}");
  done(&read);
}

TEST(arguments_that_are_no_json_stay_a_text) {
  static const char body[] =
      "[{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c\", "
      "\"function\": {\"name\": \"f\", \"arguments\": \"{a\"}}]}]";
  tnk__value_t back;
  read_t read;

  CHECK_INT(do_read(&read, TNK_CHAT_OPENAI, body), TNK_OK);
  CHECK_STR(text_of(&read, tnk__value_get(
                               tnk__value_get(read.messages.as.list->items[0],
                                              "extra"),
                               "not_json")),
            "[0]");
  CHECK_INT(tnk__message_write(&read.heap, TNK_CHAT_ANTHROPIC, read.messages,
                               read.tools, &back, &read.why),
            TNK_EUNSUPPORTED);
  CHECK_STR(read.why.text, "messages[0].tool_calls[0]: arguments that are no "
                           "object cannot be said");
  done(&read);
}

/* What is refused, and what is said of it. */
static const struct {
  tnk_chat_shape_t shape;
  int code;
  const char *body, *why;
} refused[] = {
    {TNK_CHAT_OPENAI, TNK_EINVAL, "{}", "the member \"messages\" is missing"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "{\"messages\": 1}",
     "messages: this is no list"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "[1]", "messages[0]: this is no object"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "[{}]",
     "messages[0]: the member \"role\" is missing"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "[{\"role\": 1}]",
     "messages[0].role: this is no text"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "[{\"role\": \"user\"}]",
     "messages[0]: the member \"content\" is missing"},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "[{\"role\": \"function\", \"content\": \"\"}]",
     "messages[0]: the role \"function\" is of an older API; use \"tool\""},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "[{\"role\": \"king\", \"content\": \"\"}]",
     "messages[0]: the role \"king\" is not supported"},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "[{\"role\": \"assistant\", \"function_call\": {}}]",
     "messages[0]: \"function_call\" is of an older API; use "
     "\"tool_calls\""},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "[{\"role\": \"user\", \"content\": \"\"}, {\"role\": \"user\", "
     "\"content\": [{\"type\": \"text\", \"text\": \"\"}, {\"type\": "
     "\"input_audio\"}]}]",
     "messages[1].content[1]: the type \"input_audio\" is not supported"},
    {TNK_CHAT_OPENAI, TNK_EINVAL,
     "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
     "\"image_url\": {}}]}]",
     "messages[0].content[0].image_url: the member \"url\" is missing"},
    {TNK_CHAT_OPENAI, TNK_EINVAL, "[{\"role\": \"tool\", \"content\": \"\"}]",
     "messages[0]: the member \"tool_call_id\" is missing"},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "[{\"role\": \"assistant\", \"tool_calls\": [{\"type\": \"custom\"}]}]",
     "messages[0].tool_calls[0]: the type \"custom\" is not supported"},
    {TNK_CHAT_OPENAI, TNK_EUNSUPPORTED,
     "{\"messages\": [], \"tools\": [{\"type\": \"x\"}]}",
     "tools[0]: the type \"x\" is not supported"},
    {TNK_CHAT_RESPONSES, TNK_EUNSUPPORTED,
     "{\"input\": [{\"type\": \"item_reference\", \"id\": \"x\"}]}",
     "input[0]: the type \"item_reference\" is not supported"},
    {TNK_CHAT_RESPONSES, TNK_EUNSUPPORTED,
     "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": "
     "\"input_file\"}]}]}",
     "input[0].content[0]: the type \"input_file\" is not supported"},
    {TNK_CHAT_RESPONSES, TNK_EUNSUPPORTED,
     "{\"input\": \"\", \"tools\": [{\"type\": \"web_search\"}]}",
     "tools[0]: the type \"web_search\" is not supported"},
    {TNK_CHAT_RESPONSES, TNK_EINVAL,
     "{\"input\": [{\"type\": \"function_call\", \"name\": \"f\"}]}",
     "input[0]: the member \"call_id\" is missing"},
    {TNK_CHAT_ANTHROPIC, TNK_EUNSUPPORTED,
     "{\"messages\": [{\"role\": \"system\", \"content\": \"\"}]}",
     "messages[0]: the role \"system\" is not supported"},
    {TNK_CHAT_ANTHROPIC, TNK_EUNSUPPORTED,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
     "\"document\"}]}]}",
     "messages[0].content[0]: the type \"document\" is not supported"},
    {TNK_CHAT_ANTHROPIC, TNK_EUNSUPPORTED,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
     "\"image\", \"source\": {\"type\": \"file\"}}]}]}",
     "messages[0].content[0].source: the type \"file\" is not supported"},
    {TNK_CHAT_ANTHROPIC, TNK_EINVAL,
     "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": "
     "\"tool_use\", \"id\": \"a\", \"name\": \"f\"}]}]}",
     "messages[0].content[0].input: this is no object"},
    {TNK_CHAT_ANTHROPIC, TNK_EUNSUPPORTED,
     "{\"messages\": [], \"tools\": [{\"type\": \"bash_20250124\"}]}",
     "tools[0]: the type \"bash_20250124\" is not supported"},
    {TNK_CHAT_TEMPLATE, TNK_EINVAL, "[{\"content\": \"\"}]",
     "messages[0]: the member \"role\" is missing"},
    {(tnk_chat_shape_t)9, TNK_EINVAL, "[]", "there is no such shape"},
};

TEST(what_is_not_known_is_refused_with_its_place) {

  for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
    read_t read;
    int err = do_read(&read, refused[i].shape, refused[i].body);

    CHECK_STR(read.why.text, refused[i].why);
    CHECK_INT(err, refused[i].code);
    CHECK_INT(read.why.code, refused[i].code);
    done(&read);
  }
}

TEST(answers_in_every_shape) {
  static const char body[] =
      "[{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", \"content\": "
      "null, \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", "
      "\"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
      "\"\xc3\xa9\"}}}]},"
      " {\"role\": \"assistant\", \"content\": \"Yes\"}]";
  static const char *const written[] = {
      [TNK_CHAT_OPENAI] =
          "{\"messages\": [{\"role\": \"assistant\", \"content\": null, "
          "\"reasoning_content\": \"Hm\", \"tool_calls\": [{\"id\": \"c1\", "
          "\"type\": \"function\", \"function\": {\"name\": \"f\", "
          "\"arguments\": \"{\\\"a\\\": \\\"\xc3\xa9\\\"}\"}}]}, "
          "{\"role\": \"assistant\", \"content\": \"Yes\"}]}",
      [TNK_CHAT_RESPONSES] =
          "{\"input\": [{\"type\": \"reasoning\", \"summary\": [], "
          "\"content\": [{\"type\": \"reasoning_text\", \"text\": \"Hm\"}]}, "
          "{\"type\": \"function_call\", \"call_id\": \"c1\", \"name\": \"f\", "
          "\"arguments\": \"{\\\"a\\\": \\\"\xc3\xa9\\\"}\"}, "
          "{\"type\": \"message\", \"role\": \"assistant\", \"content\": "
          "[{\"type\": \"output_text\", \"text\": \"Yes\", \"annotations\": "
          "[]}]}]}",
      [TNK_CHAT_ANTHROPIC] =
          "{\"messages\": [{\"role\": \"assistant\", \"content\": "
          "[{\"type\": \"thinking\", \"thinking\": \"Hm\", \"signature\": "
          "\"\"}, {\"type\": \"tool_use\", \"id\": \"c1\", \"name\": \"f\", "
          "\"input\": {\"a\": \"\xc3\xa9\"}}]}, "
          "{\"role\": \"assistant\", \"content\": \"Yes\"}]}"};
  read_t read;

  CHECK_INT(do_read(&read, TNK_CHAT_TEMPLATE, body), TNK_OK);
  for (size_t shape = TNK_CHAT_OPENAI; shape <= TNK_CHAT_ANTHROPIC; shape++) {
    tnk__value_t json;

    CHECK_INT(tnk__message_write(&read.heap, (tnk_chat_shape_t)shape,
                                 read.messages, tnk__value_undefined(), &json,
                                 &read.why),
              TNK_OK);
    CHECK_STR(text_of(&read, json), written[shape]);
  }
  done(&read);
}

TEST(memory_that_is_short_is_told) {
  static const char *const bodies[] = {
      [TNK_CHAT_OPENAI] =
          "{\"messages\": [{\"role\": \"developer\", \"content\": \"a\"}, "
          "{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
          "\"image_url\": \"x\"}]}, {\"role\": \"assistant\", \"tool_calls\": "
          "[{\"id\": \"c\", \"function\": {\"name\": \"f\", \"arguments\": "
          "\"{}\"}}]}], \"tools\": []}",
      [TNK_CHAT_RESPONSES] =
          "{\"instructions\": \"a\", \"input\": [{\"type\": "
          "\"function_call\", \"call_id\": \"c\", \"name\": \"f\", "
          "\"arguments\": \"{}\"}], \"tools\": [{\"type\": \"function\", "
          "\"name\": \"f\"}]}",
      [TNK_CHAT_ANTHROPIC] =
          "{\"system\": \"a\", \"messages\": [{\"role\": \"assistant\", "
          "\"content\": [{\"type\": \"tool_use\", \"id\": \"c\", \"name\": "
          "\"f\", \"input\": {}}]}], \"tools\": [{\"name\": \"f\"}]}"};

  for (size_t shape = TNK_CHAT_OPENAI; shape <= TNK_CHAT_ANTHROPIC; shape++) {
    int did_fail = 1;

    for (long i = 0; did_fail; i++) {
      tnk__value_t json, messages, tools, back;
      tnk__heap_t heap;
      int err;

      tnk__heap_init(&heap, test_allocator(), 1 << 22);
      CHECK_INT(tnk__value_from_json(&heap, bodies[shape],
                                     strlen(bodies[shape]), &json),
                TNK_OK);
      test_alloc_fail_at(i);
      err = tnk__message_read(&heap, (tnk_chat_shape_t)shape, json, &messages,
                              &tools, NULL);
      if (err == TNK_OK)
        err = tnk__message_write(&heap, (tnk_chat_shape_t)shape, messages,
                                 tools, &back, NULL);
      did_fail = test_alloc_did_fail();
      test_alloc_fail_at(-1);
      CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
      tnk__heap_deinit(&heap);
    }
  }
}
