#ifndef TNK_LIB_WIRE_DATA_DMEL_H
#define TNK_LIB_WIRE_DATA_DMEL_H

#include <stddef.h>
#include <stdint.h>

/* The number of tokens of a dMel chunk, from the head of its container. The
 * service reads the rest. Returns -1 for other data, with the end of a sentence
 * in `why`, which may be NULL. Protocol: protobuf, dmel header. */
int64_t tnk__dmel_length(const void *bytes, size_t n, const char **why);

#endif
