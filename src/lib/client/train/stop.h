#ifndef TNK_LIB_CLIENT_TRAIN_STOP_H
#define TNK_LIB_CLIENT_TRAIN_STOP_H

#include "lib/client/train/op.h"

/* Signs that a server may have lost its memory. */
typedef enum {
  TNK__SIGN_NONE = 0,
  TNK__SIGN_UNKNOWN,  /* it does not know the result of an accepted request */
  TNK__SIGN_EXPECTED, /* it expects a number that it has run */
  TNK__SIGN_GONE,     /* it does not know the model */
  TNK__SIGN_RESTARTED /* it was down: its weights may be older */
} tnk__sign_t;

/* The cause of a stop, for its message. */
typedef struct {
  tnk__sign_t sign;
  const char *name; /* name of the operation, static */
  uint64_t number;
  int status;
} tnk__stop_t;

/* Record that a number has a good result. */
void tnk__training_known(tnk_training_t *training, uint64_t number);
/* Whether a response to a submission or a poll is such a sign. */
tnk__sign_t tnk__stop_sign(const tnk__part_t *part, const tnk__reply_t *reply);
/* The cause to report. */
tnk__stop_t tnk__stop_of(const tnk__part_t *part, const tnk__reply_t *reply,
                         tnk__sign_t sign);
/* Stop a client, unless it is stopped already or there is no sign. Notifies the
 * program, which may close everything. Returns the error for the waiting
 * operations, whose reference the caller must release. NULL if none are to be
 * rejected. */
tnk__error_t *tnk__training_stop(tnk_training_t *training,
                                 const tnk__stop_t *stop);
/* Resume training. Does nothing if the client is not stopped. */
void tnk__training_go_on(tnk_training_t *training);

#endif
