#ifndef TNK_TOOLS_LOCAL_SERVER_ROUTE_H
#define TNK_TOOLS_LOCAL_SERVER_ROUTE_H

#include "tools/local/call/state.h"

/* Serve one request; `user` is the server. */
void local_route(tnk__srv_req_t *req, void *user);
/* Tell the observer of an answer. */
void local_route_replied(tnk__srv_req_t *req, int status, void *user);

#endif
