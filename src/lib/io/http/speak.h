#ifndef TNK_LIB_IO_HTTP_SPEAK_H
#define TNK_LIB_IO_HTTP_SPEAK_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/*
 * Which version of HTTP a pool speaks, how many connections it then needs, and
 * what is remembered of it when it is gone.
 */

/* Whether exchanges of a lane have a pool of their own. */
int tnk__speak_is_apart(const tnk__http_t *http, const tnk__origin_t *origin,
                        uint8_t lane);
/* Begin a pool with what is known of its origin; keep what it has learned. */
void tnk__speak_begin(tnk__pool_t *pool);
void tnk__speak_keep(const tnk__pool_t *pool);
/* Forget all that is known. */
void tnk__speak_forget(tnk__http_t *http);
/* What the next connection offers. */
tnk__alpn_t tnk__speak_offer(const tnk__pool_t *pool);
/* The version on a connection that has connected, or NULL. */
const tnk__conn_kind_t *tnk__speak_choose(tnk__pool_t *pool, tnk__conn_t *conn);
/* Note that exchanges can be sent on a connection. */
void tnk__speak_opened(tnk__pool_t *pool, const tnk__conn_t *conn);
/* Look at what a connection has shown of the server: 1 if the pool goes over to
 * HTTP/1.1 because of it. */
int tnk__speak_fell_back(tnk__pool_t *pool, tnk__conn_t *conn);
/* Note that a response has come. */
void tnk__speak_worked(tnk__pool_t *pool);
/* Note that HTTP/1.1 failed with `err`: 1 if the pool goes over to HTTP/2, as
 * HTTP/1.1 was a trial, or was tried first and the server is known for HTTP/2.
 */
int tnk__speak_turned(tnk__pool_t *pool, int err);
/* How many connections should be on their way for what waits. */
size_t tnk__speak_wanted(const tnk__pool_t *pool);
/* When an exchange with the origin of this pool last moved, whichever version
 * of HTTP it had: both pools share what limits connections. */
uint64_t tnk__speak_moved_ms(const tnk__pool_t *pool);
/* Whether all its open connections allow no streams now, by the server's
 * SETTINGS. 0 where none is open. */
int tnk__speak_allows_none(const tnk__pool_t *pool);
/* How many of those that wait end with one of them. */
size_t tnk__speak_share(const tnk__pool_t *pool);
/* Of so many places on a connection, those that polls leave to others. */
size_t tnk__speak_spare(size_t capacity);

#endif
