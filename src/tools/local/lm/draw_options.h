#ifndef TNK_TOOLS_LOCAL_LM_DRAW_OPTIONS_H
#define TNK_TOOLS_LOCAL_LM_DRAW_OPTIONS_H

#include "lib/base/arena.h"
#include "tools/local/lm/lm.h"

/* Check options: returns TNK_EINVAL with a message for invalid ones. */
int tnk__lm_draw_check(const tnk__lm_draw_options_t *o, tnk__lm_why_t *why);
/* Replace all arrays by copies in the arena; returns 0 without memory. */
int tnk__lm_draw_copy(tnk__lm_draw_options_t *o, tnk__arena_t *arena);

#endif
