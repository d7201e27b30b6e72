/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_SESSION_H
#define TNK_TOOLS_LOCAL_SERVER_SESSION_H

#include "tools/local/call/call.h"

void local_session_free(local_session_t *session);
/* Finish sessions without heartbeats and close idle connections, now and
 * periodically. */
void local_reap_start(local_server_t *server);

void local_create_session(local_call_t *call);
void local_session_heartbeat(local_call_t *call);
void local_finish_session(local_call_t *call);
void local_get_session(local_call_t *call);
void local_list_sessions(local_call_t *call);
void local_move_session(local_call_t *call);

/* Searches sessions. */
void local_search_sessions(local_call_t *call);

#endif
