/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_FORMAT_FORMAT_H
#define TNK_TOKENIZERS_FORMAT_FORMAT_H

#include "tokenizers/model/tokenizer.h"

/* Each reader fills in an empty tokenizer. */

/* hf.c: tokenizer.json. */
int tnk__hf_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error);
/* tekken.c: Mistral's tekken.json. tnk__tekken_is() distinguishes it from a
 * tokenizer.json by its first members. */
int tnk__tekken_is(const uint8_t *data, size_t n);
int tnk__tekken_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                     tnk_tokenizer_error_t *error);
/* tiktoken.c: rank files. */
int tnk__tiktoken_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                       const tnk_tokenizer_options_t *options,
                       tnk_tokenizer_error_t *error);
/* config.c: tokenizer_config.json. Reads bos_token and eos_token. */
int tnk__config_names(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      tnk_tokenizer_error_t *error);

/* Reads added_tokens_decoder of the same file. Calls `put` for each token, with
 * TNK__ADDED_SPECIAL or 0. */
int tnk__config_added(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      int (*put)(tnk_tokenizer_t *tok, uint32_t id,
                                 const uint8_t *text, size_t n, unsigned flags),
                      tnk_tokenizer_error_t *error);

#endif
