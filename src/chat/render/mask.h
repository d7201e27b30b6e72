/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_MASK_H
#define TNK_CHAT_RENDER_MASK_H

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

#endif
