#ifndef TNK_CHAT_RENDER_BRIDGE_H
#define TNK_CHAT_RENDER_BRIDGE_H

#include "chat/render/ids.h"
#include "chat/render/prompt.h"

/*
 * The text that follows an answer: what ends it, the messages from `first` on,
 * and what begins the next answer. Two conversations tell it: one that ends
 * with an answer, and the same with the new messages behind. They begin with
 * the messages before the answer, or, where there are none or the template
 * refuses them, with a small one. The first must begin with what begins an
 * answer, and the second with the first; where either does not hold the
 * template writes answers differently later on, and what was sampled cannot
 * stay. Then TNK_EUNSUPPORTED.
 */
int tnk__bridge_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t first, tnk__buf_t *out, tnk__why_t *why);

/* The ids of that text without what was sampled of it already: a text that ends
 * answers. */
int tnk__bridge_ids(const tnk__prompt_t *prompt, const tnk__coder_t *coder,
                    const int32_t *so_far, size_t n_so_far,
                    const tnk__buf_t *text, tnk__buf_t *ids, tnk__why_t *why);

#endif
