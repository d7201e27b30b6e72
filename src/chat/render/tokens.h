#ifndef TNK_CHAT_RENDER_TOKENS_H
#define TNK_CHAT_RENDER_TOKENS_H

#include "chat/render/ids.h"
#include "chat/render/mask.h"

/* Ids with what is known of each: as many of the others as of ids. */
typedef struct {
  tnk__buf_t ids;      /* int32_t */
  tnk__buf_t weights;  /* float */
  tnk__buf_t messages; /* int32_t; -1: of none */
} tnk__marked_t;

void tnk__marked_init(tnk__marked_t *marked, const tnk_allocator_t *alloc);
void tnk__marked_deinit(tnk__marked_t *marked);
void tnk__marked_clear(tnk__marked_t *marked);
/* Give all ids that have no weight one, and a message. */
int tnk__marked_fill(tnk__marked_t *marked, float weight, int32_t message,
                     tnk__why_t *why);

/* Append the ids of a text that was cut, tokenized as a whole: where the weight
 * changes, a token must end. */
int tnk__tokens_whole(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why);
/* The same, each piece tokenized apart. */
int tnk__tokens_parts(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why);

#endif
