#ifndef TNK_GATEWAY_RECORD_VOCABULARY_H
#define TNK_GATEWAY_RECORD_VOCABULARY_H

#include <stdint.h>

#include "tnk/chat.h"

/* A number for what all ids of a tokenizer stand for, never 0. Two tokenizers
 * with the same one understand each other's ids. Decodes every id. */
uint64_t tnk__gw_vocabulary(const tnk_chat_tokenizer_t *tokenizer);

#endif
