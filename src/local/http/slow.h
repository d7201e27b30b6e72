#ifndef TNK_LOCAL_HTTP_SLOW_H
#define TNK_LOCAL_HTTP_SLOW_H

#include "local/http/http.h"

/* Tells an answer that trickles out how much of it is due. */
typedef struct local_slow local_slow_t;

/* Call `tick` every few milliseconds with the bytes that are due since the
 * start, at `rate` a second, and one more. NULL: no memory. */
local_slow_t *local_slow_start(local_http_t *http, uint64_t rate,
                               void (*tick)(void *owner, uint64_t n_due),
                               void *owner);
/* It may be called from its tick, which does not come again. */
void local_slow_stop(local_slow_t *slow);

#endif
