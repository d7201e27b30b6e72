#ifndef TNK_LIB_IO_HTTP_BOUND_H
#define TNK_LIB_IO_HTTP_BOUND_H

#include "lib/io/http/client.h"

/*
 * How many long polls are held at once. Over HTTP/1.1 each poll needs a
 * connection, and so a descriptor. The polls share the descriptors that the
 * limit of the process leaves. Over HTTP/2 polls share connections, and the
 * configured number applies.
 */

/* Set the bounds of a client whose lanes have their configured sizes. */
void tnk__bound_open(tnk__http_t *http);
/* Note whether connections for polls are shared. */
void tnk__bound_polls(tnk__http_t *http, int are_shared);

#endif
