/* SPDX-License-Identifier: MIT */
/*
 * From the name of a model to that of its tokenizer.
 */
#include <string.h>

#include "lib/files/hub/name.h"
#include "support/test.h"
#include "tnk/error.h"

#define LLAMA "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"
#define K2 "612681931a8c906ddb349f8ad0f582cb552189cd"
#define K25 "4d01dfe0332d63057c186e0b262165819efb6611"
#define K26 "b5aabbfb20227ed42becbf5541dbffd213942c58"
#define K3 "f831ab66814297da540d832a5235f8e904f29d06"

typedef struct {
  const char *model;
  const char *tokenizer_id;
  const char *revision;
  const char *id; /* NULL: refused */
  const char *at;
} case_t;

static void check(const case_t *c, const tnk_tokenizer_rule_t *rules, size_t n,
                  int status) {
  const char *why = NULL;
  tnk__name_t name;
  int err = tnk__name_resolve(&name, c->model, c->tokenizer_id, c->revision,
                              rules, n, &why);

  if (err != status)
    test_fail(__FILE__, __LINE__, "%s: %d, expected %d", c->model, err, status);
  if (c->id == NULL) {
    CHECK(why != NULL);
    return;
  }
  CHECK_STR(name.id, c->id);
  CHECK_STR(name.revision, c->at);
}

TEST(K1_names_of_models_as_the_official_client_reads_them) {
  static const case_t cases[] = {
      {"Qwen/Qwen3-8B", NULL, NULL, "Qwen/Qwen3-8B", "main"},
      {"Qwen/Qwen3-8B:peft:128k", NULL, NULL, "Qwen/Qwen3-8B", "main"},
      {"gpt2", NULL, NULL, "gpt2", "main"},
      {"org/model/variant", NULL, NULL, "org/model", "main"},
      {"a/b/c/d", NULL, NULL, "a/b/c/d", "main"},
      {"meta-llama/Llama-3.1-8B", NULL, NULL, LLAMA, "main"},
      {"meta-llama/Llama-3.3-70B-Instruct:x", NULL, NULL, LLAMA, "main"},
      {"meta-llama/Llama-2-7b", NULL, NULL, "meta-llama/Llama-2-7b", "main"},
      {"meta-llama/Llama-3.1-8B", "some/tok", NULL, "some/tok", "main"},
      {"meta-llama/Llama-3.1-8B", "some/tok:v", NULL, "some/tok", "main"},
      {"a/b/c", "x/y/z", NULL, "x/y/z", "main"},
      {"Qwen/Qwen3-8B", NULL, "v2", "Qwen/Qwen3-8B", "v2"},
      {"moonshotai/Kimi-K2-Thinking", NULL, NULL, "moonshotai/Kimi-K2-Thinking",
       K2},
      {"moonshotai/Kimi-K2.5", NULL, NULL, "moonshotai/Kimi-K2.5", K25},
      {"moonshotai/Kimi-K2.5-Text-Only", NULL, NULL, "moonshotai/Kimi-K2.5",
       K25},
      {"x/y", "moonshotai/Kimi-K2.6", NULL, "moonshotai/Kimi-K2.6", K26},
      {"moonshotai/Kimi-K2.6:128k", NULL, NULL, "moonshotai/Kimi-K2.6", K26},
      {"moonshotai/Kimi-K3", NULL, NULL, "moonshotai/Kimi-K3", K3},
      {"moonshotai/Kimi-K3", NULL, "main", "moonshotai/Kimi-K3", "main"},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    check(&cases[i], NULL, 0, TNK_OK);
}

TEST(K5_tokenizers_that_are_not_public_are_refused) {
  check(&(case_t){"thinkingmachines/Inkling", NULL, NULL, NULL, NULL}, NULL, 0,
        TNK_EUNSUPPORTED);
  check(&(case_t){"a/b", "TML/x", NULL, NULL, NULL}, NULL, 0, TNK_EUNSUPPORTED);
  check(&(case_t){"thinkingmachineslabinc/x", NULL, NULL,
                  "thinkingmachineslabinc/x", "main"},
        NULL, 0, TNK_OK);
}

TEST(K2_rules_of_the_caller_come_first) {
  static const tnk_tokenizer_rule_t rules[] = {
      {.model = "meta-llama/Llama-3.2*", .tokenizer = "mine/llama"},
      {.model = "meta-llama/Llama-3*", .tokenizer = "mine/old-llama"},
      {.model = "Qwen/Qwen3-8B", .revision = "pinned"},
      {.model = "moonshotai/Kimi-K2.6", .revision = "newer"},
      {.model = "mine/alias", .tokenizer = "moonshotai/Kimi-K2.5"},
      {.model = "srv/tok", .tokenizer = "mine/tok", .revision = "r"},
      {.model = "TML/*", .directory = "/somewhere"},
  };
  static const case_t cases[] = {
      {"meta-llama/Llama-3.2-1B", NULL, NULL, "mine/llama", "main"},
      {"meta-llama/Llama-3.1-8B", NULL, NULL, "mine/old-llama", "main"},
      /* Also over what the server says. */
      {"meta-llama/Llama-3.1-8B", "srv/x", NULL, "mine/old-llama", "main"},
      {"Qwen/Qwen3-8B", NULL, NULL, "Qwen/Qwen3-8B", "pinned"},
      {"Qwen/Qwen3-8B", NULL, "asked", "Qwen/Qwen3-8B", "asked"},
      {"moonshotai/Kimi-K2.6", NULL, NULL, "moonshotai/Kimi-K2.6", "newer"},
      {"mine/alias", NULL, NULL, "moonshotai/Kimi-K2.5", K25},
      {"a/b", "srv/tok", NULL, "mine/tok", "r"},
      {"TML/x", NULL, NULL, "TML/x", "main"},
  };
  const size_t n = sizeof(rules) / sizeof(rules[0]);
  const char *why;
  tnk__name_t name;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    check(&cases[i], rules, n, TNK_OK);
  CHECK_INT(tnk__name_resolve(&name, "TML/x", NULL, NULL, rules, n, &why),
            TNK_OK);
  CHECK_STR(name.directory, "/somewhere");
}

TEST(K1_names_that_are_empty_or_too_long_are_refused) {
  char text[TNK__NAME_MAX + 2];

  memset(text, 'a', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  check(&(case_t){"", NULL, NULL, NULL, NULL}, NULL, 0, TNK_EINVAL);
  check(&(case_t){":x", NULL, NULL, NULL, NULL}, NULL, 0, TNK_EINVAL);
  check(&(case_t){text, NULL, NULL, NULL, NULL}, NULL, 0, TNK_EINVAL);
  check(&(case_t){"a", text, NULL, NULL, NULL}, NULL, 0, TNK_EINVAL);
  check(&(case_t){"a", NULL, text, NULL, NULL}, NULL, 0, TNK_EINVAL);
  for (int i = 0; i < 2; i++)
    check(&(case_t){"a", NULL, NULL, NULL, NULL},
          &(tnk_tokenizer_rule_t){.model = "a",
                                  .tokenizer = i == 0 ? text : NULL,
                                  .revision = i == 1 ? text : NULL},
          1, TNK_EINVAL);
  text[TNK__NAME_MAX] = '\0';
  check(&(case_t){text, NULL, text, text, text}, NULL, 0, TNK_OK);
}
