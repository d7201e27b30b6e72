/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_SCAN_H
#define TNK_LIB_WIRE_FORMAT_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The index of the first invalid element, or n. This runs at the speed of
 * memory: whole blocks are tested, and only a block with a fault is searched.
 * Here a negative element is invalid. */
size_t tnk__scan_negative(const int32_t *values, size_t n);
/* Elements below 0 or above INT32_MAX are invalid. */
size_t tnk__scan_no_id(const int64_t *values, size_t n);
size_t tnk__scan_not_finite(const float *values, size_t n);

#endif
