#ifndef TNK_LIB_FILES_PUSH_CARD_H
#define TNK_LIB_FILES_PUSH_CARD_H

#include "lib/base/buf.h"
#include "tnk/push.h"

#define TNK__PUSH_NAME 96 /* the longest name of a repository */

/* Append the model card. Failures stick to `out`. */
void tnk__push_card(tnk__buf_t *out, const char *repo,
                    const tnk_push_options_t *options);
/* Append an adapter's configuration with the model's name in it, as the
 * official command writes it; nothing where it names one already, or is no JSON
 * object. TNK_OK, TNK_ENOMEM, TNK_ETOOBIG. */
int tnk__push_config(tnk__buf_t *out, const char *text, size_t n,
                     const char *base_model);
/* Find the checkpoint of a card, its first tinker:// path: its length, 0: there
 * is none, or it is `own`. */
size_t tnk__push_find_other(const char *text, size_t n, const char *own,
                            const char **path);
/* Whether it is a name that can stand. */
int tnk__push_is_name(const char *text);
/* The repository, or the branch, that a checkpoint gets by default. */
void tnk__push_default_repo(char out[TNK__PUSH_NAME + 1],
                            const tnk_push_options_t *options);
void tnk__push_default_revision(char out[TNK__PUSH_NAME + 1],
                                const tnk_push_options_t *options);

#endif
