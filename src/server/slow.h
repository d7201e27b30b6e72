#ifndef TNK_SERVER_SLOW_H
#define TNK_SERVER_SLOW_H

#include "server/http.h"

/* Tells an answer that trickles out how much of it is due. */
typedef struct tnk__srv_slow tnk__srv_slow_t;

/* Call `tick` every few milliseconds with the bytes that are due since the
 * start, at `rate` a second, and one more. NULL: no memory. */
tnk__srv_slow_t *tnk__srv_slow_start(tnk__srv_t *http, uint64_t rate,
                                     void (*tick)(void *owner, uint64_t n_due),
                                     void *owner);
/* It may be called from its tick, which does not come again. */
void tnk__srv_slow_stop(tnk__srv_slow_t *slow);

#endif
