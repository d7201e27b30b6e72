/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_REFUSED_H
#define TNK_LIB_IO_HTTP_REFUSED_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/*
 * Recognizes refusals of connections where a proxy or the server limits them: a
 * new connection fails while others to its origin work.
 */

/* The connection could not be opened. */
int tnk__refused_by_failing(const tnk__pool_t *pool, int err);
/* The connection was closed at once under its first exchange, before any byte
 * of a response, and the exchange can be sent again. An exchange that required
 * a new connection has failed before; then its owner decides. */
int tnk__refused_by_closing(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                            int was_reused, int err);
/* The first response on the connection is a 503, and the connection ends. The
 * caller still gets the response, because it may come from the service. */
int tnk__refused_by_answer(const tnk__pool_t *pool, const tnk__exchange_t *ex,
                           int was_reused, int is_open);
/* An HTTP proxy refused a request, because it limits the connections of a
 * client. It counts the open ones at each request, so existing connections are
 * refused as well. */
int tnk__refused_by_proxy(const tnk__pool_t *pool, const tnk__exchange_t *ex);
/* Note a refusal. `text` explains it, or is NULL. */
void tnk__refused_note(tnk__pool_t *pool, const char *text);

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
/* Returns whether no response has arrived on the exchange's connection, nor on
 * any later one. */
int tnk__mute_has(const tnk__exchange_t *ex);
/* Delay in milliseconds until an active exchange must be checked for waiting on
 * such a connection. 0: it need not be checked. */
uint64_t tnk__mute_look_ms(const tnk__exchange_t *ex);
/* Returns whether it probably waits on such a connection, so that it may use
 * another. */
int tnk__mute_is_waiting(const tnk__exchange_t *ex);
/* Returns whether an exchange may leave its connection because an earlier one
 * is unresponsive. */
int tnk__mute_may_follow(const tnk__exchange_t *ex);
/* Returns whether another connection may be tried. Only one is tried at a time.
 */
int tnk__mute_may_try(const tnk__pool_t *pool);

#endif
