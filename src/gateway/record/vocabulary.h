/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_VOCABULARY_H
#define TNK_GATEWAY_RECORD_VOCABULARY_H

#include <stdint.h>

#include "tnk/chat.h"

/* A hash of the bytes of all ids of a tokenizer, never 0. Two tokenizers with
 * the same hash agree on the meaning of ids. Decodes every id. */
uint64_t tnk__gw_vocabulary(const tnk_chat_tokenizer_t *tokenizer);

#endif
