#ifndef TNK_TASK_PUSH_PUSHED_H
#define TNK_TASK_PUSH_PUSHED_H

#include "tnk/push.h"

/* Copy a result into one piece of memory; texts that are NULL become "". NULL
 * without memory. */
tnk_pushed_t *tnk__pushed_copy(const tnk_allocator_t *alloc,
                               const tnk_pushed_t *pushed);
void tnk__pushed_free(const tnk_allocator_t *alloc, void *value);

#endif
