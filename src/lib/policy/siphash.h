/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_SIPHASH_H
#define TNK_LIB_POLICY_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 with a 128-bit key. Without the key, the hash reveals nothing
 * about the data and collisions cannot be constructed. */
uint64_t tnk__siphash(const uint64_t key[2], const void *data, size_t n);

#endif
