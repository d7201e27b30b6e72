/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_SEEN_H
#define TNK_LIB_STORE_SEEN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The ids of the latest records of a list: at least TNK__SEEN_MIN, at most
 * twice as many. Two sets of fingerprints. When one is full, the other is
 * emptied.
 */
enum { TNK__SEEN_MIN = 1024, TNK__SEEN_SLOTS = 2048 };

typedef struct {
  uint64_t slots[2][TNK__SEEN_SLOTS]; /* 0: free */
  size_t n;                           /* in the first, newer set */
} tnk__seen_t;

/* Add an id. Returns 0 if it was present. Zeroed memory is an empty set. */
int tnk__seen_add(tnk__seen_t *seen, const char *id);

#endif
