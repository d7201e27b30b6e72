#ifndef TNK_LIB_CLIENT_TRAIN_RESTART_H
#define TNK_LIB_CLIENT_TRAIN_RESTART_H

#include "lib/client/train/training.h"

/*
 * Recovery of a client whose model is lost: the last saved state, and how the
 * same handle continues with another model.
 */

/* Record that the weights match a saved or loaded state, and its tally. Without
 * memory the previous record stays. */
void tnk__training_saved(tnk_training_t *training, const char *path,
                         tnk__tally_t tally, int with_optimizer);
/* Reject all pending operations, also those in flight, and all new ones. The
 * meaning of their numbers is lost. */
void tnk__training_suspend(tnk_training_t *training, tnk__error_t *error);
/* Change the error of later rejections. Does nothing unless the client is
 * stopped. */
void tnk__training_refuse(tnk_training_t *training, tnk__error_t *error);
/* Continue with the model of another client, which is then closed. Returns
 * TNK_OK, or TNK_ENOMEM if nothing has changed. */
int tnk__training_adopt(tnk_training_t *training, tnk_training_t *other);

#endif
