/* SPDX-License-Identifier: MIT */
#include "lib/store/seen.h"

#include <string.h>

_Static_assert((TNK__SEEN_SLOTS & (TNK__SEEN_SLOTS - 1)) == 0 &&
                   TNK__SEEN_SLOTS >= 2 * TNK__SEEN_MIN,
               "a set is at most half full, and a mask finds a slot");

/* FNV-1a with an additional mixing step. Collisions are harmless: only the
 * server can cause them, and it can omit a record anyway. */
static uint64_t fingerprint(const char *id) {
  uint64_t hash = UINT64_C(14695981039346656037);

  for (; *id != '\0'; id++)
    hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
  hash ^= hash >> 32;
  return hash != 0 ? hash : 1;
}

/* The slot of a fingerprint, or the free slot for it. */
static uint64_t *slot_of(uint64_t *set, uint64_t hash) {
  size_t i = (size_t)hash & (TNK__SEEN_SLOTS - 1);

  while (set[i] != 0 && set[i] != hash)
    i = (i + 1) & (TNK__SEEN_SLOTS - 1);
  return &set[i];
}

int tnk__seen_add(tnk__seen_t *seen, const char *id) {
  const uint64_t hash = fingerprint(id);

  if (*slot_of(seen->slots[0], hash) == hash ||
      *slot_of(seen->slots[1], hash) == hash)
    return 0;
  if (seen->n == TNK__SEEN_MIN) {
    memcpy(seen->slots[1], seen->slots[0], sizeof(seen->slots[0]));
    memset(seen->slots[0], 0, sizeof(seen->slots[0]));
    seen->n = 0;
  }
  *slot_of(seen->slots[0], hash) = hash;
  seen->n++;
  return 1;
}
