/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_STOP_H
#define TNK_LIB_CLIENT_TRAIN_STOP_H

#include "lib/client/train/seq.h"
#include "lib/client/train/training.h"

/* Signs that a server may have lost its memory. */
typedef enum {
  TNK__SIGN_NONE = 0,
  TNK__SIGN_UNKNOWN,  /* it does not know the result of an accepted request */
  TNK__SIGN_EXPECTED, /* it expects a number that it has run */
  TNK__SIGN_GONE,     /* it does not know the model */
  TNK__SIGN_RESTARTED /* it was down: its weights may be older */
} tnk__sign_t;

/* A request that got a response. */
typedef struct {
  const char *name;  /* name of the operation, static */
  int is_accepted;   /* the response is about its result */
  int needs_weights; /* it fails with 404 or 410 only without the model */
} tnk__asked_t;

/* The cause of a stop, for its message. */
typedef struct {
  tnk__sign_t sign;
  const char *name; /* name of the operation, static */
  uint64_t number;
  int status;
} tnk__stop_t;

/* Record that a number has a good result. */
void tnk__training_known(tnk_training_t *training, uint64_t number);
/* Returns whether a response to a submission or a poll is such a sign, and the
 * cause to report. */
tnk__stop_t tnk__stop_of(const tnk__seq_t *number, const tnk__asked_t *asked,
                         const tnk__reply_t *reply);
/* Stop a client, unless it is stopped already or there is no sign. Notifies the
 * program, which may close everything. Returns the error for the waiting
 * operations, whose reference the caller must release. NULL if none are to be
 * rejected. */
tnk__error_t *tnk__training_stop(tnk_training_t *training,
                                 const tnk__stop_t *stop);
/* Resume training. Does nothing if the client is not stopped. */
void tnk__training_go_on(tnk_training_t *training);

/* ---- Recovery ---- */

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
