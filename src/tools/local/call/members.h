#ifndef TNK_TOOLS_LOCAL_CALL_MEMBERS_H
#define TNK_TOOLS_LOCAL_CALL_MEMBERS_H

#include "tools/local/call/call.h"

/*
 * Refuse a body with members that servers of the protocol's 0.25 did not know,
 * as those that read their requests strictly do: 422 that names each of them.
 * 1 when nothing is refused; else 0, and the request has been answered. `path`
 * is the route below /api/v1; calls that did not exist then are let by.
 */
int local_members_check(local_call_t *call, const char *path);

#endif
