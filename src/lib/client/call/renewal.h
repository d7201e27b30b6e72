/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_RENEWAL_H
#define TNK_LIB_CLIENT_CALL_RENEWAL_H

#include "lib/client/call/auth.h"
#include "lib/client/call/call.h"
#include "lib/io/loop/command.h"
#include "lib/wire/message/calls_session.h"

/*
 * Fetches the tokens of auth.h. It is idle, or runs the command, or exchanges
 * the key or the command's output.
 *
 * A fetch begins when a call finds no fresh token, and in the background in the
 * middle of a token's lifetime. All waiting calls share one fetch. When a fetch
 * fails, a token that has not expired stays in use, and the next fetch begins
 * after at least a minute. Without such a token, the waiting calls fail.
 * Protocol: transport, JWT exchange; transport, provider selection.
 */
typedef struct {
  tnk__auth_t auth;
  tnk__endpoint_t *endpoint;
  tnk__command_t *command; /* while it runs */
  tnk__call_t exchange;
  tnk__buf_t body;    /* body of the exchange */
  uint64_t since_ms;  /* begin of the fetch */
  int is_background;  /* no call waited when it began */
  tnk__timer_t timer; /* starts the next background fetch */
} tnk__renewal_t;

/* Begin without a token. Allocates nothing. */
void tnk__renewal_open(tnk__renewal_t *renewal, tnk__endpoint_t *endpoint);
/* Apply the server's flags from now on. */
void tnk__renewal_configure(tnk__renewal_t *renewal, const tnk__flags_t *flags);
/* Stop fetching. The present token may be used until it expires. */
void tnk__renewal_shut(tnk__renewal_t *renewal);
void tnk__renewal_close(tnk__renewal_t *renewal);

#endif
