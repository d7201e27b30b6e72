#include "flow/chunk.h"

void tnk__chunker_init(tnk__chunker_t *chunker, size_t max_items,
                       uint64_t max_bytes) {
  chunker->max_items = max_items > 0 ? max_items : 1;
  chunker->max_bytes = max_bytes;
  chunker->n_items = 0;
  chunker->n_bytes = 0;
}

/* Whether n_bytes more stay within the limit, without overflow. */
static int fits(const tnk__chunker_t *chunker, uint64_t n_bytes) {
  return chunker->n_items < chunker->max_items &&
         chunker->n_bytes <= chunker->max_bytes &&
         n_bytes <= chunker->max_bytes - chunker->n_bytes;
}

int tnk__chunker_add(tnk__chunker_t *chunker, uint64_t n_bytes) {
  int begins = chunker->n_items == 0 || !fits(chunker, n_bytes);

  if (begins) {
    chunker->n_items = 0;
    chunker->n_bytes = 0;
  }
  chunker->n_items++;
  chunker->n_bytes += n_bytes;
  return begins;
}
