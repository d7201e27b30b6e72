#ifndef TNK_LIB_POLICY_SLICER_H
#define TNK_LIB_POLICY_SLICER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Cuts a row of items into slices by number and by bytes, in order and in one
 * go. No slice is empty; an item over the byte limit gets a slice of its own.
 */
typedef struct {
  size_t max_items;   /* 0 is as good as 1: a slice has one */
  uint64_t max_bytes; /* of a slice with more than one item */
  size_t n_items;     /* in the slice being filled */
  uint64_t n_bytes;   /* in it, too */
} tnk__slicer_t;

/* Begin with nothing. A max_items of 0 counts as 1. */
void tnk__slicer_init(tnk__slicer_t *slicer, size_t max_items,
                      uint64_t max_bytes);
/* Add the next item; 1 when it begins a new slice, as the first item does. */
int tnk__slicer_add(tnk__slicer_t *slicer, uint64_t n_bytes);

#endif
