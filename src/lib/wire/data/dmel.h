#ifndef TNK_LIB_WIRE_DATA_DMEL_H
#define TNK_LIB_WIRE_DATA_DMEL_H

#include <stddef.h>
#include <stdint.h>

/* The number of tokens that a dMel chunk stands for, read from the head of its
 * container; the rest is the service's. -1 with half a sentence in `why`, which
 * may be NULL, when it is none. Protocol: protobuf, dmel header. */
int64_t tnk__dmel_length(const void *bytes, size_t n, const char **why);

#endif
