/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_TOKENS_H
#define TNK_CHAT_RENDER_TOKENS_H

#include "chat/render/ids.h"
#include "chat/render/mask.h"

/* Ids with a weight and a message for each. */
typedef struct {
  tnk__buf_t ids;      /* int32_t */
  tnk__buf_t weights;  /* float */
  tnk__buf_t messages; /* int32_t; -1: none */
} tnk__marked_t;

void tnk__marked_init(tnk__marked_t *marked, const tnk_allocator_t *alloc);
void tnk__marked_deinit(tnk__marked_t *marked);
void tnk__marked_clear(tnk__marked_t *marked);
/* Set the weight and the message of all ids that have none. */
int tnk__marked_fill(tnk__marked_t *marked, float weight, int32_t message,
                     tnk__why_t *why);

/* Append the ids of a text with cuts, tokenized as a whole. A token must end
 * where the weight changes. */
int tnk__tokens_whole(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why);
/* The same, with each part tokenized separately. */
int tnk__tokens_parts(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why);

#endif
