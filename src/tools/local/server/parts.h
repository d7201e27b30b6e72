/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_PARTS_H
#define TNK_TOOLS_LOCAL_SERVER_PARTS_H
#include "tools/local/call/call.h"
#include "tools/local/store/store.h"

/* Declarations that the files of this folder share: handlers of calls, and
 * functions that open, watch and close the server. */

/* ---- config.c ---- */

/* Create the answers of client/config and client/dynamic_config. Returns
 * TNK_OK, TNK_ENOMEM, or TNK_EINVAL for a flag without a name. */
int local_config_init(local_server_t *server);
void local_config_deinit(local_server_t *server);
void local_client_config(local_call_t *call);
void local_dynamic_config(local_call_t *call);
void local_healthz(local_call_t *call);
void local_capabilities(local_call_t *call);
void local_telemetry(local_call_t *call);

/* ---- keys.c ---- */

/*
 * Idempotency keys, for the buffering server: a repeated request with the same
 * key gets the first answer, even if that answer was lost. The latest
 * LOCAL_MAX_KEYS are remembered.
 */
enum { LOCAL_MAX_KEYS = 4096 };

/* Answer a repeat. Returns 1 if the request was answered: a repeat, or a key
 * that was used for a different request (422). Otherwise its answer will be
 * remembered. */
int local_keys_answer(local_call_t *call);
/* Remember an answer; for tnk__srv_config_t. */
void local_keys_answered(tnk__srv_req_t *req, int status, const uint8_t *body,
                         size_t len, void *user);
void local_keys_free(local_server_t *server);

/* ---- route.c ---- */

/* Handle one request; `user` is the server. */
void local_route(tnk__srv_req_t *req, void *user);
/* Report an answer to the observer. */
void local_route_replied(tnk__srv_req_t *req, int status, void *user);

/* ---- session.c ---- */

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

/* ---- token.c ---- */

/*
 * Short-lived tokens in exchange for the key, required if token_life_s is set.
 * A token has the form of a JWT; its last part is random and identifies it. The
 * latest LOCAL_MAX_TOKENS are remembered; older ones are invalid.
 */

/* Handle auth/token; answers 404 if tokens are not enabled. */
void local_auth_token(local_call_t *call);
/* Returns whether this is a valid token of this server. */
int local_token_is_valid(const local_server_t *server, const char *token);

/* Handle auth/apikey/me: return information about the sent key, or revoke
 * it. */
void local_get_key(local_call_t *call);
void local_revoke_key(local_call_t *call);
/* Returns whether a key was revoked; the latest LOCAL_MAX_REVOKED are
 * remembered. */
int local_key_is_revoked(const local_server_t *server, const char *key);

/* ---- rest.c ---- */

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

/* ---- usage.c ---- */

/* For administrators: use by hour, and the audit log of a day. */
void local_usage(local_call_t *call);
void local_audit(local_call_t *call);

#endif
