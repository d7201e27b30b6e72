#ifndef TNK_FLOW_CHUNK_H
#define TNK_FLOW_CHUNK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Cuts a row of items into slices by number and by bytes, in order and in one
 * go. No slice is empty; an item over the byte limit gets a slice of its own.
 */
typedef struct {
  size_t max_items;   /* at least 1 */
  uint64_t max_bytes; /* of a slice with more than one item */
  size_t n_items;     /* in the slice being filled */
  uint64_t n_bytes;   /* in it, too */
} tnk__chunker_t;

/* Begin with nothing. A max_items of 0 counts as 1. */
void tnk__chunker_init(tnk__chunker_t *chunker, size_t max_items,
                       uint64_t max_bytes);
/* Add the next item; 1 when it begins a new slice, as the first item does. */
int tnk__chunker_add(tnk__chunker_t *chunker, uint64_t n_bytes);

#endif
