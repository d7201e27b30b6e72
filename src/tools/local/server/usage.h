/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_USAGE_H
#define TNK_TOOLS_LOCAL_SERVER_USAGE_H

#include "tools/local/call/call.h"

/* For administrators: use by hour, and the audit log of a day. */
void local_usage(local_call_t *call);
void local_audit(local_call_t *call);

#endif
