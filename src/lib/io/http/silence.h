#ifndef TNK_LIB_IO_HTTP_SILENCE_H
#define TNK_LIB_IO_HTTP_SILENCE_H

#include "lib/base/text.h"
#include "lib/io/http/client.h"

/* The timeout of an exchange, measured as time without progress. See timeout_ms
 * of a request. */

/* Start the timeout of an exchange that was just given a connection. */
void tnk__silence_begin(tnk__exchange_t *ex);
/* Check an exchange that is WAITING or ACTIVE and whose timer has fired.
 * Returns 1 if it continues; its timer then runs again. Returns 0 if it must
 * end: it made no progress for too long, or was too slow. */
int tnk__silence_goes_on(tnk__exchange_t *ex);
/* Start the timer of an exchange that waits for a connection, with the
 * remaining time. */
void tnk__silence_wait_on(tnk__exchange_t *ex);
/* Write why it must end: "no byte of the request went out for 60.0 s; 31% of
 * 3.9 MB were sent". */
void tnk__silence_explain(const tnk__exchange_t *ex, tnk__text_t *out);
/* Write the progress of its request: "31% of 3.9 MB". */
void tnk__silence_put_sent(const tnk__exchange_t *ex, tnk__text_t *out);

#endif
