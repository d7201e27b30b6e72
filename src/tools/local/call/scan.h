/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_CALL_SCAN_H
#define TNK_TOOLS_LOCAL_CALL_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "tools/local/call/call.h"

/* The sequence number in the bytes of a ForwardBackwardRequest, or -1. It
 * parses only tags and lengths of the outermost fields. That is cheaper than
 * decoding a body before its fault is decided. */
int64_t local_scan_seq(const uint8_t *bytes, size_t n);

/*
 * Refuse a body with members that protocol version 0.25 does not have, as
 * strict servers do: answer 422 and name each of them. Returns 1 if nothing is
 * refused, else 0, and the request has been answered. `path` is the route below
 * /api/v1. Calls that version 0.25 does not have are not checked.
 */
int local_members_check(local_call_t *call, const char *path);

#endif
