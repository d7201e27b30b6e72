#ifndef TNK_LIB_IO_HTTP_POOL_H
#define TNK_LIB_IO_HTTP_POOL_H

#include "lib/io/http/pool_parts.h"

/* Make the exchange a member of its origin's pool. TNK_OK, TNK_ENOMEM, or what
 * is wrong with the proxy: TNK_EPROXY, TNK_EINVAL, TNK_ETOOBIG. */
int tnk__pool_join(tnk__http_t *http, const tnk__origin_t *origin,
                   tnk__exchange_t *ex);
/* Give an exchange that has a slot of its lane a connection, now or later. It
 * may be DONE on return. */
void tnk__pool_run(tnk__exchange_t *ex);
/* Let an active exchange wait for another connection, if its own is one that is
 * accepted and not served. 1 if it was. */
int tnk__pool_rescue(tnk__exchange_t *ex);
/* Open the connections that could not be opened before. */
void tnk__pool_retry(tnk__pool_t *pool);
/* Whether exchanges wait for those under way, because something on the way
 * refuses more connections. */
int tnk__pool_is_limited(const tnk__pool_t *pool);
/* Take a member out in whatever state; a connection in the middle of it is
 * closed. Allocates nothing. The pool may be gone on return. */
void tnk__pool_leave(tnk__exchange_t *ex);
/* Settle all exchanges that have a slot, close all connections. */
void tnk__pool_close(tnk__pool_t *pool, int err);

#endif
