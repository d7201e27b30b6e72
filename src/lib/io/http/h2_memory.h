#ifndef TNK_LIB_IO_HTTP_H2_MEMORY_H
#define TNK_LIB_IO_HTTP_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

#include "tnk/common.h"

enum { TNK__H2_SIZES = 64 };

/* nghttp2's memory on one connection. All of it is wiped when it is given back,
 * for it holds credentials. */
typedef struct {
  const tnk_allocator_t *alloc;
  struct tnk__h2_block *kept[TNK__H2_SIZES]; /* for the next of that size */
  size_t n_kept;                             /* bytes of them */
  int was_refused; /* there was no memory, which nghttp2 does not always say */
} tnk__h2_memory_t;

void tnk__h2_memory_init(tnk__h2_memory_t *memory,
                         const tnk_allocator_t *alloc);
/* Free what is kept, when nghttp2 has given everything back. */
void tnk__h2_memory_deinit(tnk__h2_memory_t *memory);
/* The functions by which nghttp2 gets it; `memory` stays where it is. */
nghttp2_mem tnk__h2_memory_for_nghttp2(tnk__h2_memory_t *memory);

#endif
