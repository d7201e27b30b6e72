/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_MASK_H
#define TNK_CHAT_RENDER_MASK_H

#include "chat/render/ids.h"
#include "chat/render/prompt.h"

/* A part of a text. It starts where the previous one ends. */
typedef struct {
  size_t end;
  int32_t message; /* -1: none */
  float weight;
} tnk__cut_t;

/* The input of tnk__mask_cut(). */
typedef struct {
  const tnk__prompt_t *prompt;
  tnk__value_t messages;
  const float *weights;   /* one per message */
  const tnk__buf_t *text; /* of all messages */
  const tnk__buf_t *spans;
  int is_open; /* the text ends with the start of an answer */
  int each;    /* cut all messages, not only those with a weight */
} tnk__mask_t;

/*
 * Cut the text of a conversation at the contents of its messages. Each message
 * has two parts: the text before its content, with weight 0, and its content
 * including the end. The content of an answer is a generation block of the
 * template, if there are such blocks. Otherwise it is found by rendering the
 * messages up to it. The whole text must start with the result.
 *
 * Returns TNK_EUNSUPPORTED if that is not the case. Messages with weight 0 are
 * an exception: they are found in the whole text.
 */
int tnk__mask_cut(const tnk__mask_t *mask, tnk__buf_t *cuts, tnk__why_t *why);

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
