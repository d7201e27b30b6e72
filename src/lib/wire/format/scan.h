#ifndef TNK_LIB_WIRE_FORMAT_SCAN_H
#define TNK_LIB_WIRE_FORMAT_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The index of the first element that is wrong, or n. At the speed of memory:
 * whole blocks are tested at once, and only one that is not clean is looked
 * at. */
size_t tnk__scan_negative(const int32_t *values, size_t n);
/* Wrong is what is below 0 or over INT32_MAX. */
size_t tnk__scan_no_id(const int64_t *values, size_t n);
size_t tnk__scan_not_finite(const float *values, size_t n);

#endif
