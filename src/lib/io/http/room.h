#ifndef TNK_LIB_IO_HTTP_ROOM_H
#define TNK_LIB_IO_HTTP_ROOM_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/* Find a connection with capacity, or NULL. Used connections are preferred, so
 * that others can become idle and close. Polls leave some capacity to other
 * requests. */
tnk__conn_t *tnk__room_find(const tnk__pool_t *pool, int is_poll);
/* The last rank that may use this connection, which has capacity. */
tnk__rank_t tnk__room_rank(const tnk__conn_t *conn);
/* How many more exchanges fit on the open connections. Counting stops at
 * `enough`. */
size_t tnk__room_total(const tnk__pool_t *pool, size_t enough);

#endif
