#ifndef TNK_LIB_IO_HTTP_MUTE_H
#define TNK_LIB_IO_HTTP_MUTE_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/*
 * Detection of unresponsive connections: accepted, but never served. A proxy or
 * server that limits connections may let further ones wait, as a listening
 * socket does while its program is at its limit.
 *
 * An unresponsive connection looks like a slow response. Only the order of
 * service distinguishes the two, because such peers serve connections in the
 * order of acceptance. A connection counts as unresponsive if no later one has
 * been served while earlier ones work.
 */

/* Note that an exchange has ended on a connection of a pool. */
void tnk__mute_note(tnk__conn_t *conn, const tnk__exchange_t *ex);
/* Whether no response has arrived on the exchange's connection, nor on any
 * later one. */
int tnk__mute_has(const tnk__exchange_t *ex);
/* Delay in milliseconds until an active exchange must be checked for waiting on
 * such a connection. 0: it need not be checked. */
uint64_t tnk__mute_look_ms(const tnk__exchange_t *ex);
/* Whether it probably waits on such a connection, so that it may use
 * another. */
int tnk__mute_is_waiting(const tnk__exchange_t *ex);
/* Return exchanges to the queue: the one on the connection of `ex`, and the
 * exchanges on all later connections. These connections are closed. For a while
 * no more are opened. */
void tnk__mute_bring_back(const tnk__exchange_t *ex);
/* Whether another connection may be tried. Only one is tried at a time. */
int tnk__mute_may_try(const tnk__pool_t *pool);

#endif
