#ifndef TNK_LIB_IO_HTTP_PLACES_H
#define TNK_LIB_IO_HTTP_PLACES_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/* Where the connections of a pool belong, and what is counted with them. */

/* Put a connection where what has happened to it belongs, or close it after its
 * last exchange. */
void tnk__places_put(tnk__conn_t *conn);
/* Close one, on which there is no exchange. */
void tnk__places_close(tnk__conn_t *conn);
/* Count an exchange that has left its connection. */
void tnk__places_left(tnk__pool_t *pool, const tnk__exchange_t *ex);
/* Take an exchange off its connection, which may be closed then. */
void tnk__places_take_off(tnk__exchange_t *ex);

#endif
