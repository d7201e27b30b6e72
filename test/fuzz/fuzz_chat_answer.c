/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "chat/answer/answer.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

/* Any text as an answer: the first byte chooses the family (or FUZZ_FAMILY
 * does, by its name) and how the answer begins, the second how the text is cut.
 * However that is, the same is told. */

static const char *const families[] = {[TNK_CHAT_PLAIN] = "plain",
                                       [TNK_CHAT_THINK] = "think",
                                       [TNK_CHAT_HERMES] = "hermes",
                                       [TNK_CHAT_XML] = "xml",
                                       [TNK_CHAT_DEEPSEEK] = "deepseek",
                                       [TNK_CHAT_DSML] = "dsml",
                                       [TNK_CHAT_KIMI] = "kimi",
                                       [TNK_CHAT_GLM] = "glm",
                                       [TNK_CHAT_HARMONY] = "harmony",
                                       [TNK_CHAT_MISTRAL] = "mistral",
                                       [TNK_CHAT_LLAMA] = "llama",
                                       [TNK_CHAT_XTML] = "xtml",
                                       NULL};

#define TOOLS                                                                  \
  "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": " \
  "{\"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {\"anyOf\": "       \
  "[{\"type\": \"boolean\"}, {\"type\": \"null\"}]}}}}}]"

typedef struct {
  tnk__buf_t told;
  int last;
} heard_t;

/* Note what is told; pieces of one kind are joined. */
static void hear(const tnk_chat_delta_t *delta, void *user) {
  heard_t *heard = user;
  int is_piece = delta->kind == TNK_CHAT_DELTA_THINKING ||
                 delta->kind == TNK_CHAT_DELTA_CONTENT;

  if (!is_piece || heard->last != (int)delta->kind)
    (void)tnk__buf_byte(&heard->told, (uint8_t)(0xf8 + delta->kind));
  if (delta->kind == TNK_CHAT_DELTA_CALL_BEGIN) {
    (void)tnk__buf_text(&heard->told, delta->name);
    (void)tnk__buf_text(&heard->told, delta->id);
  }
  FUZZ_CHECK(tnk__buf_append(&heard->told, delta->text, delta->n) == TNK_OK);
  heard->last = (int)delta->kind;
}

static tnk__answer_t *run(tnk_chat_family_t family, tnk__answer_start_t start,
                          tnk__value_t tools, const char *text, size_t n,
                          unsigned cut, heard_t *heard) {
  tnk__answer_options_t options = {
      .start = start, .delta = hear, .user = heard};
  unsigned state = cut;
  tnk__answer_t *answer;

  tnk__buf_init(&heard->told, tnk__allocator_default(), (size_t)1 << 26);
  heard->last = -1;
  FUZZ_CHECK(tnk__answer_open(&answer, tnk__allocator_default(), family, tools,
                              &options) == TNK_OK);
  for (size_t at = 0; at < n;) {
    size_t piece = n - at;

    state = state * 1103515245 + 12345;
    if (cut > 0 && piece > 1 + (state >> 16) % 16)
      piece = 1 + (state >> 16) % 16;
    FUZZ_CHECK(tnk__answer_feed(answer, text + at, piece) == TNK_OK);
    at += piece;
  }
  FUZZ_CHECK(tnk__answer_finish(answer) == TNK_OK);
  return answer;
}

/* Text that has nothing that could be a mark or a stop is content. */
static void check_plain(tnk__answer_t *answer, const char *text, size_t n) {
  tnk__value_t content = tnk__value_get(tnk__answer_message(answer), "content");

  for (size_t i = 0; i < n; i++)
    if (text[i] == '<' || text[i] == '[' || text[i] == '{' || text[i] == '\n')
      return;
  FUZZ_CHECK(content.kind == TNK__VALUE_TEXT && content.n_text == n &&
             (n == 0 || memcmp(content.as.text, text, n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data + 2;
  unsigned chosen;
  tnk__answer_start_t start;
  tnk_chat_family_t family;
  tnk__answer_t *whole, *cut;
  heard_t whole_heard, cut_heard;
  tnk__value_t tools;
  tnk__heap_t heap;

  if (size < 2)
    return 0;
  chosen = fuzz_pick("FUZZ_FAMILY", families, data[0] & 15U);
  if (families[chosen] == NULL)
    return 0;
  family = (tnk_chat_family_t)chosen;
  start = (tnk__answer_start_t)((data[0] >> 4 & 7) % 3);
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)1 << 20);
  FUZZ_CHECK(tnk__value_from_json(&heap, TOOLS, sizeof(TOOLS) - 1, &tools) ==
             TNK_OK);
  if (data[0] & 0x80)
    tools = tnk__value_undefined();
  whole = run(family, start, tools, text, size - 2, 0, &whole_heard);
  cut = run(family, start, tools, text, size - 2, data[1] + 1U, &cut_heard);
  FUZZ_CHECK(whole_heard.told.len == cut_heard.told.len);
  FUZZ_CHECK(whole_heard.told.len == 0 ||
             memcmp(whole_heard.told.data, cut_heard.told.data,
                    cut_heard.told.len) == 0);
  FUZZ_CHECK(
      tnk__value_equal(tnk__answer_unparsed(whole), tnk__answer_unparsed(cut)));
  if (start != TNK__ANSWER_THINKS && family != TNK_CHAT_HARMONY)
    check_plain(whole, text, size - 2);
  tnk__answer_free(cut);
  tnk__answer_free(whole);
  tnk__buf_deinit(&cut_heard.told);
  tnk__buf_deinit(&whole_heard.told);
  tnk__heap_deinit(&heap);
  return 0;
}
