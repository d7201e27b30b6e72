/* SPDX-License-Identifier: MIT */
/* The list of rules, and the selection. */
#include <stdio.h>
#include <string.h>

#include "tools/conform/state.h"

static const conform_group_t *const groups[] = {
    &conform_http,     &conform_calls,   &conform_session,  &conform_model,
    &conform_sequence, &conform_futures, &conform_training, &conform_weights,
    &conform_files,    &conform_sampler, &conform_sampling, &conform_rest,
    &conform_end};

const conform_group_t *conform_group_at(size_t i) {
  return i < sizeof(groups) / sizeof(*groups) ? groups[i] : NULL;
}

static int item_names(const char *item, size_t n, const char *id) {
  if (n > 0 && item[n - 1] == '*')
    return strncmp(item, id, n - 1) == 0;
  return strlen(id) == n && memcmp(item, id, n) == 0;
}

int conform_is_chosen(const conform_t *c, const conform_rule_t *rule) {
  const char *only = c->options.only;

  if (only == NULL)
    return 1;
  while (*only != '\0') {
    size_t n = strcspn(only, ",");

    if (item_names(only, n, rule->id))
      return 1;
    only += n + (only[n] == ',');
  }
  return 0;
}

/* Each item of `only` must name a rule, because a run without rules would look
 * like a success. */
int conform_check_rules(conform_t *c) {
  const char *only = c->options.only;

  while (only != NULL && *only != '\0') {
    size_t n = strcspn(only, ",");
    int is_known = 0;

    for (size_t i = 0; conform_group_at(i) != NULL; i++)
      for (size_t k = 0; k < conform_group_at(i)->n; k++)
        is_known |= item_names(only, n, conform_group_at(i)->rules[k].id);
    if (!is_known) {
      snprintf(c->complaint, sizeof(c->complaint),
               "there is no rule \"%.*s\": --list names them", (int)n, only);
      return CONFORM_USAGE;
    }
    only += n + (only[n] == ',');
  }
  return CONFORM_OK;
}
