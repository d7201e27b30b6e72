/* SPDX-License-Identifier: MIT */
#include "chat/answer/state.h"

#include <string.h>

/* The marks of each family, and the modes in which they are searched for. */

#define BAR "\xef\xbd\x9c" /* U+FF5C, in the control tokens of DeepSeek */
#define LOW "\xe2\x96\x81" /* U+2581, also used there */
#define DS(name) "<" BAR name BAR ">"

enum {
  START = TNK__MODE_START,
  CONTENT = TNK__MODE_CONTENT,
  SPEAKING = TNK__MODE_START | TNK__MODE_CONTENT,
  THINKING = TNK__MODE_THINKING,
  SECTION = TNK__MODE_SECTION,
  BLOCK = TNK__MODE_BLOCK,
  HEADER = TNK__MODE_HEADER
};

#define THINK_MARKS                                                            \
  {"<think>", START, TNK__DOES_THINK}, {                                       \
    "</think>", THINKING, TNK__DOES_THINK_END                                  \
  }

static const tnk__mark_t think_marks[] = {THINK_MARKS};
static const tnk__mark_t tool_call_marks[] = {
    THINK_MARKS,
    {"<tool_call>", SPEAKING, TNK__DOES_BLOCK},
    {"</tool_call>", BLOCK, TNK__DOES_BLOCK_END}};
static const tnk__mark_t deepseek_marks[] = {
    THINK_MARKS,
    {DS("tool" LOW "calls" LOW "begin"), SPEAKING, TNK__DOES_SECTION},
    {DS("tool" LOW "calls" LOW "end"), SECTION, TNK__DOES_SECTION_END},
    {DS("tool" LOW "call" LOW "begin"), SECTION, TNK__DOES_BLOCK},
    {DS("tool" LOW "call" LOW "end"), BLOCK, TNK__DOES_BLOCK_END}};
static const tnk__mark_t dsml_marks[] = {
    THINK_MARKS,
    {"<" BAR "DSML" BAR "function_calls>", SPEAKING, TNK__DOES_SECTION},
    {"</" BAR "DSML" BAR "function_calls>", SECTION, TNK__DOES_SECTION_END},
    {"<" BAR "DSML" BAR "tool_calls>", SPEAKING, TNK__DOES_SECTION},
    {"</" BAR "DSML" BAR "tool_calls>", SECTION, TNK__DOES_SECTION_END},
    {"<" BAR "DSML" BAR "invoke", SECTION, TNK__DOES_BLOCK},
    {"</" BAR "DSML" BAR "invoke>", BLOCK, TNK__DOES_BLOCK_END}};
static const tnk__mark_t kimi_marks[] = {
    THINK_MARKS,
    {"<|tool_calls_section_begin|>", SPEAKING, TNK__DOES_SECTION},
    {"<|tool_calls_section_end|>", SECTION, TNK__DOES_SECTION_END},
    {"<|tool_call_begin|>", SECTION, TNK__DOES_BLOCK},
    {"<|tool_call_end|>", BLOCK, TNK__DOES_BLOCK_END}};
static const tnk__mark_t harmony_marks[] = {
    {"<|start|>", SPEAKING | THINKING, TNK__DOES_HEADER},
    {"<|message|>", HEADER, TNK__DOES_MESSAGE},
    {"<|end|>", SPEAKING | THINKING | HEADER, TNK__DOES_MESSAGE_END},
    {"<|end|>", BLOCK, TNK__DOES_BLOCK_END}};
static const tnk__mark_t mistral_marks[] = {
    {"[THINK]", START, TNK__DOES_THINK},
    {"[/THINK]", THINKING, TNK__DOES_THINK_END},
    {"[TOOL_CALLS]", SPEAKING, TNK__DOES_BLOCK},
    {"[TOOL_CALLS]", BLOCK, TNK__DOES_BLOCK_NEXT}};
static const tnk__mark_t llama_marks[] = {
    {"{", START, TNK__DOES_BARE},
    {"<|python_tag|>", SPEAKING, TNK__DOES_BLOCK}};
static const tnk__mark_t xtml_marks[] = {
    {"<|open|>think<|sep|>", START, TNK__DOES_THINK},
    {"<|close|>think<|sep|>", THINKING, TNK__DOES_THINK_END},
    {"<|open|>response<|sep|>", SPEAKING, TNK__DOES_SPEAK},
    {"<|close|>response<|sep|>", SPEAKING, TNK__DOES_SPEAK},
    {"<|open|>tools<|sep|>", SPEAKING, TNK__DOES_SECTION},
    {"<|close|>tools<|sep|>", SECTION, TNK__DOES_SECTION_END},
    {"<|open|>call ", SECTION, TNK__DOES_BLOCK},
    {"<|close|>call<|sep|>", BLOCK, TNK__DOES_BLOCK_END},
    {"<|close|>message<|sep|>", SPEAKING, TNK__DOES_SPEAK}};

static const char *const plain_stops[] = {"\n\nUser:", NULL};
static const char *const im_stops[] = {"<|im_end|>", "<|endoftext|>", NULL};
static const char *const deepseek_stops[] = {DS("end" LOW "of" LOW "sentence"),
                                             NULL};
static const char *const kimi_stops[] = {"<|im_end|>", "[EOS]", NULL};
static const char *const glm_stops[] = {"<|user|>", "<|observation|>",
                                        "<|endoftext|>", NULL};
static const char *const harmony_stops[] = {"<|return|>", "<|call|>", NULL};
static const char *const mistral_stops[] = {"</s>", NULL};
static const char *const llama_stops[] = {"<|eot_id|>", "<|eom_id|>",
                                          "<|end_of_text|>", NULL};
static const char *const xtml_stops[] = {"<|end_of_msg|>", NULL};

#define MARKS(list) .marks = list, .n_marks = sizeof(list) / sizeof(list[0])

static const tnk__family_t families[] = {
    [TNK_CHAT_PLAIN] = {"plain", .stops = plain_stops},
    [TNK_CHAT_THINK] = {"think", MARKS(think_marks), im_stops, .trims = 1},
    [TNK_CHAT_HERMES] = {"hermes", MARKS(tool_call_marks), im_stops, .trims = 1,
                         .read = tnk__read_hermes},
    [TNK_CHAT_XML] = {"xml", MARKS(tool_call_marks), im_stops, .trims = 1,
                      .read = tnk__read_xml},
    [TNK_CHAT_DEEPSEEK] = {"deepseek", MARKS(deepseek_marks), deepseek_stops,
                           .read = tnk__read_deepseek},
    [TNK_CHAT_DSML] = {"dsml", MARKS(dsml_marks), deepseek_stops, .trims = 1,
                       .read = tnk__read_dsml},
    [TNK_CHAT_KIMI] = {"kimi", MARKS(kimi_marks), kimi_stops,
                       .read = tnk__read_kimi},
    [TNK_CHAT_GLM] = {"glm", MARKS(tool_call_marks), glm_stops, .trims = 1,
                      .read = tnk__read_glm},
    [TNK_CHAT_HARMONY] = {"harmony", MARKS(harmony_marks), harmony_stops,
                          .is_open_ended = 1, .has_headers = 1,
                          .read = tnk__read_harmony},
    [TNK_CHAT_MISTRAL] = {"mistral", MARKS(mistral_marks), mistral_stops,
                          .is_open_ended = 1, .read = tnk__read_mistral},
    [TNK_CHAT_LLAMA] = {"llama", MARKS(llama_marks), llama_stops,
                        .is_open_ended = 1, .read = tnk__read_llama},
    [TNK_CHAT_XTML] = {"xtml", MARKS(xtml_marks), xtml_stops,
                       .read = tnk__read_xtml},
};

const tnk__family_t *tnk__family(tnk_chat_family_t family) {
  size_t i = (size_t)family;

  return i < sizeof(families) / sizeof(families[0]) ? &families[i] : NULL;
}

/* Returns whether a text ends with another one. */
static int ends_with(const char *text, size_t n, const char *end) {
  size_t n_end = strlen(end);

  return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

/* The state after the prompt of a family with headers. The header of the
 * message that the prompt has started shows it. */
static tnk__answer_start_t start_of_message(const char *prompt, size_t n) {
  static const char channel[] = "<|channel|>";
  const char *at = NULL, *next, *to;
  size_t left = n, n_to;

  if (!ends_with(prompt, n, "<|message|>"))
    return TNK__ANSWER_BEGINS;
  for (next = prompt; (next = tnk__call_find(next, left, channel)) != NULL;
       next++, left = n - (size_t)(next - prompt))
    at = next;
  if (at == NULL)
    return TNK__ANSWER_SPEAKS;
  n -= (size_t)(at - prompt) + sizeof("<|message|>") - 1;
  return tnk__harmony_header(at, n, &to, &n_to) == TNK__HEADER_THINKING
             ? TNK__ANSWER_THINKS
             : TNK__ANSWER_SPEAKS;
}

tnk__answer_start_t tnk__answer_start(tnk_chat_family_t family,
                                      const char *prompt, size_t n) {
  const tnk__family_t *known = tnk__family(family);

  if (known == NULL)
    return TNK__ANSWER_BEGINS;
  if (known->has_headers)
    return start_of_message(prompt, n);
  while (n > 0 && (prompt[n - 1] == '\n' || prompt[n - 1] == ' '))
    n--;
  for (size_t i = 0; i < known->n_marks; i++) {
    if (!ends_with(prompt, n, known->marks[i].text))
      continue;
    if (known->marks[i].does == TNK__DOES_THINK)
      return TNK__ANSWER_THINKS;
    if (known->marks[i].does == TNK__DOES_SPEAK)
      return TNK__ANSWER_SPEAKS;
  }
  return TNK__ANSWER_BEGINS;
}
