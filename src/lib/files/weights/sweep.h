#ifndef TNK_LIB_FILES_WEIGHTS_SWEEP_H
#define TNK_LIB_FILES_WEIGHTS_SWEEP_H

#include "lib/client/call/call.h"
#include "lib/files/weights/weights.h"

/*
 * The removal of an export. Made before there is one, so that no lack of memory
 * prevents it; ready, then waiting for an answer, which frees it. It goes on
 * when its download is over, also while the service closes.
 */
typedef struct tnk__weights_sweep tnk__weights_sweep_t;

/* Make one for this path, in place of one that has not begun. TNK_OK; or
 * TNK_ENOMEM, and then there is none. */
int tnk__weights_sweep_prepare(tnk__weights_sweep_t **sweep,
                               tnk__weights_t *weights, const char *path);
/* Free one that has not begun; it may be NULL. */
void tnk__weights_sweep_free(tnk__weights_sweep_t *sweep);
void tnk__weights_sweep_start(tnk__weights_sweep_t *sweep);
/* Stop all that wait for an answer. */
void tnk__weights_sweeps_stop(tnk__weights_t *weights);

#endif
