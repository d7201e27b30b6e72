/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_NAME_H
#define TNK_LIB_FILES_HUB_NAME_H

#include "tnk/hub.h"

#define TNK__NAME_MAX 200

/* The place of a model's tokenizer. */
typedef struct {
  char id[TNK__NAME_MAX + 1];
  char revision[TNK__NAME_MAX + 1];
  const char *directory; /* used instead of the hub; from a rule, or NULL */
} tnk__name_t;

/*
 * Determine the tokenizer of a model. Protocol: session, tokenizer choice.
 *
 * The caller's rules have priority: first for the model's name, then for the id
 * that results from it. `tokenizer_id` and `revision` may be NULL. Returns
 * TNK_OK, TNK_EINVAL (empty or too long) or TNK_EUNSUPPORTED (not available
 * from a hub), with the reason in *why.
 */
int tnk__name_resolve(tnk__name_t *out, const char *model,
                      const char *tokenizer_id, const char *revision,
                      const tnk_tokenizer_rule_t *rules, size_t n_rules,
                      const char **why);

#endif
