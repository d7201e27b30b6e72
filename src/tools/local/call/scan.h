#ifndef TNK_TOOLS_LOCAL_CALL_SCAN_H
#define TNK_TOOLS_LOCAL_CALL_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The sequence number in the bytes of a ForwardBackwardRequest, or -1. Looks at
 * no more than the tags and lengths of the outermost fields, which is cheaper
 * than to decode a body before a fault of it is decided on. */
int64_t local_scan_seq(const uint8_t *bytes, size_t n);

#endif
