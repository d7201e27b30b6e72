/* SPDX-License-Identifier: MIT */
#include "tokenizers/sentencepiece/sp.h"

/* Built without SentencePiece. */
int tnk__sp_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error) {
  (void)tok;
  (void)data;
  (void)n;
  return tnk__fault(error, TNK_EUNSUPPORTED, 0,
                    "SentencePiece models: this build of the library was "
                    "made without SentencePiece");
}
