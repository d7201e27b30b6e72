/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_RENDER_IDS_H
#define TNK_CHAT_RENDER_IDS_H

#include "chat/value/value.h"
#include "lib/base/buf.h"
#include "tnk/text.h"

/* A tokenizer. Its plug-in is copied into the struct of this library's
 * version. */
typedef struct {
  tnk_tokenizer_plugin_t calls;
  const void *tokenizer;
  /* For the text that is encoded. NULL: all control tokens in it count. */
  const tnk__buf_t *controls; /* tnk__control_t, sorted bytewise */
  const tnk__buf_t *barriers; /* size_t, ascending: offsets in the text */
} tnk__coder_t;

/* A token that the tokenizer searches for before anything else. */
typedef struct {
  const char *text;
  size_t n;
  int32_t id;
} tnk__control_t;

/* A buffer of ids, int32_t. */
static inline const int32_t *tnk__ids(const tnk__buf_t *ids) {
  return (const int32_t *)(const void *)ids->data;
}
static inline size_t tnk__n_ids(const tnk__buf_t *ids) {
  return ids->len / sizeof(int32_t);
}

/* Append the ids of [begin, end) of a text. Control tokens with a barrier
 * inside are plain text; others count. */
int tnk__ids_encode(const tnk__coder_t *coder, const tnk__buf_t *text,
                    size_t begin, size_t end, tnk__buf_t *ids, tnk__why_t *why);
/* The same for a range that has text before it, of which `text` need not hold
 * anything. Tokenizers that add a blank to the start of a text add none. */
int tnk__ids_continue(const tnk__coder_t *coder, const tnk__buf_t *text,
                      size_t begin, size_t end, tnk__buf_t *ids,
                      tnk__why_t *why);
/* Append the bytes of ids. */
int tnk__ids_decode(const tnk__coder_t *coder, const int32_t *ids, size_t n,
                    tnk__buf_t *bytes, tnk__why_t *why);
/* Append the end of each id in the text as a size_t. Appends nothing if the
 * bytes of the ids differ from the text, because the tokenizer has changed
 * it. */
int tnk__ids_ends(const tnk__coder_t *coder, const tnk__buf_t *ids,
                  const char *text, size_t n, tnk__buf_t *ends,
                  tnk__why_t *why);

#endif
