/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_BRIDGE_H
#define TNK_CHAT_RENDER_BRIDGE_H

#include "chat/render/ids.h"
#include "chat/render/prompt.h"

/*
 * The text after an answer: its end, the messages from `first` on, and the
 * start of the next answer. It is found by comparing two conversations. One
 * ends with an answer, and the other continues with the new messages. Both
 * start with the messages before the answer. Without such messages, or if the
 * template rejects them, both start with a minimal beginning.
 *
 * The first conversation must start with the text that starts an answer, and
 * the second one with the whole first one. Otherwise the template later writes
 * answers differently, so the sampled ids cannot be kept. The result is then
 * TNK_EUNSUPPORTED. *n_ending is how many bytes at the start of the text are
 * the end of the answer.
 */
int tnk__bridge_text(const tnk__prompt_t *prompt, tnk__value_t messages,
                     size_t first, tnk__buf_t *out, size_t *n_ending,
                     tnk__why_t *why);

/* The ids of that text, without the part that was already sampled: the text
 * that ends answers. */
int tnk__bridge_ids(const tnk__prompt_t *prompt, const tnk__coder_t *coder,
                    const int32_t *so_far, size_t n_so_far,
                    const tnk__buf_t *text, size_t n_ending, tnk__buf_t *ids,
                    tnk__why_t *why);

#endif
