/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_CARD_H
#define TNK_LIB_FILES_PUSH_CARD_H

#include "lib/base/buf.h"
#include "tnk/push.h"

#define TNK__PUSH_NAME 96 /* maximum length of a repository's name */

/* Append the model card. Errors are kept in `out`. */
void tnk__push_card(tnk__buf_t *out, const char *repo,
                    const tnk_push_options_t *options);
/* Append an adapter's configuration with the name of the base model, as the
 * official command does. Appends nothing if it has a name already, or is not a
 * JSON object. TNK_OK, TNK_ENOMEM, TNK_ETOOBIG. */
int tnk__push_config(tnk__buf_t *out, const char *text, size_t n,
                     const char *base_model);
/* Find the checkpoint of a card: its first tinker:// path. Returns its length;
 * 0 if there is no path, or if it is `own`. */
size_t tnk__push_find_other(const char *text, size_t n, const char *own,
                            const char **path);
/* Returns whether it is a valid name. */
int tnk__push_is_name(const char *text);
/* The default name of a checkpoint's repository or branch. */
void tnk__push_default_repo(char out[TNK__PUSH_NAME + 1],
                            const tnk_push_options_t *options);
void tnk__push_default_revision(char out[TNK__PUSH_NAME + 1],
                                const tnk_push_options_t *options);

#endif
