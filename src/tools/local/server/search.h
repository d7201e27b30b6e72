#ifndef TNK_TOOLS_LOCAL_SERVER_SEARCH_H
#define TNK_TOOLS_LOCAL_SERVER_SEARCH_H

#include "tools/local/call/call.h"

/* Searches sessions. */
void local_search_sessions(local_call_t *call);

#endif
