/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_POOL_H
#define TNK_LIB_IO_HTTP_POOL_H

#include "lib/io/http/pool_parts.h"

/* Make the exchange a member of its origin's pool. Returns TNK_OK or
 * TNK_ENOMEM. If the proxy cannot be used, returns TNK_EPROXY, TNK_EINVAL or
 * TNK_ETOOBIG. */
int tnk__pool_join(tnk__http_t *http, const tnk__origin_t *origin,
                   tnk__exchange_t *ex);
/* Give an exchange with a slot of its lane a connection, now or later. It may
 * be DONE on return. */
void tnk__pool_run(tnk__exchange_t *ex);
/* The owner of a paused exchange has taken the body, so reading continues and
 * the timeout restarts. */
void tnk__pool_resume(tnk__exchange_t *ex);
/* Open connections that could not be opened before. */
void tnk__pool_retry(tnk__pool_t *pool);
/* Remove a member in any state. If it was in progress on a connection, that
 * connection is closed. Allocates nothing. The pool may be gone on return. */
void tnk__pool_leave(tnk__exchange_t *ex);
/* Settle all exchanges that have a slot, and close all connections. */
void tnk__pool_close(tnk__pool_t *pool, int err);

#endif
