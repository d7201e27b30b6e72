/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_SLICER_H
#define TNK_LIB_POLICY_SLICER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Splits a list of items into chunks by number and by bytes, in order and in
 * one pass. No chunk is empty. An item over the byte limit gets its own chunk.
 */
typedef struct {
  uint64_t max_items; /* 0 counts as 1 */
  uint64_t max_bytes; /* limit of a chunk with more than one item */
  size_t n_items;     /* items in the current chunk */
  uint64_t n_bytes;   /* bytes in the current chunk */
} tnk__slicer_t;

/* Begin with an empty chunk. A max_items of 0 counts as 1. */
void tnk__slicer_init(tnk__slicer_t *slicer, uint64_t max_items,
                      uint64_t max_bytes);
/* Add the next item. Returns 1 if it begins a new chunk, as the first item
 * does. */
int tnk__slicer_add(tnk__slicer_t *slicer, uint64_t n_bytes);

#endif
