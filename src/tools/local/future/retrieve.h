/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_FUTURE_RETRIEVE_H
#define TNK_TOOLS_LOCAL_FUTURE_RETRIEVE_H

#include "lib/base/buf.h"

/* Append a protobuf result in the JSON format of older servers. Errors are kept
 * in the buffer. */
void local_result_json(tnk__buf_t *out, int is_sample, const uint8_t *proto,
                       size_t n);

#endif
