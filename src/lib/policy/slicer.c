/* SPDX-License-Identifier: MIT */
#include "lib/policy/slicer.h"

void tnk__slicer_init(tnk__slicer_t *slicer, uint64_t max_items,
                      uint64_t max_bytes) {
  slicer->max_items = max_items;
  slicer->max_bytes = max_bytes;
  slicer->n_items = 0;
  slicer->n_bytes = 0;
}

/* Returns whether n_bytes more stay within the limit, without overflow. */
static int fits(const tnk__slicer_t *slicer, uint64_t n_bytes) {
  return slicer->n_items < slicer->max_items &&
         slicer->n_bytes <= slicer->max_bytes &&
         n_bytes <= slicer->max_bytes - slicer->n_bytes;
}

int tnk__slicer_add(tnk__slicer_t *slicer, uint64_t n_bytes) {
  int begins = slicer->n_items == 0 || !fits(slicer, n_bytes);

  if (begins) {
    slicer->n_items = 0;
    slicer->n_bytes = 0;
  }
  slicer->n_items++;
  slicer->n_bytes += n_bytes;
  return begins;
}
