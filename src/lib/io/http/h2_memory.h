#ifndef TNK_LIB_IO_HTTP_H2_MEMORY_H
#define TNK_LIB_IO_HTTP_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

#include "tnk/common.h"

enum { TNK__H2_SIZES = 64 };

/* The allocator of nghttp2 on one connection. Freed memory is wiped, because it
 * holds credentials. */
typedef struct {
  const tnk_allocator_t *alloc;
  /* Freed blocks, kept for the next allocation of their size. */
  struct tnk__h2_block *kept[TNK__H2_SIZES];
  size_t n_kept; /* bytes in kept blocks */
  /* an allocation failed; nghttp2 does not always report that */
  int was_refused;
} tnk__h2_memory_t;

void tnk__h2_memory_init(tnk__h2_memory_t *memory,
                         const tnk_allocator_t *alloc);
/* Free the kept blocks. nghttp2 must have freed everything. */
void tnk__h2_memory_deinit(tnk__h2_memory_t *memory);
/* The allocation functions for nghttp2. `memory` must not move. */
nghttp2_mem tnk__h2_memory_for_nghttp2(tnk__h2_memory_t *memory);

#endif
