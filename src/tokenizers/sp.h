#ifndef TNK_TOKENIZERS_SP_H
#define TNK_TOKENIZERS_SP_H

#include "tokenizers/tokenizer.h"

/*
 * SentencePiece models behind the functions of tnk/tokenizers.h. Without the
 * shim (see meson.build) loading one says so.
 */
int tnk__sp_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 const tnk_tokenizer_options_t *options,
                 tnk_tokenizer_error_t *error);
/* The pieces of valid UTF-8, one by one, with their places; `put` may end it
 * with a negative code. */
int tnk__sp_pieces(const tnk_tokenizer_t *tok, const uint8_t *text, size_t n,
                   int with_places,
                   int (*put)(void *user, int32_t id, size_t begin, size_t end),
                   void *user);
/* The whole text of ids, appended. */
int tnk__sp_text(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                 unsigned flags, tnk__buf_t *out);

/* A stream of ids. `pending` has ids that cannot be decoded yet. */
typedef struct {
  tnk__buf_t pending; /* int32_t */
  int begun;          /* some text came out: blanks at the front are kept */
} tnk__sp_stream_t;

/* Take ids in, append the text that is certain; all of it at the end. On
 * failure nothing was taken and `out` is to be thrown away. */
int tnk__sp_push(const tnk_tokenizer_t *tok, tnk__sp_stream_t *stream,
                 const int32_t *ids, size_t n, unsigned flags, int at_end,
                 tnk__buf_t *out);

#endif
