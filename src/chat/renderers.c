/* SPDX-License-Identifier: MIT */
/* Names of the cookbook's renderers. Each model's template has its own
 * variables. These values make a template write the same text as the renderer
 * of that name. */
#include <string.h>

#include "tnk/chat.h"

#define N(list) (uint32_t)(sizeof(list) / sizeof(*(list)))

static const char *const colon[] = {"\n\nUser:", NULL};
static const char *const eot[] = {"<|eot_id|>", NULL};
static const char *const im_end[] = {"<|im_end|>", NULL};
static const char *const sentence[] = {"<｜end▁of▁sentence｜>", NULL};
static const char *const glm[] = {"<|user|>", "<|observation|>",
                                  "<|endoftext|>", NULL};
static const char *const harmony[] = {"<|return|>", "<|call|>", NULL};
static const char *const end_of_msg[] = {"<|end_of_msg|>", NULL};
static const char *const unknown[] = {NULL};

static const tnk_pair_t think[] = {{"enable_thinking", "true"}};
static const tnk_pair_t no_think[] = {{"enable_thinking", "false"}};
static const tnk_pair_t preserve[] = {{"enable_thinking", "true"},
                                      {"preserve_thinking", "true"}};
static const tnk_pair_t effort_low[] = {{"reasoning_effort", "\"low\""}};
static const tnk_pair_t effort_medium[] = {{"reasoning_effort", "\"medium\""}};
static const tnk_pair_t effort_high[] = {{"reasoning_effort", "\"high\""}};
static const tnk_pair_t effort_max[] = {{"reasoning_effort", "\"max\""}};
static const tnk_pair_t effort_xhigh[] = {{"reasoning_effort", "\"xhigh\""}};
static const tnk_pair_t thinking[] = {{"thinking", "true"}};
static const tnk_pair_t not_thinking[] = {{"thinking", "false"}};
static const tnk_pair_t k3_low[] = {{"thinking_effort", "\"low\""}};
static const tnk_pair_t k3_high[] = {{"thinking_effort", "\"high\""}};
static const tnk_pair_t k3_max[] = {{"thinking_effort", "\"max\""}};
static const tnk_pair_t k3_none[] = {{"thinking_effort", "null"}};
static const tnk_pair_t chat_mode[] = {{"thinking_mode", "\"chat\""}};
static const tnk_pair_t keep_dropped[] = {{"drop_thinking", "false"}};
static const tnk_pair_t k26_preserve[] = {{"thinking", "true"},
                                          {"preserve_thinking", "true"}};
static const tnk_pair_t low_effort[] = {{"enable_thinking", "true"},
                                        {"low_effort", "true"}};
static const tnk_pair_t medium_effort[] = {{"enable_thinking", "true"},
                                           {"medium_effort", "true"}};
static const tnk_pair_t whole_history[] = {
    {"enable_thinking", "true"}, {"truncate_history_thinking", "false"}};

static const char K31[] = "with the variables and stops of Kimi K3's template; "
                          "the cookbook takes it from another package";

#define ROW(name, family, variables, stops, note)                              \
  { name, family, N(variables), variables, stops, note }
#define PLAIN_ROW(name, family, stops, note)                                   \
  { name, family, 0, NULL, stops, note }

/* Sorted by name. */
static const tnk_chat_renderer_t rows[] = {
    PLAIN_ROW("deepseekv3", TNK_CHAT_DEEPSEEK, sentence, NULL),
    ROW("deepseekv3_disable_thinking", TNK_CHAT_DEEPSEEK, not_thinking,
        sentence, NULL),
    ROW("deepseekv3_thinking", TNK_CHAT_DEEPSEEK, thinking, sentence, NULL),
    PLAIN_ROW("deepseekv4_1", TNK_CHAT_DSML, sentence, NULL),
    ROW("deepseekv4_1_disable_thinking", TNK_CHAT_DSML, chat_mode, sentence,
        NULL),
    ROW("deepseekv4_1_low_reasoning", TNK_CHAT_DSML, effort_low, sentence,
        NULL),
    ROW("deepseekv4_1_max_reasoning", TNK_CHAT_DSML, effort_max, sentence,
        NULL),
    ROW("deepseekv4_1_preserve_thinking", TNK_CHAT_DSML, keep_dropped, sentence,
        NULL),
    ROW("glm5_3_high_reasoning", TNK_CHAT_GLM, effort_high, glm, NULL),
    ROW("glm5_3_low_reasoning", TNK_CHAT_GLM, effort_low, glm, NULL),
    ROW("glm5_3_max_reasoning", TNK_CHAT_GLM, effort_max, glm, NULL),
    ROW("gpt_oss_high_reasoning", TNK_CHAT_HARMONY, effort_high, harmony, NULL),
    ROW("gpt_oss_low_reasoning", TNK_CHAT_HARMONY, effort_low, harmony, NULL),
    ROW("gpt_oss_medium_reasoning", TNK_CHAT_HARMONY, effort_medium, harmony,
        NULL),
    PLAIN_ROW("gpt_oss_no_sysprompt", TNK_CHAT_HARMONY, harmony,
              "the model's template always writes the system text"),
    PLAIN_ROW("kimi_k2", TNK_CHAT_KIMI, im_end, NULL),
    ROW("kimi_k25", TNK_CHAT_KIMI, thinking, im_end, NULL),
    ROW("kimi_k25_disable_thinking", TNK_CHAT_KIMI, not_thinking, im_end, NULL),
    ROW("kimi_k26", TNK_CHAT_KIMI, thinking, im_end, NULL),
    ROW("kimi_k26_disable_thinking", TNK_CHAT_KIMI, not_thinking, im_end, NULL),
    ROW("kimi_k26_preserve_thinking", TNK_CHAT_KIMI, k26_preserve, im_end,
        NULL),
    ROW("kimi_k31_pro_disable_thinking", TNK_CHAT_XTML, not_thinking,
        end_of_msg, K31),
    ROW("kimi_k31_pro_high_reasoning", TNK_CHAT_XTML, k3_high, end_of_msg, K31),
    ROW("kimi_k31_pro_low_reasoning", TNK_CHAT_XTML, k3_low, end_of_msg, K31),
    ROW("kimi_k31_pro_max_reasoning", TNK_CHAT_XTML, k3_max, end_of_msg, K31),
    ROW("kimi_k31_pro_no_reasoning_effort", TNK_CHAT_XTML, k3_none, end_of_msg,
        K31),
    PLAIN_ROW("llama3", TNK_CHAT_PLAIN, eot,
              "without the dates that the model's template writes"),
    ROW("nemotron3", TNK_CHAT_XML, think, im_end, NULL),
    ROW("nemotron3_disable_thinking", TNK_CHAT_XML, no_think, im_end, NULL),
    ROW("nemotron3_low_thinking", TNK_CHAT_XML, low_effort, im_end, NULL),
    ROW("nemotron3_preserve_thinking", TNK_CHAT_XML, whole_history, im_end,
        NULL),
    ROW("nemotron3_ultra", TNK_CHAT_XML, think, im_end, NULL),
    ROW("nemotron3_ultra_disable_thinking", TNK_CHAT_XML, no_think, im_end,
        NULL),
    ROW("nemotron3_ultra_medium_thinking", TNK_CHAT_XML, medium_effort, im_end,
        NULL),
    ROW("nemotron3_ultra_preserve_thinking", TNK_CHAT_XML, whole_history,
        im_end, NULL),
    ROW("qwen3", TNK_CHAT_HERMES, think, im_end, NULL),
    ROW("qwen3_5", TNK_CHAT_XML, think, im_end, NULL),
    ROW("qwen3_5_disable_thinking", TNK_CHAT_XML, no_think, im_end, NULL),
    ROW("qwen3_5_preserve_thinking", TNK_CHAT_XML, preserve, im_end,
        "the model's template leaves earlier thoughts out"),
    ROW("qwen3_8_disable_thinking", TNK_CHAT_XML, no_think, im_end, NULL),
    ROW("qwen3_8_low_reasoning", TNK_CHAT_XML, effort_low, im_end, NULL),
    ROW("qwen3_8_medium_reasoning", TNK_CHAT_XML, effort_medium, im_end, NULL),
    ROW("qwen3_8_xhigh_reasoning", TNK_CHAT_XML, effort_xhigh, im_end, NULL),
    ROW("qwen3_disable_thinking", TNK_CHAT_HERMES, no_think, im_end, NULL),
    PLAIN_ROW("qwen3_instruct", TNK_CHAT_HERMES, im_end, NULL),
    ROW("qwen3_vl", TNK_CHAT_HERMES, think, im_end, NULL),
    PLAIN_ROW("qwen3_vl_instruct", TNK_CHAT_HERMES, im_end, NULL),
    PLAIN_ROW("role_colon", TNK_CHAT_PLAIN, colon, NULL),
    PLAIN_ROW("tml_v0", TNK_CHAT_PLAIN, unknown,
              "its format is not public; the cookbook takes it from another "
              "package"),
};

const tnk_chat_renderer_t *tnk_chat_find(const char *name) {
  size_t low = 0, high = sizeof(rows) / sizeof(*rows);

  while (name != NULL && low < high) {
    const size_t mid = (low + high) / 2;
    const int order = strcmp(name, rows[mid].name);

    if (order == 0)
      return &rows[mid];
    if (order < 0)
      high = mid;
    else
      low = mid + 1;
  }
  return NULL;
}

const tnk_chat_renderer_t *tnk_chat_renderers(size_t *n) {
  if (n != NULL)
    *n = sizeof(rows) / sizeof(*rows);
  return rows;
}
