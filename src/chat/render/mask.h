#ifndef TNK_CHAT_RENDER_MASK_H
#define TNK_CHAT_RENDER_MASK_H

#include "chat/render/prompt.h"

/* A piece of a text, which begins where the one before it ends. */
typedef struct {
  size_t end;
  int32_t message; /* -1: of none */
  float weight;
} tnk__cut_t;

/* What is to be cut. */
typedef struct {
  const tnk__prompt_t *prompt;
  tnk__value_t messages;
  const float *weights;   /* one a message */
  const tnk__buf_t *text; /* of all messages */
  const tnk__buf_t *spans;
  int is_open; /* the text ends with what begins an answer */
  int each;    /* all messages are to be cut, not only those with a weight */
} tnk__mask_t;

/*
 * Cut the text of a conversation at what its messages say: each message is what
 * stands before its words, of weight 0, and its words with what ends them.
 * Those of an answer are what the template calls so with a generation block;
 * else they are found by rendering the messages up to it, which must give the
 * beginning of the text. TNK_EUNSUPPORTED where that does not hold, but for
 * messages of which nothing is learnt: those are found where they stand in the
 * whole.
 */
int tnk__mask_cut(const tnk__mask_t *mask, tnk__buf_t *cuts, tnk__why_t *why);

#endif
