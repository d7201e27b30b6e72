/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_REST_H
#define TNK_TOOLS_LOCAL_SERVER_REST_H

#include "tools/local/call/call.h"
#include "tools/local/store/store.h"

/* The checkpoints on the disk with their metadata, newest first. */
typedef struct {
  const local_server_t *server;
  local_meta_t *metas;
  size_t n;
  size_t cap;
  int err;
} local_kept_t;

/* Read all checkpoints, or those in one run. The caller frees the list. */
local_kept_t local_kept_read(const local_server_t *server, const char *run);
void local_kept_free(local_kept_t *list);

/* Move the checkpoints of a session's runs to a project. Returns TNK_OK, or the
 * first write error. */
int local_kept_move(const local_session_t *session, const char *project);
/* Remove expired checkpoints, if any can have expired. */
void local_kept_sweep(local_server_t *server);

/* Lists and changes the stored objects. */
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

/* The owner of all objects. */
#define LOCAL_USER "tml:user:local"

/* The protocol's word for the state of a session. */
const char *local_session_state(const local_session_t *session);
/* The project of a session; the first project by default. */
const char *local_session_project(const local_session_t *session);
/* The number of checkpoints in its runs, and their size. */
size_t local_session_checkpoints(const local_session_t *session,
                                 int64_t *n_bytes);

/* The number in the query, or `fallback`. */
size_t local_query_number(const tnk__srv_req_t *req, const char *name,
                          size_t fallback);

#endif
