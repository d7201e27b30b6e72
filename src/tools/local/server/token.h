#ifndef TNK_TOOLS_LOCAL_SERVER_TOKEN_H
#define TNK_TOOLS_LOCAL_SERVER_TOKEN_H

#include "tools/local/call/call.h"

/*
 * Short-lived tokens in exchange for the key, wanted where token_life_s says
 * so. A token is a JWT in form; it is known by its last part, which is random.
 * The latest LOCAL_MAX_TOKENS are remembered, the others are over.
 */

/* Handle auth/token; 404 when no tokens are wanted. */
void local_auth_token(local_call_t *call);
/* Whether this is a token of ours that lives. */
int local_token_is_valid(const local_server_t *server, const char *token);

/* Handle auth/apikey/me: tell what is known of the key that is sent, or revoke
 * it. */
void local_get_key(local_call_t *call);
void local_revoke_key(local_call_t *call);
/* Whether a key has been revoked; the latest LOCAL_MAX_REVOKED are known. */
int local_key_is_revoked(const local_server_t *server, const char *key);

#endif
