#ifndef TNK_TOOLS_LOCAL_FUTURE_RESULT_JSON_H
#define TNK_TOOLS_LOCAL_FUTURE_RESULT_JSON_H

#include "lib/base/buf.h"

/* Append a result, given in protobuf, in the JSON form of old servers. Failures
 * stick to the buffer. */
void local_result_json(tnk__buf_t *out, int is_sample, const uint8_t *proto,
                       size_t n);

#endif
