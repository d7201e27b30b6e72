/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_SLOW_H
#define TNK_SERVER_SLOW_H

#include "server/http.h"

/* Timer of a slow response: reports how many bytes are due. */
typedef struct tnk__srv_slow tnk__srv_slow_t;

/* Call `tick` every few milliseconds with the number of bytes due at `rate`
 * bytes per second, plus one. NULL: out of memory. */
tnk__srv_slow_t *tnk__srv_slow_start(tnk__srv_t *http, uint64_t rate,
                                     void (*tick)(void *owner, uint64_t n_due),
                                     void *owner);
/* Stop the timer. May be called from `tick`, which is not called again. */
void tnk__srv_slow_stop(tnk__srv_slow_t *slow);

#endif
