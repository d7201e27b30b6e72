/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_SPEAK_H
#define TNK_LIB_IO_HTTP_SPEAK_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/*
 * The version of HTTP of a pool, and how many connections it needs with that
 * version. Also the memory of origins whose pools no longer exist.
 */

/* Returns whether exchanges of this lane have a separate pool. */
int tnk__speak_is_apart(const tnk__http_t *http, const tnk__origin_t *origin,
                        uint8_t lane);
/* Initialize a pool with the remembered facts of its origin, or remember the
 * facts that it has learned. */
void tnk__speak_begin(tnk__pool_t *pool);
void tnk__speak_keep(const tnk__pool_t *pool);
/* Forget all remembered origins. */
void tnk__speak_forget(tnk__http_t *http);
/* Before a connection is opened: allow HTTP/2 once more if it was given up long
 * ago, because connections ended before they showed anything. */
void tnk__speak_reconsider(tnk__pool_t *pool);
/* The ALPN offer of the next connection. */
tnk__alpn_t tnk__speak_offer(const tnk__pool_t *pool);
/* The version for a connected connection. UNKNOWN: none that is wanted. */
tnk__speaks_t tnk__speak_choose(tnk__pool_t *pool, tnk__conn_t *conn);
/* Note that exchanges can be sent on this connection. */
void tnk__speak_opened(tnk__pool_t *pool, const tnk__conn_t *conn);
/* Evaluate whether the connection showed that the server does not speak HTTP/2.
 * Returns 1 if the pool changes to HTTP/1.1 as a result. */
int tnk__speak_fell_back(tnk__pool_t *pool, tnk__conn_t *conn);
/* Note that a response has arrived. */
void tnk__speak_worked(tnk__pool_t *pool);
/* Note that HTTP/1.1 failed with `err`. Returns 1 if the pool changes to
 * HTTP/2. It does if HTTP/1.1 was a trial, or was tried first with a server
 * that is known to speak HTTP/2. */
int tnk__speak_turned(tnk__pool_t *pool, int err);
/* Returns how many connections should be connecting for the waiting exchanges.
 */
size_t tnk__speak_wanted(const tnk__pool_t *pool);
/* When an exchange with the pool's origin last made progress, over either
 * version of HTTP. Both pools of an origin share the limit of connections. */
uint64_t tnk__speak_moved_ms(const tnk__pool_t *pool);
/* Returns whether the server's SETTINGS currently allow no streams on any open
 * connection. 0 if none is open. */
int tnk__speak_allows_none(const tnk__pool_t *pool);
/* Returns how many waiting exchanges end when one connection fails. */
size_t tnk__speak_share(const tnk__pool_t *pool);
/* Returns how many of `capacity` exchanges on a connection polls leave to
 * others. */
size_t tnk__speak_spare(size_t capacity);

#endif
