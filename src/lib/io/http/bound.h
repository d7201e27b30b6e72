#ifndef TNK_LIB_IO_HTTP_BOUND_H
#define TNK_LIB_IO_HTTP_BOUND_H

#include "lib/io/http/client.h"

/*
 * How many long polls are held at once. Over HTTP/1.1 each needs a connection,
 * hence a descriptor: they get what the limit of the process leaves. Over
 * HTTP/2 they share connections, and there are as many as was wished.
 */

/* Set the bounds of a client whose lanes have what was wished. */
void tnk__bound_open(tnk__http_t *http);
/* Note that connections for polls are shared, or not. */
void tnk__bound_polls(tnk__http_t *http, int are_shared);

#endif
