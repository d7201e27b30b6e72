#ifndef TNK_BASE_OPTIONS_H
#define TNK_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copy a caller's sized options struct over `dst`, which the caller has filled
 * with defaults. `min` is the size the struct had when it was first released.
 *
 * Older caller: the fields it does not know keep their defaults. Newer
 * caller: accepted only while every byte we do not know is zero, else
 * TNK_ENOTSUP. NULL changes nothing.
 */
int tnk__options_load(void *dst, size_t dst_size, const void *src, size_t min);

#endif
