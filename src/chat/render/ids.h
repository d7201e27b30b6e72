#ifndef TNK_CHAT_RENDER_IDS_H
#define TNK_CHAT_RENDER_IDS_H

#include "base/buf.h"
#include "chat/value/why.h"
#include "tnk/text.h"

/* A tokenizer, its plug-in in the size that this library knows. */
typedef struct {
  tnk_tokenizer_plugin_t calls;
  const void *tokenizer;
} tnk__coder_t;

/* A buffer of ids, int32_t. */
static inline const int32_t *tnk__ids(const tnk__buf_t *ids) {
  return (const int32_t *)(const void *)ids->data;
}
static inline size_t tnk__n_ids(const tnk__buf_t *ids) {
  return ids->len / sizeof(int32_t);
}

/* Append the ids of a text, in which special tokens are such. */
int tnk__ids_encode(const tnk__coder_t *coder, const char *text, size_t n,
                    tnk__buf_t *ids, tnk__why_t *why);
/* Append the bytes of ids. */
int tnk__ids_decode(const tnk__coder_t *coder, const int32_t *ids, size_t n,
                    tnk__buf_t *bytes, tnk__why_t *why);
/* Append where each id ends in the text, as size_t, or nothing where the bytes
 * of the ids are not those of the text, which a tokenizer may have changed. */
int tnk__ids_ends(const tnk__coder_t *coder, const tnk__buf_t *ids,
                  const char *text, size_t n, tnk__buf_t *ends,
                  tnk__why_t *why);

#endif
