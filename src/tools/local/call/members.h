#ifndef TNK_TOOLS_LOCAL_CALL_MEMBERS_H
#define TNK_TOOLS_LOCAL_CALL_MEMBERS_H

#include "tools/local/call/call.h"

/*
 * Refuse a body with members that protocol version 0.25 does not have, as
 * strict servers do: answer 422 and name each of them. Returns 1 if nothing is
 * refused, else 0, and the request has been answered. `path` is the route below
 * /api/v1. Calls that version 0.25 does not have are not checked.
 */
int local_members_check(local_call_t *call, const char *path);

#endif
