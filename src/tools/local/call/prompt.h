#ifndef TNK_TOOLS_LOCAL_CALL_PROMPT_H
#define TNK_TOOLS_LOCAL_CALL_PROMPT_H

#include <jansson.h>

#include "lib/base/arena.h"
#include "tools/local/lm/lm.h"

/* Copy the tokens of a JSON prompt {"chunks": [...]} into the arena. Returns
 * TNK_EINVAL with the reason, or TNK_ENOMEM. */
int local_tokens_json(tnk__arena_t *arena, const json_t *input,
                      const int32_t **out, size_t *n, tnk__lm_why_t *why);

#endif
