#ifndef TNK_GATEWAY_KEY_H
#define TNK_GATEWAY_KEY_H

#include <jansson.h>
#include <stdint.h>

/*
 * Conversations as numbers: what a client sends again is found by the hash of
 * what was said, message by message. Thinking does not count, as clients leave
 * it out, nor do the names of calls that are made up here.
 */

/* The key of a conversation without messages. `tools` may be NULL. */
uint64_t tnk__gw_key_begin(const json_t *tools);
/* The key with one message more. */
uint64_t tnk__gw_key_add(uint64_t key, const json_t *message);

#endif
