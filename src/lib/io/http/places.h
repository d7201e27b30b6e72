#ifndef TNK_LIB_IO_HTTP_PLACES_H
#define TNK_LIB_IO_HTTP_PLACES_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/* The list of its pool in which a connection is, and the counters that go with
 * it. */

/* Move a connection to the list that fits its state. An ended connection is
 * closed once no exchange is on it. */
void tnk__places_put(tnk__conn_t *conn);
/* Close a connection without exchanges. */
void tnk__places_close(tnk__conn_t *conn);
/* Count an exchange that has left its connection. */
void tnk__places_left(tnk__pool_t *pool, const tnk__exchange_t *ex);
/* Take an exchange off its connection, which may be closed as a result. */
void tnk__places_take_off(tnk__exchange_t *ex);

#endif
