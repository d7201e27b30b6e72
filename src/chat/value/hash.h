#ifndef TNK_CHAT_VALUE_HASH_H
#define TNK_CHAT_VALUE_HASH_H

#include <stddef.h>

#include "chat/value/value.h"

/* Equal values have equal hashes: 1, 1.0 and True are one key. */
size_t tnk__value_hash(tnk__value_t value);

#endif
