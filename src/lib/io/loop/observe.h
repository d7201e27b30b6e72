#ifndef TNK_LIB_IO_LOOP_OBSERVE_H
#define TNK_LIB_IO_LOOP_OBSERVE_H

#include "lib/io/loop/context.h"

/* Give an operation its number and report that it is queued. Returns 0 without
 * an observer; the operation is then never reported. `client` may be NULL. */
uint64_t tnk__observe_begin(tnk__context_t *context, const char *name,
                            const char *client);
/* Report a step of an operation that has a number. The time is filled in. */
void tnk__observe(const tnk__context_t *context, tnk_event_t *event);

#endif
