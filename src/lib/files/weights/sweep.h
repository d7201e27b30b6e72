/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_WEIGHTS_SWEEP_H
#define TNK_LIB_FILES_WEIGHTS_SWEEP_H

#include "lib/client/call/call.h"
#include "lib/files/weights/weights.h"

/*
 * Removes an export. It is allocated before the export exists, so that lack of
 * memory cannot prevent the removal. States: ready, then waiting for an answer,
 * which frees it. It continues after the end of its download, also while the
 * service closes.
 */
typedef struct tnk__weights_sweep tnk__weights_sweep_t;

/* Prepare the removal of this path; it replaces one that was not started.
 * Returns TNK_OK, or TNK_ENOMEM and *sweep is NULL. */
int tnk__weights_sweep_prepare(tnk__weights_sweep_t **sweep,
                               tnk__weights_t *weights, const char *path);
/* Free one that was not started; it may be NULL. */
void tnk__weights_sweep_free(tnk__weights_sweep_t *sweep);
void tnk__weights_sweep_start(tnk__weights_sweep_t *sweep);
/* Stop all that wait for an answer. */
void tnk__weights_sweeps_stop(tnk__weights_t *weights);

#endif
