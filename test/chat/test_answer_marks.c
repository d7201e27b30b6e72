/* SPDX-License-Identifier: MIT */
#include "chat/answer.h"

/* What is told of answers whose calls have marks for their arguments, or whose
 * messages have headers, however they are cut; and how answers begin. */

#define TOOLS                                                                  \
  "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": " \
  "{\"type\": \"object\", \"properties\": {"                                   \
  "\"s\": {\"type\": \"string\"}, \"n\": {\"type\": \"integer\"}, "            \
  "\"b\": {\"type\": \"boolean\"}, \"o\": {\"type\": \"object\"}, "            \
  "\"m\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}, "       \
  "\"l\": {\"type\": [\"number\", \"string\"]}, "                              \
  "\"e\": {\"enum\": [\"1\", \"2\"]}}}}}]"

#define PARAMETER(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define XML(name, parameters)                                                  \
  "<tool_call>\n<function=" name ">\n" parameters "</function>\n</tool_call>"

TEST(arguments_of_xml_have_the_types_of_the_schema) {
  static const sample_t samples[] = {
      {TNK_CHAT_XML, .tools = TOOLS,
       .text = "<think>\nHm\n</think>\n\nWait.\n\n" XML(
           "f", PARAMETER("s", "1") PARAMETER("n", "1") PARAMETER("b", "True")
                    PARAMETER("o", "{\"a\": 1}") PARAMETER("m", "None")
                        PARAMETER("l", "x") PARAMETER("e", "1") PARAMETER(
                            "new", "[1]")) "\n" XML("g", "") "<|im_end|>",
       .message = "{\"role\": \"assistant\", \"reasoning_content\": "
                  "\"Hm\", "
                  "\"content\": \"Wait.\", \"tool_calls\": [" CALL(
                      "call00000", "f",
                      "{\"s\": \"1\", \"n\": 1, \"b\": true, \"o\": "
                      "{\"a\": 1}, "
                      "\"m\": null, \"l\": \"x\", \"e\": \"1\", \"new\": "
                      "[1]}") ", " CALL("call00001", "g", "{}") "]}"},
      /* what does not fit the type is a text */
      {TNK_CHAT_XML, .tools = TOOLS,
       .text = XML("f", PARAMETER("n", "one") PARAMETER("b", "1")
                            PARAMETER("l", "2") PARAMETER("m", "null")),
       .message = CALLS(CALL("call00000", "f",
                             "{\"n\": \"one\", \"b\": \"1\", \"l\": 2, "
                             "\"m\": null}"))},
      /* lines, and newlines that are the value's own */
      {TNK_CHAT_XML, .text = XML("f", PARAMETER("s", "\na\n</tool_call>\nb\n")),
       .message = CALLS(
           CALL("call00000", "f", "{\"s\": \"\\na\\n</tool_call>\\nb\\n\"}"))},
      {TNK_CHAT_XML,
       .text = "<tool_call><function=f><parameter=s></parameter>"
               "</function></tool_call>",
       .message = CALLS(CALL("call00000", "f", "{\"s\": \"\"}"))},
  };

  CHECK_SAMPLES(samples);
}

TEST(what_is_no_call_of_xml_is_kept) {
  static const sample_t samples[] = {
      {TNK_CHAT_XML,
       .text = "a\n" XML("f", PARAMETER("s", "1") PARAMETER("s", "2")) "\nb",
       .message = SAYS("a\\nb"),
       .unparsed = UNPARSED("\\n<tool_call>\\n<function=f>\\n<parameter=s>"
                            "\\n1\\n</parameter>\\n<parameter=s>\\n2\\n"
                            "</parameter>\\n</function>\\n</tool_call>",
                            "the argument \\\"s\\\" is given twice")},
      {TNK_CHAT_XML, .text = "<tool_call>f</tool_call>", .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call>f</tool_call>",
                            "the block has more than calls")},
      {TNK_CHAT_XML, .text = "<tool_call></tool_call>", .message = SAYS(""),
       .unparsed =
           UNPARSED("<tool_call></tool_call>", "the block has no call")},
      {TNK_CHAT_XML, .text = "<tool_call><function=f>x</function></tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call><function=f>x</function></tool_call>",
                            "there is text between the arguments")},
      {TNK_CHAT_XML,
       .text = "<tool_call><function=f><parameter=s>1</tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call><function=f><parameter=s>1</tool_call>",
                            "it ends inside of a text")},
  };

  CHECK_SAMPLES(samples);
}

TEST(calls_of_glm_are_pairs) {
  static const sample_t samples[] = {
      {TNK_CHAT_GLM, .tools = TOOLS,
       .text = "\n<think>Hm</think>\nWait.\n<tool_call>f\n<arg_key>s</arg_key>"
               "\n<arg_value>1</arg_value>\n<arg_key>n</arg_key>\n<arg_value>1"
               "</arg_value>\n</tool_call><|observation|>",
       .message = "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", "
                  "\"content\": \"Wait.\", \"tool_calls\": [" CALL(
                      "call00000", "f", "{\"s\": \"1\", \"n\": 1}") "]}"},
      {TNK_CHAT_GLM, .start = TNK__ANSWER_THINKS,
       .text = "Hm</think><tool_call>f<arg_key>x</arg_key><arg_value>\n"
               "</tool_call>\n</arg_value></tool_call><tool_call>g</tool_call>",
       .message =
           "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", "
           "\"content\": \"\", \"tool_calls\": [" CALL(
               "call00000", "f",
               "{\"x\": \"\\n</tool_call>\\n\"}") ", " CALL("call00001", "g",
                                                            "{}") "]}"},
      {TNK_CHAT_GLM, .text = "<tool_call>f<arg_key>x</arg_key></tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call>f<arg_key>x</arg_key></tool_call>",
                            "an argument has no value")},
      {TNK_CHAT_GLM, .text = "<tool_call>a b\nc</tool_call>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<tool_call>a b\\nc</tool_call>",
                            "there is text between the arguments")},
  };

  CHECK_SAMPLES(samples);
}

#define TAG(name) "<|open|>" name "<|sep|>"
#define END_TAG(name) "<|close|>" name "<|sep|>"
#define TAG_CALL(name, arguments)                                              \
  TAG("call tool=\"" name "\" index=\"1\"") arguments END_TAG("call")
#define TAG_ARGUMENT(key, type, value)                                         \
  TAG("argument key=\"" key "\" type=\"" type "\"") value END_TAG("argument")
#define TAG_CALLS(calls) TAG("tools") calls END_TAG("tools")

TEST(channels_and_calls_of_xtml_are_tags) {
  static const sample_t samples[] = {
      {TNK_CHAT_XTML, .start = TNK__ANSWER_THINKS,
       .text = "Hm\n" END_TAG("think")
           TAG("response") "Wait.\n" END_TAG("response") TAG_CALLS(TAG_CALL(
               "f", TAG_ARGUMENT("s", "string", "1")
                        TAG_ARGUMENT("n", "number", "1")) TAG_CALL("g", ""))
               END_TAG("message") "<|end_of_msg|>",
       .message = "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\\n\", "
                  "\"content\": \"Wait.\\n\", \"tool_calls\": [" CALL(
                      "call00000", "f",
                      "{\"s\": \"1\", \"n\": 1}") ", " CALL("call00001", "g",
                                                            "{}") "]}"},
      /* no thoughts; the end of an answer that begins behind "response" */
      {TNK_CHAT_XTML,
       .text = TAG("think") END_TAG("think")
           TAG("response") "a" END_TAG("response") END_TAG("message"),
       .message = SAYS("a")},
      {TNK_CHAT_XTML, .start = TNK__ANSWER_SPEAKS,
       .text = TAG("think") "a" END_TAG("response"),
       .message = SAYS("<|open|>think<|sep|>a")},
      /* names with quotes, in any order; types by the schema where none is
       * told; ends that lie in a text */
      {TNK_CHAT_XTML, .tools = TOOLS,
       .text = TAG_CALLS(TAG("call index=\"1\" tool=\"f\"") TAG_ARGUMENT(
           "a&quot;&amp;quot;&lt;", "string", "x" END_TAG("call") "&amp;")
                             TAG("argument key=\"s\"") "7" END_TAG("argument")
                                 TAG("argument key=\"n\"") "7" END_TAG(
                                     "argument") END_TAG("call")),
       .message = CALLS(CALL("call00000", "f",
                             "{\"a\\\"&quot;&lt;\": "
                             "\"x<|close|>call<|sep|>&amp;\", \"s\": \"7\", "
                             "\"n\": 7}"))},
      /* all of them as one object */
      {TNK_CHAT_XTML,
       .text = TAG_CALLS(TAG_CALL(
           "f", TAG("json type=\"object\"") "{\"a\": [1]}" END_TAG("json"))),
       .message = CALLS(CALL("call00000", "f", "{\"a\": [1]}"))},
  };

  CHECK_SAMPLES(samples);
}

#define ONE_CALL(inside) "<|open|>call " inside "<|close|>call<|sep|>"
#define NO_CALL(inside, why)                                                   \
  {                                                                            \
    TNK_CHAT_XTML, .text = TAG_CALLS(ONE_CALL(inside)), .message = SAYS(""),   \
                   .unparsed = why                                             \
  }

TEST(what_is_no_call_of_xtml_is_kept) {
  static const sample_t samples[] = {
      NO_CALL("index=\"1\"<|sep|>", UNPARSED(ONE_CALL("index=\\\"1\\\"<|sep|>"),
                                             "the call has no name")),
      NO_CALL("tool=\"f\"<|sep|>x", UNPARSED(ONE_CALL("tool=\\\"f\\\"<|sep|>x"),
                                             "there is text between the "
                                             "arguments")),
      NO_CALL("tool=\"f",
              UNPARSED(ONE_CALL("tool=\\\"f"), "it ends inside of a text")),
      NO_CALL("tool=\"f\"<|sep|><|open|>argument type=\"string\"<|sep|>x"
              "<|close|>argument<|sep|>",
              UNPARSED(ONE_CALL("tool=\\\"f\\\"<|sep|><|open|>argument "
                                "type=\\\"string\\\"<|sep|>x<|close|>"
                                "argument<|sep|>"),
                       "an argument has no name")),
      NO_CALL("tool=\"f\"<|sep|><|open|>argument key=\"k\" type=\"number\""
              "<|sep|>x<|close|>argument<|sep|>",
              UNPARSED(ONE_CALL("tool=\\\"f\\\"<|sep|><|open|>argument "
                                "key=\\\"k\\\" type=\\\"number\\\"<|sep|>x"
                                "<|close|>argument<|sep|>"),
                       "the argument \\\"k\\\" is no JSON")),
      NO_CALL("tool=\"f\"<|sep|><|open|>json <|sep|>{}<|close|>json<|sep|>x",
              UNPARSED(ONE_CALL("tool=\\\"f\\\"<|sep|><|open|>json <|sep|>{}"
                                "<|close|>json<|sep|>x"),
                       "there is text behind the arguments")),
      NO_CALL("tool=\"f\"<|sep|><|open|>json <|sep|>[]<|close|>json<|sep|>",
              UNPARSED(ONE_CALL("tool=\\\"f\\\"<|sep|><|open|>json <|sep|>[]"
                                "<|close|>json<|sep|>"),
                       "the arguments are no object")),
  };

  CHECK_SAMPLES(samples);
}

#define INVOKE(name, parameters)                                               \
  "<｜DSML｜invoke name=\"" name "\">\n" parameters "</｜DSML｜invoke>\n"
#define ARGUMENT(key, is_text, value)                                          \
  "<｜DSML｜parameter name=\"" key "\" string=\"" is_text "\">" value          \
  "</｜DSML｜parameter>\n"

TEST(calls_of_dsml_tell_texts_apart) {
  static const sample_t samples[] = {
      {TNK_CHAT_DSML, .start = TNK__ANSWER_THINKS,
       .text = "Hm</think>Wait.\n\n<｜DSML｜function_calls>\n" INVOKE(
           "f",
           ARGUMENT("s", "true", "1") ARGUMENT("o", "false", "{\"a\": [1]}"))
           INVOKE("g", "") "</｜DSML｜function_calls><｜end▁of▁sentence｜>",
       .message =
           "{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", "
           "\"content\": \"Wait.\", \"tool_calls\": [" CALL(
               "call00000", "f",
               "{\"s\": \"1\", \"o\": {\"a\": [1]}}") ", " CALL("call00001",
                                                                "g", "{}") "]"
                                                                           "}"},
      {TNK_CHAT_DSML,
       .text = "\n\n<｜DSML｜tool_calls>\n" INVOKE("f", "\n")
           INVOKE("g", ARGUMENT("n", "false", "x")) "</｜DSML｜tool_calls>",
       .message = CALLS(CALL("call00000", "f", "{}")),
       .unparsed =
           UNPARSED("<｜DSML｜invoke name=\\\"g\\\">\\n<｜DSML｜parameter "
                    "name=\\\"n\\\" string=\\\"false\\\">x</｜DSML｜parameter>"
                    "\\n</｜DSML｜invoke>",
                    "the argument \\\"n\\\" is no JSON")},
  };

  CHECK_SAMPLES(samples);
}

TEST(harmony_has_channels) {
  static const sample_t samples[] = {
      {TNK_CHAT_HARMONY,
       .text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
               "<|channel|>final<|message|>Yes.\n<|return|>",
       .message = THINKS("Hm.", "Yes.\\n")},
      {TNK_CHAT_HARMONY,
       .text = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
               "<|channel|>commentary<|message|>I look.<|end|><|start|>"
               "assistant<|channel|>commentary to=functions.f <|constrain|>json"
               "<|message|>{\"a\": \"<|end|>\"}<|call|>",
       .message = "{\"role\": \"assistant\", \"reasoning_content\": \"a\", "
                  "\"content\": \"I look.\", \"tool_calls\": [" CALL(
                      "call00000", "f", "{\"a\": \"<|end|>\"}") "]}"},
      {TNK_CHAT_HARMONY,
       .text = " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
       .message = CALLS(CALL("call00000", "f", "{}"))},
      {TNK_CHAT_HARMONY,
       .text = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
               "<|channel|>analysis<|message|>b",
       .message = THINKS("a\\nb", "")},
      {TNK_CHAT_HARMONY, .start = TNK__ANSWER_SPEAKS, .text = "Yes<|return|>",
       .message = SAYS("Yes")},
      {TNK_CHAT_HARMONY, .text = "Yes", .message = SAYS("Yes")},
      {TNK_CHAT_HARMONY, .text = " t", .message = SAYS(" t")},
  };

  CHECK_SAMPLES(samples);
}

TEST(what_harmony_does_not_know_is_kept) {
  static const sample_t samples[] = {
      {TNK_CHAT_HARMONY,
       .text = "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
       .message = SAYS(""),
       .unparsed =
           UNPARSED("<|channel|>analysis to=python code<|message|>print(1)",
                    "the arguments are no JSON")},
      {TNK_CHAT_HARMONY,
       .text = "<|channel|>final<|message|>a<|end|><|start|>user<|message|>b"
               "<|end|>",
       .message = SAYS("a"),
       .unparsed = UNPARSED("<|start|>user<|message|>b<|end|>",
                            "the message is not the assistant's")},
      {TNK_CHAT_HARMONY, .text = "<|channel|>secret<|message|>a",
       .message = SAYS("a"),
       .unparsed = UNPARSED("<|channel|>secret<|message|>",
                            "this is no header of a message")},
      {TNK_CHAT_HARMONY, .text = "<|channel|>anal", .message = SAYS(""),
       .unparsed = UNPARSED("<|channel|>anal", "the header has no message")},
      {TNK_CHAT_HARMONY, .text = "<|channel|>anal<|return|>",
       .message = SAYS(""),
       .unparsed = UNPARSED("<|channel|>anal", "this is no message")},
  };

  CHECK_SAMPLES(samples);
}

/* A header that does not end is text, with what looks like one behind it. */
TEST(a_header_has_a_limit) {
  static char text[3000], message[3200];
  sample_t sample = {TNK_CHAT_HARMONY, .text = text, .message = message};

  (void)snprintf(text, sizeof(text), "<|start|>assistant %02000d<|message|>a",
                 7);
  (void)snprintf(message, sizeof(message), SAYS("%s"), text);
  check_sample(&sample);
}

static tnk__answer_start_t start_of(tnk_chat_family_t family,
                                    const char *prompt) {
  return tnk__answer_start(family, prompt, strlen(prompt));
}

TEST(a_prompt_tells_how_its_answer_begins) {
  CHECK_INT(start_of(TNK_CHAT_HERMES, "<|im_start|>assistant\n"),
            TNK__ANSWER_BEGINS);
  CHECK_INT(start_of(TNK_CHAT_HERMES, "<|im_start|>assistant\n<think>\n"),
            TNK__ANSWER_THINKS);
  CHECK_INT(start_of(TNK_CHAT_XML, "<think>\n\n</think>\n\n"),
            TNK__ANSWER_BEGINS);
  CHECK_INT(start_of(TNK_CHAT_DEEPSEEK, "<｜Assistant｜><think>"),
            TNK__ANSWER_THINKS);
  CHECK_INT(start_of(TNK_CHAT_PLAIN, "<think>"), TNK__ANSWER_BEGINS);
  CHECK_INT(start_of(TNK_CHAT_MISTRAL, "[/INST][THINK]"), TNK__ANSWER_THINKS);
  CHECK_INT(
      start_of(TNK_CHAT_XTML, TAG("message role=\"assistant\"") TAG("think")),
      TNK__ANSWER_THINKS);
  CHECK_INT(start_of(TNK_CHAT_XTML,
                     TAG("message role=\"assistant\"") TAG("response")),
            TNK__ANSWER_SPEAKS);
  CHECK_INT(start_of(TNK_CHAT_HARMONY, "<|start|>assistant"),
            TNK__ANSWER_BEGINS);
  CHECK_INT(start_of(TNK_CHAT_HARMONY,
                     "<|channel|>final<|message|>x<|end|><|start|>assistant"
                     "<|channel|>analysis<|message|>"),
            TNK__ANSWER_THINKS);
  CHECK_INT(start_of(TNK_CHAT_HARMONY,
                     "<|start|>assistant<|channel|>final<|message|>"),
            TNK__ANSWER_SPEAKS);
  CHECK_INT(start_of((tnk_chat_family_t)99, ""), TNK__ANSWER_BEGINS);
}
