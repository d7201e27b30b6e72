#ifndef TNK_LIB_IO_HTTP_ROOM_H
#define TNK_LIB_IO_HTTP_ROOM_H

#include "lib/io/http/conn.h"
#include "lib/io/http/pool_parts.h"

/* A connection with room, or NULL: rather one that is in use, so that the
 * others can end. Polls leave some of it for what must not wait for them. */
tnk__conn_t *tnk__room_find(const tnk__pool_t *pool, int is_poll);
/* The last rank that may have a place on this connection, which has one. */
tnk__rank_t tnk__room_rank(const tnk__conn_t *conn);
/* How many more exchanges fit on what is open, as far as `enough`. */
size_t tnk__room_total(const tnk__pool_t *pool, size_t enough);

#endif
