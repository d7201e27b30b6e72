/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_KEYS_H
#define TNK_TOOLS_LOCAL_SERVER_KEYS_H

#include "tools/local/call/call.h"

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

#endif
