#ifndef TNK_LIB_IO_HTTP_MUTE_H
#define TNK_LIB_IO_HTTP_MUTE_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/*
 * Connections that are accepted and then not served: what limits their number
 * lets the others wait, as a system does whose program is at its limit. Nothing
 * tells them from an answer that takes long, but that they are served in the
 * order of their coming: none that was made later has been, while others work.
 */

/* Note that an exchange has ended on a connection of a pool. */
void tnk__mute_note(tnk__conn_t *conn, const tnk__exchange_t *ex);
/* Whether an exchange is on a connection on which no answer has come, nor on
 * one that was made later. */
int tnk__mute_has(const tnk__exchange_t *ex);
/* When to look whether an active exchange waits on such a connection; 0: it
 * does not. */
uint64_t tnk__mute_look_ms(const tnk__exchange_t *ex);
/* Whether it does, as far as can be known, so that it may go elsewhere. */
int tnk__mute_is_waiting(const tnk__exchange_t *ex);
/* Bring back what waits on the connection of that exchange, and on all that
 * were made later: they are closed, and no more are opened for a while. */
void tnk__mute_bring_back(const tnk__exchange_t *ex);
/* Whether one more may be tried: one at a time. */
int tnk__mute_may_try(const tnk__pool_t *pool);

#endif
