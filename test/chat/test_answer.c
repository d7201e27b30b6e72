/* SPDX-License-Identifier: MIT */
#include "chat/answer.h"

/* What is told of answers, however they are cut: think blocks, stops, calls in
 * JSON. The other families are in test_answer_marks.c. */

TEST(plain_text_is_content) {
  static const sample_t samples[] = {
      {TNK_CHAT_PLAIN, .text = "", .message = SAYS("")},
      {TNK_CHAT_PLAIN, .text = "Hi.\n\n", .message = SAYS("Hi.\\n\\n")},
      {TNK_CHAT_PLAIN, .text = "<think>no</think> [x] {\xc3\xa9}",
       .message = SAYS("<think>no</think> [x] {\xc3\xa9}")},
      {TNK_CHAT_PLAIN, .text = "42\n\nUser: and?", .message = SAYS("42"),
       .unparsed =
           UNPARSED(" and?", "there is text behind the end of the answer")},
      {TNK_CHAT_PLAIN, .text = "a\n\n\n\nUse\n\nUser:\n ",
       .message = SAYS("a\\n\\n\\n\\nUse")},
  };

  CHECK_SAMPLES(samples);
}

TEST(a_think_block_is_thinking) {
  static const sample_t samples[] = {
      {TNK_CHAT_THINK,
       .text = "<think>\nHm.\n\nSo\n</think>\n\nYes.\n<|im_end|>",
       .message = THINKS("Hm.\\n\\nSo", "Yes.\\n")},
      {TNK_CHAT_THINK, .text = "\n<think></think>\n\n\nYes",
       .message = SAYS("Yes")},
      {TNK_CHAT_THINK, .start = TNK__ANSWER_THINKS, .text = "\n\nHm</think>Yes",
       .message = THINKS("Hm", "Yes")},
      {TNK_CHAT_THINK, .text = "\n\nYes\n", .message = SAYS("\\n\\nYes\\n")},
      /* one that comes later, or is not opened, is text */
      {TNK_CHAT_THINK, .text = "Yes <think> </think>",
       .message = SAYS("Yes <think> </think>")},
      {TNK_CHAT_THINK, .text = "</think>a", .message = SAYS("</think>a")},
      /* cut */
      {TNK_CHAT_THINK, .text = "<think>\nHm\n", .message = THINKS("Hm\\n", "")},
      {TNK_CHAT_THINK, .text = "<think>a</thin<|im_end|>",
       .message = THINKS("a</thin", "")},
      {TNK_CHAT_THINK, .text = "<thin", .message = SAYS("<thin")},
      /* exact where a family has no newlines beside marks */
      {TNK_CHAT_DEEPSEEK, .text = "<think>\nHm\n</think>\n\nYes",
       .message = THINKS("\\nHm\\n", "\\n\\nYes")},
      {TNK_CHAT_MISTRAL, .text = "[THINK]Hm[/THINK]Yes</s>",
       .message = THINKS("Hm", "Yes")},
  };

  CHECK_SAMPLES(samples);
}

#define WEATHER "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}"
#define WEATHER_CALL(n) CALL("call0000" n, "weather", "{\"city\": \"Oslo\"}")

TEST(calls_of_hermes_are_json) {
  static const sample_t samples[] = {
      {TNK_CHAT_HERMES,
       .text = "<tool_call>\n" WEATHER "\n</tool_call><|im_end|>",
       .message = CALLS(WEATHER_CALL("0"))},
      {TNK_CHAT_HERMES,
       .text = "Let me see.\n\n<tool_call>\n" WEATHER
               "\n</tool_call>\n<tool_call>\n{\"name\": \"time\", "
               "\"parameters\": {}}\n</tool_call>\n",
       .message = SAYS_CALLS("Let me see.", WEATHER_CALL("0") ", " CALL(
                                                "call00001", "time", "{}"))},
      {TNK_CHAT_HERMES,
       .text = "<think>\nHm\n</think>\n\n<tool_call>" WEATHER "</tool_call>",
       .message =
           "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", "
           "\"content\": \"\", \"tool_calls\": [" WEATHER_CALL("0") "]}"},
      /* arguments written as a text once more */
      {TNK_CHAT_HERMES,
       .text = "<tool_call>{\"name\": \"f\", \"arguments\": "
               "\"{\\\"a\\\": [1, 2.5, null]}\"}</tool_call>",
       .message = CALLS(CALL("call00000", "f", "{\"a\": [1, 2.5, null]}"))},
      /* a mark inside of a text is no mark */
      {TNK_CHAT_HERMES,
       .text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "
               "\"</tool_call> \\\"</tool_call>\"}}</tool_call>ok",
       .message = SAYS_CALLS(
           "ok", CALL("call00000", "f",
                      "{\"a\": \"</tool_call> \\\"</tool_call>\"}"))},
  };

  CHECK_SAMPLES(samples);
}

#define ENDS "</tool_call></tool_call></tool_call></tool_call>"

TEST(what_is_no_call_is_kept_with_the_reason) {
  static const sample_t samples[] = {
      {TNK_CHAT_HERMES, .text = "a\n<tool_call>{\"name\": 1}</tool_call>\nb",
       .message = SAYS("a\\nb"),
       .unparsed = UNPARSED("\\n<tool_call>{\\\"name\\\": 1}</tool_call>",
                            "the call has no name")},
      {TNK_CHAT_HERMES, .text = "<tool_call>{\"name\": \"f\"}</tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call>{\\\"name\\\": \\\"f\\\"}</tool_call>",
                            "the call has no arguments")},
      {TNK_CHAT_HERMES,
       .text = "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call>{\\\"name\\\": \\\"f\\\", "
                            "\\\"arguments\\\": [1]}</tool_call>",
                            "the arguments are no object")},
      {TNK_CHAT_HERMES, .text = "<tool_call>[]</tool_call>",
       .message = SAYS(""),
       .unparsed =
           UNPARSED("<tool_call>[]</tool_call>", "the list has no calls")},
      /* cut by the end, and by a stop */
      {TNK_CHAT_HERMES, .text = "a<tool_call>{\"name", .message = SAYS("a"),
       .unparsed = UNPARSED("<tool_call>{\\\"name", "the call has no end")},
      {TNK_CHAT_HERMES, .text = "a<tool_call>{\"name<|im_end|>",
       .message = SAYS("a"),
       .unparsed = UNPARSED("<tool_call>{\\\"name", "the call has no end")},
      /* several ends are tried, and then the first one counts */
      {TNK_CHAT_HERMES, .text = "<tool_call>{\"" ENDS ENDS ENDS,
       .message = SAYS("</tool_call></tool_call></tool_call>" ENDS ENDS),
       .unparsed = UNPARSED("<tool_call>{\\\"</tool_call>",
                            "it ends inside of a text")},
      /* one that is broken does not hide the next */
      {TNK_CHAT_HERMES,
       .text = "<tool_call>{\"name: \"f\"}</tool_call>\n<tool_call>" WEATHER
               "</tool_call>",
       .message = CALLS(WEATHER_CALL("0")),
       .unparsed = UNPARSED("<tool_call>{\\\"name: \\\"f\\\"}</tool_call>",
                            "it ends inside of a text")},
  };

  CHECK_SAMPLES(samples);
}

TEST(calls_of_deepseek_come_in_sections) {
#define OPEN "<｜tool▁calls▁begin｜>"
#define CLOSE "<｜tool▁calls▁end｜>"
#define BEGIN "<｜tool▁call▁begin｜>"
#define SEP "<｜tool▁sep｜>"
#define END "<｜tool▁call▁end｜>"
  static const sample_t samples[] = {
      {TNK_CHAT_DEEPSEEK,
       .text = "Wait.\n" OPEN BEGIN "f" SEP "{\"a\": 1}" END BEGIN "g" SEP
               "{}" END CLOSE "<｜end▁of▁sentence｜>",
       .message = SAYS_CALLS("Wait.\\n",
                             CALL("call00000", "f", "{\"a\": 1}") ", " CALL(
                                 "call00001", "g", "{}"))},
      {TNK_CHAT_DEEPSEEK,
       .text =
           OPEN BEGIN "function" SEP "f\n```json\n{\"a\": \"```\"}\n```" END
                      "\n" BEGIN "function" SEP "g\n```json\n{}\n```" END CLOSE,
       .message = CALLS(CALL("call00000", "f", "{\"a\": \"```\"}") ", " CALL(
           "call00001", "g", "{}"))},
      {TNK_CHAT_DEEPSEEK,
       .text = OPEN BEGIN "f" END " x " BEGIN "f" SEP "{\"a\": 1}" END,
       .message = CALLS(CALL("call00000", "f", "{\"a\": 1}")),
       .unparsed = "[{\"text\": \"" BEGIN "f" END
                   "\", \"why\": \"the call has no name\"}, {\"text\": \" x "
                   "\", \"why\": \"there is text between the calls\"}]"},
      {TNK_CHAT_DEEPSEEK, .text = OPEN "\n" CLOSE "a", .message = SAYS("a"),
       .unparsed = UNPARSED(OPEN CLOSE, "the section has no calls")},
      {TNK_CHAT_DEEPSEEK, .text = OPEN BEGIN "f" SEP "{\"a\"",
       .message = SAYS(""),
       .unparsed = UNPARSED(BEGIN "f" SEP "{\\\"a\\\"", "the call has no end")},
  };

  CHECK_SAMPLES(samples);
}

TEST(calls_of_kimi_have_their_ids) {
  static const sample_t samples[] = {
      {TNK_CHAT_KIMI,
       .text = "<think>Hm</think>Wait<|tool_calls_section_begin|>"
               "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
               "{\"a\": \"b:c\"}<|tool_call_end|><|tool_call_begin|>"
               "functions.g.h:12<|tool_call_argument_begin|>{}"
               "<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
       .message = "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", "
                  "\"content\": \"Wait\", \"tool_calls\": [" CALL(
                      "functions.f:0", "f",
                      "{\"a\": \"b:c\"}") ", " CALL("functions.g.h:12", "g.h",
                                                    "{}") "]}"},
      {TNK_CHAT_KIMI,
       .text = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
               "<|tool_call_argument_begin|>\"{\\\"a\\\": 1}\"<|tool_call_end|>"
               "<|tool_calls_section_end|>",
       .message = CALLS(CALL("functions.f:0", "f", "{\"a\": 1}"))},
      {TNK_CHAT_KIMI,
       .text = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
               "<|tool_call_end|><|tool_calls_section_end|>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<|tool_call_begin|>functions.f:0<|tool_call_end|>",
                            "the call has no arguments")},
  };

  CHECK_SAMPLES(samples);
}

TEST(calls_of_mistral_end_with_the_answer) {
  static const sample_t samples[] = {
      {TNK_CHAT_MISTRAL,
       .text = "[TOOL_CALLS]f[ARGS]{\"a\": \"[TOOL_CALLS]\"}[TOOL_CALLS]g"
               "[CALL_ID]abcdefghi[ARGS]{}</s>",
       .message =
           CALLS(CALL("call00000", "f", "{\"a\": \"[TOOL_CALLS]\"}") ", " CALL(
               "abcdefghi", "g", "{}"))},
      {TNK_CHAT_MISTRAL,
       .text = "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": "
               "\"123456789\"}, {\"name\": \"g\", \"arguments\": {}}]",
       .message = CALLS(
           CALL("123456789", "f", "{}") ", " CALL("call00001", "g", "{}"))},
      {TNK_CHAT_MISTRAL, .text = "Hm [TOOL_CALLS]f[ARGS]{\"a\"</s>",
       .message = SAYS("Hm "),
       .unparsed = UNPARSED("[TOOL_CALLS]f[ARGS]{\\\"a\\\"",
                            "the arguments are no JSON")},
  };

  CHECK_SAMPLES(samples);
}

#define TOOLS                                                                  \
  "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": " \
  "{\"type\": \"object\", \"properties\": {}}}}]"

TEST(a_call_of_llama_is_the_whole_answer) {
  static const sample_t samples[] = {
      {TNK_CHAT_LLAMA,
       .text = "{\"name\": \"f\", \"parameters\": {\"a\": \"}\"}}<|eot_id|>",
       .message = CALLS(CALL("call00000", "f", "{\"a\": \"}\"}"))},
      {TNK_CHAT_LLAMA,
       .text = "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; "
               "{\"name\": \"g\", \"parameters\": {}}<|eom_id|>",
       .message = CALLS(
           CALL("call00000", "f", "{}") ", " CALL("call00001", "g", "{}"))},
      /* JSON that is no call is content; so is a call of what is no tool */
      {TNK_CHAT_LLAMA, .text = "{\"name\": \"Bob\", \"age\": 7}",
       .message = SAYS("{\\\"name\\\": \\\"Bob\\\", \\\"age\\\": 7}")},
      {TNK_CHAT_LLAMA, .tools = TOOLS,
       .text = "{\"name\": \"g\", \"parameters\": {}}",
       .message = SAYS("{\\\"name\\\": \\\"g\\\", \\\"parameters\\\": {}}")},
      {TNK_CHAT_LLAMA, .tools = TOOLS,
       .text = "{\"name\": \"f\", \"parameters\": {}}",
       .message = CALLS(CALL("call00000", "f", "{}"))},
      {TNK_CHAT_LLAMA, .text = "Set {1}", .message = SAYS("Set {1}")},
      {TNK_CHAT_LLAMA, .text = "{1", .message = SAYS("{1")},
      {TNK_CHAT_LLAMA, .text = "}", .message = SAYS("}")},
      {TNK_CHAT_LLAMA, .text = "<|python_tag|>print(1)<|eom_id|>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<|python_tag|>print(1)", "the call is no JSON")},
  };

  CHECK_SAMPLES(samples);
}

TEST(ids_and_stops_are_the_callers) {
  static const char *const stops[] = {"STOP", "ST", NULL};
  static const char text[] = "a<tool_call>" WEATHER "</tool_call>STOP";
  tnk__answer_options_t options = {
      .stops = stops, .id_prefix = "turn7-", .first_id = 3};
  tnk__answer_t *answer;
  tnk__buf_t buf;

  CHECK_INT(tnk__answer_open(&answer, test_allocator(), TNK_CHAT_HERMES,
                             tnk__value_undefined(), &options),
            TNK_OK);
  CHECK_INT(tnk__answer_feed(answer, text, sizeof(text) - 1), TNK_OK);
  CHECK_INT(tnk__answer_finish(answer), TNK_OK);
  CHECK_INT(tnk__answer_finish(answer), TNK_EINVAL);
  CHECK_INT(tnk__answer_feed(answer, "a", 1), TNK_EINVAL);
  CHECK_STR(
      as_json(&buf, tnk__answer_message(answer)),
      SAYS_CALLS("a", CALL("turn7-00003", "weather", "{\"city\": \"Oslo\"}")));
  tnk__buf_deinit(&buf);
  /* of two stops the shorter one ends it, and the rest is behind */
  CHECK_STR(as_json(&buf, tnk__answer_unparsed(answer)),
            UNPARSED("OP", "there is text behind the end of the answer"));
  tnk__buf_deinit(&buf);
  tnk__answer_free(answer);
  options.stops = (const char *const[]){"", NULL};
  CHECK_INT(tnk__answer_open(&answer, test_allocator(), TNK_CHAT_HERMES,
                             tnk__value_undefined(), &options),
            TNK_EINVAL);
  CHECK(answer == NULL);
  CHECK_INT(tnk__answer_open(&answer, test_allocator(), (tnk_chat_family_t)99,
                             tnk__value_undefined(), NULL),
            TNK_EINVAL);
}

/* Marks count as well. */
TEST(an_answer_has_a_limit) {
  static const char text[] = "<think>a</think>bc";
  tnk__answer_options_t options = {.max_text = sizeof(text) - 2};
  tnk__answer_t *answer;

  CHECK_INT(tnk__answer_open(&answer, test_allocator(), TNK_CHAT_THINK,
                             tnk__value_undefined(), &options),
            TNK_OK);
  CHECK_INT(tnk__answer_feed(answer, text, sizeof(text) - 2), TNK_OK);
  CHECK_INT(tnk__answer_feed(answer, "c", 1), TNK_ETOOBIG);
  CHECK_INT(tnk__answer_finish(answer), TNK_ETOOBIG);
  CHECK(tnk__answer_message(answer).kind == TNK__VALUE_UNDEFINED);
  tnk__answer_free(answer);
}

/* Ends of a block that lie in a text are looked at, but not without end. */
TEST(an_unclosed_text_costs_little) {
  enum { N = 50000 };
  static const char begin[] = "<tool_call>{\"", end[] = "</tool_call>";
  tnk__answer_t *answer;

  CHECK_INT(tnk__answer_open(&answer, test_allocator(), TNK_CHAT_HERMES,
                             tnk__value_undefined(), NULL),
            TNK_OK);
  CHECK_INT(tnk__answer_feed(answer, begin, sizeof(begin) - 1), TNK_OK);
  for (size_t i = 0; i < N; i++)
    CHECK_INT(tnk__answer_feed(answer, end, sizeof(end) - 1), TNK_OK);
  CHECK_INT(tnk__answer_finish(answer), TNK_OK);
  CHECK_INT(tnk__answer_unparsed(answer).as.list->n, 1);
  CHECK_INT(tnk__value_get(tnk__answer_message(answer), "content").n_text,
            (N - 1) * (sizeof(end) - 1));
  tnk__answer_free(answer);
}

/* Of each way to read a block, with one that is no call. */
static const struct {
  tnk_chat_family_t family;
  const char *text;
} short_of[] = {
    {TNK_CHAT_HERMES, "<think>\nHm\n</think>\na<tool_call>" WEATHER
                      "</tool_call><tool_call>{}</tool_call>"},
    {TNK_CHAT_XML, "<tool_call><function=f><parameter=a>1</parameter>"
                   "</function></tool_call><tool_call></tool_call>"},
    {TNK_CHAT_DEEPSEEK, OPEN BEGIN "f" SEP "{\"a\": 1}" END "x" CLOSE},
    {TNK_CHAT_GLM, "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value>"
                   "</tool_call>"},
    {TNK_CHAT_XTML, "<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|>"
                    "<|open|>argument key=\"a&quot;\" type=\"string\"<|sep|>x"
                    "<|close|>argument<|sep|><|close|>call<|sep|>"},
    {TNK_CHAT_HARMONY, " to=f<|message|>{}<|end|><|start|>user<|message|>"},
    {TNK_CHAT_LLAMA, "{\"name\": \"f\", \"parameters\": {}}<|eot_id|>x"},
};

static int feed_all(tnk__answer_t **answer, size_t k) {
  int err = tnk__answer_open(answer, test_allocator(), short_of[k].family,
                             tnk__value_undefined(), NULL);

  if (err == TNK_OK)
    err = tnk__answer_feed(*answer, short_of[k].text, strlen(short_of[k].text));
  return err == TNK_OK ? tnk__answer_finish(*answer) : err;
}

TEST(memory_that_is_short_is_told) {
  for (size_t k = 0; k < sizeof(short_of) / sizeof(short_of[0]); k++) {
    int did_fail = 1;

    for (long i = 0; did_fail; i++) {
      tnk__answer_t *answer;
      int err;

      test_alloc_fail_at(i);
      err = feed_all(&answer, k);
      did_fail = test_alloc_did_fail();
      test_alloc_fail_at(-1);
      CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
      if (err == TNK_OK)
        CHECK(tnk__answer_message(answer).kind == TNK__VALUE_DICT);
      tnk__answer_free(answer);
    }
  }
}
