#ifndef TNK_TOKENIZERS_CONFIG_H
#define TNK_TOKENIZERS_CONFIG_H

#include "tokenizers/tokenizer.h"

/* tokenizer_config.json: take bos_token and eos_token from it. */
int tnk__config_names(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                      tnk_tokenizer_error_t *error);

#endif
