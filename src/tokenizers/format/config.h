#ifndef TNK_TOKENIZERS_FORMAT_CONFIG_H
#define TNK_TOKENIZERS_FORMAT_CONFIG_H

#include "tokenizers/model/tokenizer.h"

/* Take bos_token and eos_token from tokenizer_config.json. */
int tnk__config_names(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      tnk_tokenizer_error_t *error);

/* Give each token of the same file's added_tokens_decoder to `put`, with
 * TNK__ADDED_SPECIAL or 0. */
int tnk__config_added(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      int (*put)(tnk_tokenizer_t *tok, uint32_t id,
                                 const uint8_t *text, size_t n, unsigned flags),
                      tnk_tokenizer_error_t *error);

#endif
