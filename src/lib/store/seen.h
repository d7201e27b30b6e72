#ifndef TNK_LIB_STORE_SEEN_H
#define TNK_LIB_STORE_SEEN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The ids of the records that a list has given so far, as far as they matter:
 * of those that came last, TNK__SEEN_MIN at least and twice as many at most.
 * Two sets of fingerprints; when one is full the other is forgotten.
 */
enum { TNK__SEEN_MIN = 1024, TNK__SEEN_SLOTS = 2048 };

typedef struct {
  uint64_t slots[2][TNK__SEEN_SLOTS]; /* 0: free */
  size_t n; /* in the first set, which is the newer one */
} tnk__seen_t;

/* Add an id. 0: it was there already. Zeroed memory is an empty one. */
int tnk__seen_add(tnk__seen_t *seen, const char *id);

#endif
