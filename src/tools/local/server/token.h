/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_TOKEN_H
#define TNK_TOOLS_LOCAL_SERVER_TOKEN_H

#include "tools/local/call/call.h"

/*
 * Short-lived tokens in exchange for the key, required if token_life_s is set.
 * A token has the form of a JWT; its last part is random and identifies it. The
 * latest LOCAL_MAX_TOKENS are remembered; older ones are invalid.
 */

/* Handle auth/token; answers 404 if tokens are not enabled. */
void local_auth_token(local_call_t *call);
/* Whether this is a valid token of this server. */
int local_token_is_valid(const local_server_t *server, const char *token);

/* Handle auth/apikey/me: return information about the sent key, or revoke
 * it. */
void local_get_key(local_call_t *call);
void local_revoke_key(local_call_t *call);
/* Whether a key was revoked; the latest LOCAL_MAX_REVOKED are remembered. */
int local_key_is_revoked(const local_server_t *server, const char *key);

#endif
