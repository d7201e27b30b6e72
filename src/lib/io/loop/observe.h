#ifndef TNK_LIB_IO_LOOP_OBSERVE_H
#define TNK_LIB_IO_LOOP_OBSERVE_H

#include "lib/io/loop/context.h"

/* Give an operation its number, and tell that it is queued. 0 where nobody
 * hears of it: from there on it is not told of. `client` may be NULL. */
uint64_t tnk__observe_begin(tnk__context_t *context, const char *name,
                            const char *client);
/* Tell of a step of an operation that has a number; the time is filled in. */
void tnk__observe(const tnk__context_t *context, tnk_event_t *event);

#endif
