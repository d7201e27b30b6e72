/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_ROUTE_H
#define TNK_TOOLS_LOCAL_SERVER_ROUTE_H

#include "tools/local/call/state.h"

/* Handle one request; `user` is the server. */
void local_route(tnk__srv_req_t *req, void *user);
/* Report an answer to the observer. */
void local_route_replied(tnk__srv_req_t *req, int status, void *user);

#endif
