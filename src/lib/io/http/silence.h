/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_SILENCE_H
#define TNK_LIB_IO_HTTP_SILENCE_H

#include "lib/base/text.h"
#include "lib/io/http/client.h"

/* The timeout of an exchange, measured as time without progress. See timeout_ms
 * of a request. This decides; the pool runs the timers. */

/* Returns when to check an exchange first that was just given a connection. */
uint64_t tnk__silence_first_ms(const tnk__exchange_t *ex);
/* Check an exchange that is WAITING or ACTIVE and whose timer has fired.
 * Returns the time until the next check. Returns 0 if it must end: it made no
 * progress for too long, or was too slow. */
uint64_t tnk__silence_left_ms(tnk__exchange_t *ex);
/* Returns how long an exchange that waits for a connection may still wait
 * without any progress. */
uint64_t tnk__silence_wait_left_ms(const tnk__exchange_t *ex);
/* Write why it must end: "no byte of the request went out for 60.0 s; 31% of
 * 3.9 MB were sent". */
void tnk__silence_explain(const tnk__exchange_t *ex, tnk__text_t *out);
/* Write the progress of its request: "31% of 3.9 MB". */
void tnk__silence_put_sent(const tnk__exchange_t *ex, tnk__text_t *out);

#endif
