#ifndef TNK_LIB_FILES_PUSH_PUSHED_H
#define TNK_LIB_FILES_PUSH_PUSHED_H

#include <jansson.h>

#include "tnk/push.h"

/* Make a result in one allocation: the known members, and the id and address
 * from the commit's answer, which may be NULL. Unknown strings are "". NULL
 * without memory. */
tnk_pushed_t *tnk__pushed_new(const tnk_allocator_t *alloc,
                              const tnk_pushed_t *pushed, const json_t *answer);
void tnk__pushed_free(const tnk_allocator_t *alloc, void *value);

#endif
