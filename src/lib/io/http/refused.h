#ifndef TNK_LIB_IO_HTTP_REFUSED_H
#define TNK_LIB_IO_HTTP_REFUSED_H

#include "lib/io/http/pool_parts.h"

/*
 * How a refusal of connections is recognized where a proxy or the server limits
 * them: a new connection fails while others to its origin work.
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

#endif
