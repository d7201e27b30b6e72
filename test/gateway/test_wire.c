/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/wire/write.h"
#include "support/test.h"
#include "tnk/error.h"

/* What clients get. */

TEST(names_of_answers_are_numbers) {
  static const char *const wrong[] = {
      "",        "chatcmpl-", "chatcmpl-x",
      "resp_1x", "run_5",     "resp_99999999999999999999"};
  char name[TNK__GW_MAX_NAME];
  uint64_t number = 0;

  for (int api = TNK__GW_CHAT; api <= TNK__GW_MESSAGE; api++) {
    tnk__gw_name((tnk__gw_api_t)api, UINT64_MAX - 5, name);
    CHECK_INT(tnk__gw_name_read(name, &number), 0);
    CHECK(number == UINT64_MAX - 5);
  }
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
    CHECK_INT(tnk__gw_name_read(wrong[i], &number), -1);
}

TEST(errors_have_the_shape_of_each_api) {
  static const struct {
    tnk__gw_api_t api;
    const char *code;
    const char *expected;
  } cases[] = {
      {TNK__GW_CHAT, NULL,
       "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":"
       "\"rate_limit_error\",\"param\":\"x\",\"code\":null}}"},
      {TNK__GW_CHAT, "c",
       "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":"
       "\"rate_limit_error\",\"param\":\"x\",\"code\":\"c\"}}"},
      {TNK__GW_MESSAGE, NULL,
       "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
       "\"message\":\"no \\\"x\\\"\"}}"},
      {TNK__GW_MESSAGE, "c",
       "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
       "\"message\":\"no \\\"x\\\"\",\"details\":{\"error_code\":\"c\"}}}"}};
  tnk__gw_fault_t fault;
  tnk__buf_t out;

  CHECK_INT(tnk__gw_fault(&fault, 429, "x", "no \"%s\"", "x"), -1);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    fault.code = cases[i].code;
    tnk__buf_init(&out, test_allocator(), 4096);
    CHECK_INT(tnk__gw_fault_write(&fault, cases[i].api, &out), TNK_OK);
    CHECK_STR(tnk__buf_cstr(&out), cases[i].expected);
    tnk__buf_deinit(&out);
  }
}

/* It need not be text, and may be cut within a character, here or before. */
TEST(errors_name_what_is_no_text) {
  static const struct {
    const char *given;
    const char *expected;
  } cases[] = {{"no \xff\xc3", "no ?\?"},
               {"\xc3\xbc", "\xc3\xbc"},
               {"no \"\xe2\x82\"", "no \"?\?\""}};
  char text[512];
  tnk__gw_fault_t fault;
  json_t *root;
  tnk__buf_t out;

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    (void)tnk__gw_fault(&fault, 404, NULL, "%s", cases[i].given);
    CHECK_STR(fault.text, cases[i].expected);
  }
  memset(text, 'x', sizeof(text));
  memcpy(text + sizeof(fault.text) - 2, "\xc3\xbc", 3);
  (void)tnk__gw_fault(&fault, 404, NULL, "%s", text);
  tnk__buf_init(&out, test_allocator(), 4096);
  CHECK_INT(tnk__gw_fault_write(&fault, TNK__GW_CHAT, &out), TNK_OK);
  root = json_loadb((char *)out.data, out.len, 0, NULL);
  CHECK(root != NULL);
  json_decref(root);
  tnk__buf_deinit(&out);
}

/* ---- Answers ---- */

static int text_of(void *user, int32_t id, tnk__buf_t *out) {
  (void)user;
  return tnk__buf_byte(out, (uint8_t)id);
}

typedef struct {
  tnk__gw_ask_t ask;
  tnk__gw_choice_t choice;
  tnk__gw_answer_t answer;
} rig_t;

static const int32_t sampled[] = {'h', 'i', 0xff};
static const float logprobs[] = {-0.5f, -1, -2};

static void rig_open(rig_t *rig, tnk__gw_api_t api, int is_stream) {
  *rig = (rig_t){.ask = {.api = api,
                         .is_stream = is_stream,
                         .with_usage = 1,
                         .with_logprobs = 1}};
  rig->ask.body = json_object();
  tnk__gw_said_init(&rig->choice.said, test_allocator());
  rig->choice.ids = sampled;
  rig->choice.logprobs = logprobs;
  rig->choice.n_ids = 3;
  rig->answer = (tnk__gw_answer_t){.ask = &rig->ask,
                                   .number = 7,
                                   .model = "m",
                                   .made_s = 1,
                                   .choices = &rig->choice,
                                   .n_choices = 1,
                                   .n_prompt = 5,
                                   .n_cached = 2,
                                   .text_of = text_of};
}

static void rig_close(rig_t *rig) {
  tnk__gw_said_deinit(&rig->choice.said);
  json_decref(rig->ask.body);
}

/* Thinking, content in two pieces with NUL and a byte that is no UTF-8, two
 * calls. */
static void say(rig_t *rig) {
  tnk__gw_said_t *said = &rig->choice.said;

  tnk__gw_said_add(said, TNK__GW_THINKING, "hm", 2);
  tnk__gw_said_add(said, TNK__GW_CONTENT, "hel", 3);
  tnk__gw_said_add(said, TNK__GW_CONTENT, "l\0o\xff", 4);
  tnk__gw_said_call(said, "id1", "f");
  tnk__gw_said_add(said, TNK__GW_ARGUMENTS, "{\"a\"", 4);
  tnk__gw_said_add(said, TNK__GW_ARGUMENTS, ":1}", 3);
  tnk__gw_said_call(said, "id2", "g");
  rig->choice.end = TNK__GW_END_CALLS;
}

#define HELLO "hell\xef\xbf\xbdo\xef\xbf\xbd"

static json_t *write_whole(rig_t *rig) {
  json_t *root;
  tnk__buf_t out;

  tnk__buf_init(&out, test_allocator(), SIZE_MAX);
  CHECK_INT(tnk__gw_answer_write(&rig->answer, &out), TNK_OK);
  root = json_loadb((char *)out.data, out.len, 0, NULL);
  CHECK(root != NULL);
  tnk__buf_deinit(&out);
  return root;
}

/* The member behind a path such as "choices/0/message". */
static const json_t *at(const json_t *root, const char *path) {
  while (root != NULL && *path != '\0') {
    char name[64];
    size_t n = strcspn(path, "/");

    snprintf(name, sizeof(name), "%.*s", (int)n, path);
    root = json_is_array(root)
               ? json_array_get(root, (size_t)strtoul(name, NULL, 10))
               : json_object_get(root, name);
    path += n + (path[n] == '/');
  }
  return root;
}

static const char *text_at(const json_t *root, const char *path) {
  const char *text = json_string_value(at(root, path));

  return text != NULL ? text : "(none)";
}

static long long int_at(const json_t *root, const char *path) {
  CHECK(json_is_integer(at(root, path)));
  return json_integer_value(at(root, path));
}

TEST(a_chat_completion) {
  rig_t rig;
  json_t *root;

  rig_open(&rig, TNK__GW_CHAT, 0);
  say(&rig);
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "id"), "chatcmpl-7");
  CHECK_STR(text_at(root, "choices/0/message/content"), HELLO);
  CHECK_STR(text_at(root, "choices/0/message/reasoning_content"), "hm");
  CHECK_STR(text_at(root, "choices/0/message/tool_calls/0/function/arguments"),
            "{\"a\":1}");
  CHECK_STR(text_at(root, "choices/0/message/tool_calls/1/id"), "id2");
  CHECK_STR(text_at(root, "choices/0/message/tool_calls/1/function/arguments"),
            "{}");
  CHECK_STR(text_at(root, "choices/0/finish_reason"), "tool_calls");
  CHECK_STR(text_at(root, "choices/0/logprobs/content/1/token"), "i");
  CHECK_INT(int_at(root, "choices/0/logprobs/content/2/bytes/0"), 0xff);
  CHECK_INT(int_at(root, "usage/total_tokens"), 8);
  CHECK_INT(int_at(root, "usage/prompt_tokens_details/cached_tokens"), 2);
  json_decref(root);
  rig_close(&rig);
}

TEST(a_completion) {
  rig_t rig;
  json_t *root;

  rig_open(&rig, TNK__GW_COMPLETION, 0);
  tnk__gw_said_add(&rig.choice.said, TNK__GW_CONTENT, "hi", 2);
  rig.choice.end = TNK__GW_END_LENGTH;
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "choices/0/text"), "hi");
  CHECK_STR(text_at(root, "choices/0/finish_reason"), "length");
  CHECK_STR(text_at(root, "choices/0/logprobs/tokens/0"), "h");
  CHECK_INT(int_at(root, "choices/0/logprobs/text_offset/2"), 2);
  json_decref(root);
  rig_close(&rig);
}

TEST(a_message) {
  rig_t rig;
  json_t *root;

  rig_open(&rig, TNK__GW_MESSAGE, 0);
  say(&rig);
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "content/0/thinking"), "hm");
  CHECK(text_at(root, "content/0/signature")[0] != '\0');
  CHECK_STR(text_at(root, "content/1/text"), HELLO);
  CHECK_INT(int_at(root, "content/2/input/a"), 1);
  CHECK_STR(text_at(root, "content/3/name"), "g");
  CHECK(json_is_object(at(root, "content/3/input")));
  CHECK_STR(text_at(root, "stop_reason"), "tool_use");
  CHECK_INT(int_at(root, "usage/input_tokens"), 3);
  CHECK_INT(int_at(root, "usage/cache_read_input_tokens"), 2);
  json_decref(root);
  rig.choice.stop = "X";
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "stop_reason"), "stop_sequence");
  CHECK_STR(text_at(root, "stop_sequence"), "X");
  json_decref(root);
  rig_close(&rig);
}

TEST(a_response) {
  rig_t rig;
  json_t *root;

  rig_open(&rig, TNK__GW_RESPONSE, 0);
  say(&rig);
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "output/0/content/0/text"), "hm");
  CHECK_STR(text_at(root, "output/1/content/0/text"), HELLO);
  CHECK_STR(text_at(root, "output/2/arguments"), "{\"a\":1}");
  CHECK_STR(text_at(root, "output/3/call_id"), "id2");
  CHECK_STR(text_at(root, "status"), "completed");
  json_decref(root);
  rig.choice.end = TNK__GW_END_LENGTH;
  root = write_whole(&rig);
  CHECK_STR(text_at(root, "status"), "incomplete");
  CHECK_STR(text_at(root, "incomplete_details/reason"), "max_output_tokens");
  json_decref(root);
  rig_close(&rig);
}

/* ---- Streams ---- */

typedef struct {
  char content[256];
  char thinking[256];
  char signature[256];
  char arguments[256];
  char calls[256];
  char last[64]; /* event, or the reason of the end */
  int n_events;
} heard_t;

static void join(char *to, const json_t *text) {
  size_t n = strlen(to);

  if (json_is_string(text))
    snprintf(to + n, 256 - n, "%s", json_string_value(text));
}

static void hear_chat(heard_t *heard, const json_t *event) {
  const json_t *delta = at(event, "choices/0/delta");

  join(heard->content, at(delta, "content"));
  join(heard->thinking, at(delta, "reasoning_content"));
  join(heard->calls, at(delta, "tool_calls/0/function/name"));
  join(heard->arguments, at(delta, "tool_calls/0/function/arguments"));
  if (json_is_string(at(event, "choices/0/finish_reason")))
    snprintf(heard->last, sizeof(heard->last), "%s",
             text_at(event, "choices/0/finish_reason"));
}

static void hear_message(heard_t *heard, const json_t *event) {
  join(heard->content, at(event, "delta/text"));
  join(heard->thinking, at(event, "delta/thinking"));
  join(heard->signature, at(event, "delta/signature"));
  join(heard->arguments, at(event, "delta/partial_json"));
  join(heard->calls, at(event, "content_block/name"));
  snprintf(heard->last, sizeof(heard->last), "%s", text_at(event, "type"));
}

static void hear_response(heard_t *heard, const json_t *event) {
  const char *type = text_at(event, "type");

  CHECK_INT(int_at(event, "sequence_number"), heard->n_events);
  if (strcmp(type, "response.output_text.delta") == 0)
    join(heard->content, at(event, "delta"));
  else if (strcmp(type, "response.reasoning_text.delta") == 0)
    join(heard->thinking, at(event, "delta"));
  else if (strcmp(type, "response.function_call_arguments.delta") == 0)
    join(heard->arguments, at(event, "delta"));
  else if (strcmp(type, "response.output_item.added") == 0)
    join(heard->calls, at(event, "item/name"));
  snprintf(heard->last, sizeof(heard->last), "%s", type);
}

static void hear(heard_t *heard, tnk__gw_api_t api, char *text) {
  char *line = text;

  while (*line != '\0') {
    char *end = strchr(line, '\n');
    json_t *event;

    CHECK(end != NULL);
    *end = '\0';
    if (strncmp(line, "data: ", 6) == 0 && strcmp(line + 6, "[DONE]") != 0) {
      event = json_loads(line + 6, 0, NULL);
      CHECK(event != NULL);
      if (api == TNK__GW_CHAT)
        hear_chat(heard, event);
      else if (api == TNK__GW_MESSAGE)
        hear_message(heard, event);
      else
        hear_response(heard, event);
      json_decref(event);
      heard->n_events++;
    }
    line = end + 1;
  }
}

TEST(streams_say_the_same_piece_by_piece) {
  static const struct {
    tnk__gw_api_t api;
    const char *arguments;
    const char *last;
  } apis[] = {{TNK__GW_CHAT, "{\"a\":1}", "tool_calls"},
              {TNK__GW_MESSAGE, "{\"a\":1}", "message_stop"},
              {TNK__GW_RESPONSE, "{\"a\":1}", "response.completed"}};

  for (size_t i = 0; i < sizeof(apis) / sizeof(*apis); i++) {
    heard_t heard = {.n_events = 0};
    tnk__buf_t out;
    rig_t rig;

    rig_open(&rig, apis[i].api, 1);
    say(&rig);
    tnk__buf_init(&out, test_allocator(), SIZE_MAX);
    CHECK_INT(tnk__gw_answer_write(&rig.answer, &out), TNK_OK);
    CHECK(tnk__buf_cstr(&out) != NULL);
    hear(&heard, apis[i].api, (char *)out.data);
    CHECK_STR(heard.content, HELLO);
    CHECK_STR(heard.thinking, "hm");
    /* Without one clients do not send a thought back as such. */
    CHECK((heard.signature[0] != '\0') == (apis[i].api == TNK__GW_MESSAGE));
    CHECK_STR(heard.calls, "fg");
    CHECK_STR(heard.arguments, apis[i].arguments);
    CHECK_STR(heard.last, apis[i].last);
    tnk__buf_deinit(&out);
    rig_close(&rig);
  }
}

TEST(the_content_ends_before_a_stop) {
  static const char *const stops[] = {"XY", "o w", "never"};
  tnk__gw_said_t said;
  tnk__buf_t text;

  tnk__gw_said_init(&said, test_allocator());
  tnk__gw_said_add(&said, TNK__GW_CONTENT, "hello", 5);
  tnk__gw_said_add(&said, TNK__GW_CONTENT, " world XY", 9);
  CHECK_INT(tnk__gw_said_cut(&said, stops + 2, 1, 0), -1);
  CHECK_INT(tnk__gw_said_cut(&said, stops, 3, 0), 1);
  tnk__buf_init(&text, test_allocator(), SIZE_MAX);
  CHECK_INT(tnk__gw_said_join(&said, TNK__GW_CONTENT, 0, &text), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&text), "hell");
  tnk__buf_deinit(&text);
  tnk__gw_said_deinit(&said);
}

/* ---- Memory ---- */

TEST(each_allocation_fails_in_turn) {
  for (int api = TNK__GW_CHAT; api <= TNK__GW_MESSAGE; api++) {
    for (long n = 0, did_fail = 1; did_fail; n++) {
      tnk__buf_t out;
      rig_t rig;
      int err;

      test_alloc_fail_at(n);
      rig_open(&rig, (tnk__gw_api_t)api, n % 2 == 0);
      say(&rig);
      tnk__buf_init(&out, test_allocator(), SIZE_MAX);
      err = tnk__gw_said_error(&rig.choice.said);
      if (err == TNK_OK)
        err = tnk__gw_answer_write(&rig.answer, &out);
      did_fail = test_alloc_did_fail();
      test_alloc_fail_at(-1);
      CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
      tnk__buf_deinit(&out);
      rig_close(&rig);
    }
  }
}
