#ifndef TNK_LIB_IO_HTTP_SILENCE_H
#define TNK_LIB_IO_HTTP_SILENCE_H

#include "lib/base/text.h"
#include "lib/io/http/client.h"

/* The time-out of an exchange, which is of silence: see timeout_ms of a
 * request. */

/* Begin it for an exchange that has just been given a connection. */
void tnk__silence_begin(tnk__exchange_t *ex);
/* Look at an exchange that is WAITING or ACTIVE and whose timer has fired. 1:
 * it continues, and its timer runs again. 0: it must end, because it has been
 * silent or slow for too long, or has waited for a connection while nothing
 * moved. */
int tnk__silence_goes_on(tnk__exchange_t *ex);
/* Start the timer of an exchange that waits for a connection, for what is left
 * of its time. */
void tnk__silence_wait_on(tnk__exchange_t *ex);
/* Write why it does not: "no byte of the request went out for 60.0 s; 31% of
 * 3.9 MB were sent". */
void tnk__silence_explain(const tnk__exchange_t *ex, tnk__text_t *out);
/* Write how far its request is: "31% of 3.9 MB". */
void tnk__silence_put_sent(const tnk__exchange_t *ex, tnk__text_t *out);

#endif
