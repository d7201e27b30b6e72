/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_RUNTIME_H
#define TNK_LIB_API_RUNTIME_H

#include "tnk/runtime.h"

/* Implements tnk_runtime_start() with an allocator. The allocator is copied,
 * and is called on every thread that posts. */
int tnk__runtime_start(tnk_runtime_t **out, const tnk_allocator_t *alloc);

#endif
