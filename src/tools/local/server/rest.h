#ifndef TNK_TOOLS_LOCAL_SERVER_REST_H
#define TNK_TOOLS_LOCAL_SERVER_REST_H

#include "tools/local/call/call.h"

/* Listing and managing what is on the disk. */
void local_weights_info(local_call_t *call);
void local_list_runs(local_call_t *call);
void local_get_run(local_call_t *call);
void local_list_run_checkpoints(local_call_t *call);
void local_list_checkpoints(local_call_t *call);
void local_delete_checkpoint(local_call_t *call);
void local_publish(local_call_t *call);
void local_unpublish(local_call_t *call);
void local_set_ttl(local_call_t *call);

void local_copy_weights(local_call_t *call);
void local_storage(local_call_t *call);

/* Who owns everything here. */
#define LOCAL_USER "tml:user:local"

/* The word of the protocol for how a session stands. */
const char *local_session_state(const local_session_t *session);
/* Its project, which is the first one for those that were put into none. */
const char *local_session_project(const local_session_t *session);
/* How many checkpoints its runs have, and their bytes. */
size_t local_session_checkpoints(const local_session_t *session,
                                 int64_t *n_bytes);

/* The number in the query, or `fallback`. */
size_t local_query_number(const tnk__srv_req_t *req, const char *name,
                          size_t fallback);

#endif
