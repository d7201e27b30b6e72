#ifndef TNK_LIB_CLIENT_TRAIN_RESTART_H
#define TNK_LIB_CLIENT_TRAIN_RESTART_H

#include "lib/client/train/training.h"

/*
 * A client whose model is lost, and that gets another one: what it was restored
 * from, and how it goes on as the same handle.
 */

/* Note that the weights are in a state that was saved or loaded, and what it
 * contains. Without memory the one before stays. */
void tnk__training_saved(tnk_training_t *training, const char *path,
                         tnk__tally_t tally, int with_optimizer);
/* Reject all that is pending, on the wire too, and all that comes: what its
 * numbers mean is lost. */
void tnk__training_suspend(tnk_training_t *training, tnk__error_t *error);
/* Say why in other words from now on; one that goes on is left alone. */
void tnk__training_refuse(tnk_training_t *training, tnk__error_t *error);
/* Go on with the model of another client, which is then closed. TNK_OK, or
 * TNK_ENOMEM and then nothing has changed. */
int tnk__training_adopt(tnk_training_t *training, tnk_training_t *other);

#endif
