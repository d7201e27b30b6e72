#ifndef TNK_LIB_API_RUNTIME_H
#define TNK_LIB_API_RUNTIME_H

#include "tnk/runtime.h"

/* Do what tnk_runtime_start() does, with an allocator; it is copied, and called
 * from every thread that posts. */
int tnk__runtime_start(tnk_runtime_t **out, const tnk_allocator_t *alloc);

#endif
