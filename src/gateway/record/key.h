/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_KEY_H
#define TNK_GATEWAY_RECORD_KEY_H

#include <jansson.h>
#include <stdint.h>

/*
 * Conversations as numbers. A client sends the earlier messages again; a hash
 * of these messages finds their turn. Thinking is not hashed, because clients
 * leave it out. Ids of calls are not hashed, because the gateway makes some of
 * them up.
 */

/* The key of a conversation without messages. `tools` may be NULL. */
uint64_t tnk__gw_key_begin(const json_t *tools);
/* The key of the same conversation with one more message. */
uint64_t tnk__gw_key_add(uint64_t key, const json_t *message);

#endif
