#include "tokenizers/sp.h"

/* This build has no SentencePiece: the functions that a loaded model would
 * reach are never called. */
int tnk__sp_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 const tnk_tokenizer_options_t *options,
                 tnk_tokenizer_error_t *error) {
  (void)tok;
  (void)data;
  (void)n;
  (void)options;
  return tnk__fault(error, TNK_EUNSUPPORTED, 0,
                    "SentencePiece models: this build of the library was "
                    "made without SentencePiece");
}

int tnk__sp_pieces(const tnk_tokenizer_t *tok, const uint8_t *text, size_t n,
                   int with_places,
                   int (*put)(void *user, int32_t id, size_t begin, size_t end),
                   void *user) {
  (void)tok;
  (void)text;
  (void)n;
  (void)with_places;
  (void)put;
  (void)user;
  return TNK_EUNSUPPORTED;
}

int tnk__sp_text(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                 unsigned flags, tnk__buf_t *out) {
  (void)tok;
  (void)ids;
  (void)n;
  (void)flags;
  (void)out;
  return TNK_EUNSUPPORTED;
}

int tnk__sp_push(const tnk_tokenizer_t *tok, tnk__sp_stream_t *stream,
                 const int32_t *ids, size_t n, unsigned flags, int at_end,
                 tnk__buf_t *out) {
  (void)tok;
  (void)stream;
  (void)ids;
  (void)n;
  (void)flags;
  (void)at_end;
  (void)out;
  return TNK_EUNSUPPORTED;
}
