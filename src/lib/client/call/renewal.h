#ifndef TNK_LIB_CLIENT_CALL_RENEWAL_H
#define TNK_LIB_CLIENT_CALL_RENEWAL_H

#include "lib/client/call/auth.h"
#include "lib/client/call/call.h"
#include "lib/io/loop/command.h"
#include "lib/wire/message/calls_session.h"

/*
 * Fetches the tokens of auth.h. Idle; or the command runs; or the exchange is
 * under way, for the key or for what the command has printed.
 *
 * A fetch begins when a call finds no fresh token, and in the background in
 * the middle of a token's life; all who need one wait for the same fetch. When
 * it fails, a token that has not expired serves on, for at least a minute until
 * it is tried again; else those who wait fail with it. Protocol: transport, JWT
 * exchange; transport, provider selection.
 */
typedef struct {
  tnk__auth_t auth;
  tnk__endpoint_t *endpoint;
  tnk__command_t *command; /* while it runs */
  tnk__call_t exchange;
  tnk__buf_t body;    /* of the exchange */
  uint64_t since_ms;  /* of the fetch */
  int is_background;  /* nobody waited for it when it began */
  tnk__timer_t timer; /* of the next fetch in the background */
} tnk__renewal_t;

/* Begin with nothing fetched. Allocates nothing. */
void tnk__renewal_open(tnk__renewal_t *renewal, tnk__endpoint_t *endpoint);
/* Do what the server wants from now on. */
void tnk__renewal_configure(tnk__renewal_t *renewal, const tnk__flags_t *flags);
/* Fetch no more; what there is may be used to the end. */
void tnk__renewal_shut(tnk__renewal_t *renewal);
void tnk__renewal_close(tnk__renewal_t *renewal);

#endif
