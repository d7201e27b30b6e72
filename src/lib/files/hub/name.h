#ifndef TNK_LIB_FILES_HUB_NAME_H
#define TNK_LIB_FILES_HUB_NAME_H

#include "tnk/hub.h"

#define TNK__NAME_MAX 200

/* Where the tokenizer of a model is. */
typedef struct {
  char id[TNK__NAME_MAX + 1];
  char revision[TNK__NAME_MAX + 1];
  const char *directory; /* instead of the hub; the rule's, or NULL */
} tnk__name_t;

/*
 * Turn the name of a model into that of its tokenizer. Protocol: session,
 * tokenizer choice.
 *
 * The caller's rules come first: for the model's name, then for the id that
 * follows from it. `tokenizer_id` and `revision` may be NULL. TNK_OK; or
 * TNK_EINVAL (empty, or too long), TNK_EUNSUPPORTED (not to be had from a
 * hub), with *why.
 */
int tnk__name_resolve(tnk__name_t *out, const char *model,
                      const char *tokenizer_id, const char *revision,
                      const tnk_tokenizer_rule_t *rules, size_t n_rules,
                      const char **why);

#endif
