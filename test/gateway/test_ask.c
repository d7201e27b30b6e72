/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "gateway/wire/ask.h"
#include "support/test.h"
#include "tnk/error.h"

/* What clients ask for. */

static int read_ask(tnk__gw_ask_t *ask, tnk__gw_api_t api, const char *body,
                    tnk__gw_fault_t *fault) {
  return tnk__gw_ask_read(ask, api, body, strlen(body), fault);
}

TEST(a_request_is_read) {
  tnk__gw_fault_t fault;
  tnk__gw_ask_t ask;

  CHECK_INT(read_ask(&ask, TNK__GW_CHAT,
                     "{\"model\":\"m\",\"n\":3,\"max_completion_tokens\":9,"
                     "\"temperature\":0.5,\"top_p\":1,\"seed\":7,\"stop\":"
                     "[\"a\",\"b\"],\"stream\":true,\"stream_options\":"
                     "{\"include_usage\":true},\"logprobs\":true,"
                     "\"top_logprobs\":2,\"frequency_penalty\":0,"
                     "\"functions\":null,\"tool_choice\":\"none\"}",
                     &fault),
            0);
  CHECK_STR(ask.model, "m");
  CHECK_INT(ask.n, 3);
  CHECK_INT(ask.max_tokens, 9);
  CHECK_NEAR(ask.temperature, 0.5, 0);
  CHECK_INT(ask.seed, 7);
  CHECK_INT(ask.n_stops, 2);
  CHECK_STR(ask.stops[1], "b");
  CHECK(ask.is_stream && ask.with_usage && ask.with_logprobs && ask.no_tools);
  CHECK_INT(ask.n_top, 2);
  tnk__gw_ask_drop(&ask);
}

static const struct {
  tnk__gw_api_t api;
  const char *body;
  const char *param;
} refused[] = {
    {TNK__GW_CHAT, "{\"n\":0}", "n"},
    {TNK__GW_CHAT, "{\"n\":1.5}", "n"},
    {TNK__GW_CHAT, "{\"temperature\":-1}", "temperature"},
    {TNK__GW_CHAT, "{\"top_p\":1.5}", "top_p"},
    {TNK__GW_CHAT, "{\"stop\":\"\"}", "stop"},
    {TNK__GW_CHAT, "{\"stop\":[1]}", "stop"},
    {TNK__GW_CHAT,
     "{\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\","
     "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]}",
     "stop"},
    {TNK__GW_CHAT, "{\"stream\":1}", "stream"},
    {TNK__GW_CHAT, "{\"model\":1}", "model"},
    {TNK__GW_CHAT, "{\"chat_template_kwargs\":[]}", "chat_template_kwargs"},
    {TNK__GW_CHAT, "{\"functions\":[{}]}", "functions"},
    {TNK__GW_CHAT, "{\"logit_bias\":{\"1\":2}}", "logit_bias"},
    {TNK__GW_CHAT, "{\"top_logprobs\":2}", "top_logprobs"},
    {TNK__GW_CHAT, "{\"guided_json\":{}}", "guided_json"},
    {TNK__GW_CHAT, "{\"web_search_options\":{}}", "web_search_options"},
    {TNK__GW_CHAT, "{\"repetition_penalty\":1.1}", "repetition_penalty"},
    {TNK__GW_CHAT, "{\"min_p\":0.1}", "min_p"},
    {TNK__GW_CHAT, "{\"ignore_eos\":true}", "ignore_eos"},
    {TNK__GW_CHAT, "{\"skip_special_tokens\":false}", "skip_special_tokens"},
    {TNK__GW_CHAT, "{\"foo\":1}", "foo"},
    {TNK__GW_CHAT, "{\"input\":\"a\"}", "input"},
    {TNK__GW_COMPLETION, "{\"tools\":[{}]}", "tools"},
    {TNK__GW_COMPLETION, "{\"tool_choice\":\"required\"}", "tool_choice"},
    {TNK__GW_RESPONSE, "{\"context_management\":[{}]}", "context_management"},
    {TNK__GW_MESSAGE, "{\"max_tokens\":1,\"context_management\":{}}",
     "context_management"},
    {TNK__GW_CHAT, "{\"tool_choice\":\"any\"}", "tool_choice"},
    {TNK__GW_CHAT, "{\"tool_choice\":{\"type\":\"function\"}}", "tool_choice"},
    {TNK__GW_CHAT, "{\"tool_choice\":{\"type\":\"allowed_tools\"}}",
     "tool_choice"},
    {TNK__GW_CHAT, "{\"response_format\":{\"type\":\"grammar\"}}",
     "response_format"},
    {TNK__GW_CHAT, "{\"response_format\":{}}", "response_format"},
    {TNK__GW_CHAT,
     "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
     "{\"schema\":{\"pattern\":\"(?=a)\"}}}}",
     "response_format"},
    {TNK__GW_MESSAGE,
     "{\"max_tokens\":1,\"output_format\":{\"type\":\"json_object\"}}",
     "output_format"},
    {TNK__GW_CHAT, "{\"modalities\":[\"text\",\"audio\"]}", "modalities"},
    {TNK__GW_COMPLETION, "{\"echo\":1}", "echo"},
    {TNK__GW_COMPLETION, "{\"best_of\":2}", "best_of"},
    {TNK__GW_RESPONSE, "{\"background\":true}", "background"},
    {TNK__GW_RESPONSE, "{\"include\":[\"file_search_call.results\"]}",
     "include"},
    {TNK__GW_RESPONSE, "{\"text\":{\"format\":{\"type\":\"json_schema\"}}}",
     "text.format"},
    {TNK__GW_RESPONSE, "{\"previous_response_id\":1}", "previous_response_id"},
    {TNK__GW_MESSAGE, "{}", "max_tokens"},
    {TNK__GW_MESSAGE,
     "{\"max_tokens\":1,\"tool_choice\":{\"type\":\"required\"}}",
     "tool_choice"},
    {TNK__GW_MESSAGE, "{\"max_tokens\":1,\"container\":\"c\"}", "container"},
    {TNK__GW_MESSAGE, "{\"max_tokens\":1,\"thread\":{\"type\":\"create\"}}",
     "thread"},
    {TNK__GW_CHAT, "{\"thread\":{\"type\":\"create\"}}", "thread"},
    {TNK__GW_MESSAGE,
     "{\"max_tokens\":1,\"output_config\":{\"format\":{\"type\":"
     "\"json_schema\"}}}",
     "output_config.format"},
    {TNK__GW_COMPLETION, "{\"response_format\":{\"type\":\"json_object\"}}",
     "response_format"},
    {TNK__GW_CHAT, "[]", ""},
    {TNK__GW_CHAT, "{", ""},
    {TNK__GW_CHAT, "", ""}};

/* What asks for nothing, and what has no effect. */
TEST(what_changes_nothing_is_accepted) {
  static const struct {
    tnk__gw_api_t api;
    const char *body;
  } cases[] = {
      {TNK__GW_CHAT,
       "{\"foo\":null,\"min_p\":0,\"logit_bias\":{},\"repetition_penalty\":1.0,"
       "\"skip_special_tokens\":true,\"ignore_eos\":false,\"guided_regex\":"
       "\"\","
       "\"metadata\":{\"a\":\"b\"},\"reasoning_effort\":\"low\","
       "\"parallel_tool_calls\":true,\"store\":true}"},
      {TNK__GW_RESPONSE,
       "{\"truncation\":\"auto\",\"reasoning\":{\"effort\":\"low\"},"
       "\"prompt_cache_key\":\"a\"}"},
      {TNK__GW_MESSAGE, "{\"max_tokens\":1,\"thinking\":{\"type\":\"enabled\"},"
                        "\"mcp_servers\":[],\"thread\":null}"},
      {TNK__GW_COMPLETION, "{\"echo\":true,\"best_of\":1}"}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    tnk__gw_fault_t fault;
    tnk__gw_ask_t ask;

    if (read_ask(&ask, cases[i].api, cases[i].body, &fault) != 0)
      test_fail(__FILE__, __LINE__, "%s", fault.text);
    tnk__gw_ask_drop(&ask);
  }
}

TEST(what_cannot_be_done_is_refused_by_name) {
  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
    tnk__gw_fault_t fault;
    tnk__gw_ask_t ask;

    if (read_ask(&ask, refused[i].api, refused[i].body, &fault) == 0)
      test_fail(__FILE__, __LINE__, "%s passes", refused[i].body);
    CHECK_INT(fault.status, 400);
    CHECK_STR(fault.param, refused[i].param);
    tnk__gw_ask_drop(&ask);
  }
}

/* The code after which clients send the whole conversation. */
TEST(a_thread_is_refused_with_its_code) {
  static const char *const threads[] = {
      "{\"type\":\"create\"}",
      "{\"type\":\"continue\",\"previous_message_id\":\"a\"}", "1"};

  for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
    char body[256];
    tnk__gw_fault_t fault;
    tnk__gw_ask_t ask;

    (void)snprintf(body, sizeof(body), "{\"max_tokens\":1,\"thread\":%s}",
                   threads[i]);
    CHECK_INT(read_ask(&ask, TNK__GW_MESSAGE, body, &fault), -1);
    CHECK_INT(fault.status, 400);
    CHECK_STR(fault.code, "thread_unsupported_request");
    tnk__gw_ask_drop(&ask);
    CHECK_INT(read_ask(&ask, TNK__GW_CHAT, body, &fault), -1);
    CHECK(fault.code == NULL);
    tnk__gw_ask_drop(&ask);
  }
}

/* A body that is not taken says why. */
TEST(a_body_that_is_none_is_refused_with_its_reason) {
  static const struct {
    const char *body;
    size_t n; /* 0: all of it */
    const char *text;
  } cases[] = {
      {"", 0, "the body is empty"},
      {"[]", 0, "the body is not a JSON object"},
      {"{\"a\":1}x", 0, "the body is not JSON: line 1, column 8: end of file"},
      {"{\n\"a\":\"\\ud800\"}", 0, "the body is not JSON: line 2, column"},
      {"{\"a\":\"\\u0000\"}", 0, "a text of the body has \\u0000, a character"},
      {"{\"a\":\0}", 7, "the body has a NUL byte"}};
  char deep[256] = "{\"a\":";
  tnk__gw_fault_t fault;
  tnk__gw_ask_t ask;

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    CHECK_INT(tnk__gw_ask_read(
                  &ask, TNK__GW_CHAT, cases[i].body,
                  cases[i].n > 0 ? cases[i].n : strlen(cases[i].body), &fault),
              -1);
    CHECK_INT(fault.status, 400);
    if (strncmp(fault.text, cases[i].text, strlen(cases[i].text)) != 0)
      test_fail(__FILE__, __LINE__, "\"%s\"", fault.text);
    tnk__gw_ask_drop(&ask);
  }
  memset(deep + 5, '[', 100);
  memset(deep + 105, ']', 100);
  deep[205] = '}';
  CHECK_INT(read_ask(&ask, TNK__GW_CHAT, deep, &fault), -1);
  CHECK_STR(fault.text, "the body is nested too deeply");
  tnk__gw_ask_drop(&ask);
}

/* Each API has its own words for a call that must be. */
TEST(a_call_is_asked_for) {
  static const struct {
    tnk__gw_api_t api;
    tnk__gw_force_t force;
    const char *body;
  } cases[] = {
      {TNK__GW_CHAT, TNK__GW_FORCE_NOTHING, "{\"tool_choice\":\"auto\"}"},
      {TNK__GW_CHAT, TNK__GW_FORCE_ANY, "{\"tool_choice\":\"required\"}"},
      {TNK__GW_CHAT, TNK__GW_FORCE_NAMED,
       "{\"tool_choice\":{\"type\":\"function\",\"function\":"
       "{\"name\":\"f\"}}}"},
      {TNK__GW_RESPONSE, TNK__GW_FORCE_ANY, "{\"tool_choice\":\"required\"}"},
      {TNK__GW_RESPONSE, TNK__GW_FORCE_NAMED,
       "{\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}}"},
      {TNK__GW_MESSAGE, TNK__GW_FORCE_ANY,
       "{\"max_tokens\":1,\"tool_choice\":{\"type\":\"any\"}}"},
      {TNK__GW_MESSAGE, TNK__GW_FORCE_NAMED,
       "{\"max_tokens\":1,\"tool_choice\":{\"type\":\"tool\",\"name\":"
       "\"f\"}}"}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    tnk__gw_fault_t fault;
    tnk__gw_ask_t ask;

    CHECK_INT(read_ask(&ask, cases[i].api, cases[i].body, &fault), 0);
    CHECK_INT(ask.force, cases[i].force);
    if (cases[i].force == TNK__GW_FORCE_NAMED)
      CHECK_STR(ask.forced_name, "f");
    else
      CHECK(ask.forced_name == NULL);
    tnk__gw_ask_drop(&ask);
  }
}

/* Each API has its own place for a format. */
TEST(a_form_is_asked_for) {
  static const struct {
    tnk__gw_api_t api;
    const char *body;
    tnk__gw_form_kind_t form;
    const char *name;
  } cases[] = {
      {TNK__GW_CHAT, "{\"response_format\":{\"type\":\"text\"}}",
       TNK__GW_FORM_TEXT, "response_format"},
      {TNK__GW_CHAT, "{\"response_format\":{\"type\":\"json_object\"}}",
       TNK__GW_FORM_OBJECT, "response_format"},
      {TNK__GW_CHAT,
       "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
       "{\"schema\":true}}}",
       TNK__GW_FORM_SCHEMA, "response_format"},
      {TNK__GW_RESPONSE, "{\"text\":{\"format\":{\"type\":\"text\"}}}",
       TNK__GW_FORM_TEXT, "text.format"},
      {TNK__GW_RESPONSE,
       "{\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":true}}}",
       TNK__GW_FORM_SCHEMA, "text.format"},
      {TNK__GW_MESSAGE,
       "{\"max_tokens\":1,\"output_config\":{\"format\":{\"type\":"
       "\"json_schema\",\"schema\":true}}}",
       TNK__GW_FORM_SCHEMA, "output_config.format"},
      {TNK__GW_MESSAGE,
       "{\"max_tokens\":1,\"output_format\":{\"type\":\"json_schema\","
       "\"schema\":true}}",
       TNK__GW_FORM_SCHEMA, "output_format"},
      {TNK__GW_COMPLETION, "{\"response_format\":{\"type\":\"text\"}}",
       TNK__GW_FORM_TEXT, "response_format"}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    tnk__gw_fault_t fault;
    tnk__gw_ask_t ask;

    CHECK_INT(read_ask(&ask, cases[i].api, cases[i].body, &fault), 0);
    CHECK_INT(ask.form.kind, cases[i].form);
    CHECK_STR(ask.form.name, cases[i].name);
    CHECK((ask.form.schema != NULL) == (ask.form.kind == TNK__GW_FORM_SCHEMA));
    tnk__gw_ask_drop(&ask);
  }
}
