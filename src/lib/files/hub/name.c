/* SPDX-License-Identifier: MIT */
#include "lib/files/hub/name.h"

#include <string.h>

#include "tnk/error.h"

/* Rules for model names, used if the server names no tokenizer. The first
 * matching row counts. The repository of Llama 3 requires a license
 * agreement. */
static const tnk_tokenizer_rule_t model_rules[] = {
    {.model = "meta-llama/Llama-3*",
     .tokenizer = "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"},
};

/* Rules for tokenizer ids, from the server or from a rule. Kimi's files are
 * pinned to a revision. */
static const tnk_tokenizer_rule_t id_rules[] = {
    {.model = "moonshotai/Kimi-K2-Thinking",
     .revision = "612681931a8c906ddb349f8ad0f582cb552189cd"},
    {.model = "moonshotai/Kimi-K2.5",
     .revision = "4d01dfe0332d63057c186e0b262165819efb6611"},
    {.model = "moonshotai/Kimi-K2.5-Text-Only",
     .tokenizer = "moonshotai/Kimi-K2.5",
     .revision = "4d01dfe0332d63057c186e0b262165819efb6611"},
    {.model = "moonshotai/Kimi-K2.6",
     .revision = "b5aabbfb20227ed42becbf5541dbffd213942c58"},
    {.model = "moonshotai/Kimi-K3",
     .revision = "f831ab66814297da540d832a5235f8e904f29d06"},
};

static const char *const private_prefixes[] = {"TML/", "thinkingmachines/"};

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* Match a name, or a prefix followed by a star. */
static int fits(const char *pattern, const char *name) {
  const size_t n = strlen(pattern);

  if (n > 0 && pattern[n - 1] == '*')
    return strncmp(pattern, name, n - 1) == 0;
  return strcmp(pattern, name) == 0;
}

static const tnk_tokenizer_rule_t *find(const tnk_tokenizer_rule_t *rules,
                                        size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (fits(rules[i].model, name))
      return &rules[i];
  return NULL;
}

/* Copy the name up to the first colon; the rest names a variant of the
 * weights. */
static int cut(char out[TNK__NAME_MAX + 1], const char *name) {
  const size_t n = strcspn(name, ":");

  if (n == 0 || n > TNK__NAME_MAX)
    return 0;
  memcpy(out, name, n);
  out[n] = '\0';
  return 1;
}

static int apply(tnk__name_t *out, const tnk_tokenizer_rule_t *rule) {
  if (rule == NULL)
    return 1;
  if (rule->tokenizer != NULL && !cut(out->id, rule->tokenizer))
    return 0;
  if (rule->revision != NULL) {
    if (strlen(rule->revision) > TNK__NAME_MAX)
      return 0;
    memcpy(out->revision, rule->revision, strlen(rule->revision) + 1);
  }
  out->directory = rule->directory;
  return 1;
}

/* "org/model/variant" is a variant of "org/model". */
static void drop_variant(char *id) {
  char *first = strchr(id, '/');
  char *second = first != NULL ? strchr(first + 1, '/') : NULL;

  if (second != NULL && strchr(second + 1, '/') == NULL)
    *second = '\0';
}

static int is_private(const char *id) {
  for (size_t i = 0; i < N(private_prefixes); i++)
    if (strncmp(id, private_prefixes[i], strlen(private_prefixes[i])) == 0)
      return 1;
  return 0;
}

/* Choose the id for a name; a matching rule of the caller is final. */
static int choose_id(tnk__name_t *out, const char *model,
                     const char *tokenizer_id,
                     const tnk_tokenizer_rule_t *rules, size_t n_rules,
                     int *is_final) {
  const tnk_tokenizer_rule_t *rule;

  *is_final = 0;
  if (!cut(out->id, model))
    return 0;
  rule = find(rules, n_rules, out->id);
  if (rule != NULL) {
    *is_final = rule->tokenizer != NULL || rule->directory != NULL;
    return apply(out, rule);
  }
  if (tokenizer_id != NULL)
    return cut(out->id, tokenizer_id);
  rule = find(model_rules, N(model_rules), out->id);
  if (rule == NULL)
    drop_variant(out->id);
  return apply(out, rule);
}

int tnk__name_resolve(tnk__name_t *out, const char *model,
                      const char *tokenizer_id, const char *revision,
                      const tnk_tokenizer_rule_t *rules, size_t n_rules,
                      const char **why) {
  const tnk_tokenizer_rule_t *rule = NULL;
  int is_final;

  memset(out, 0, sizeof(*out));
  *why = "the model's name, or its tokenizer's, is empty or too long";
  if (!choose_id(out, model, tokenizer_id, rules, n_rules, &is_final))
    return TNK_EINVAL;
  if (!is_final)
    rule = find(rules, n_rules, out->id);
  if (rule == NULL && out->revision[0] == '\0')
    rule = find(id_rules, N(id_rules), out->id);
  if (!apply(out, rule))
    return TNK_EINVAL;
  if (revision != NULL) {
    if (strlen(revision) > TNK__NAME_MAX)
      return TNK_EINVAL;
    memcpy(out->revision, revision, strlen(revision) + 1);
  }
  if (out->revision[0] == '\0')
    memcpy(out->revision, "main", sizeof("main"));
  *why = "its tokenizer is not public; a rule may name a folder that has it";
  return out->directory == NULL && is_private(out->id) ? TNK_EUNSUPPORTED
                                                       : TNK_OK;
}
