#ifndef TNK_TOOLS_LOCAL_CALL_SCAN_H
#define TNK_TOOLS_LOCAL_CALL_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The sequence number in the bytes of a ForwardBackwardRequest, or -1. It
 * parses only tags and lengths of the outermost fields. That is cheaper than
 * decoding a body before its fault is decided. */
int64_t local_scan_seq(const uint8_t *bytes, size_t n);

#endif
