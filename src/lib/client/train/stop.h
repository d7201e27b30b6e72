#ifndef TNK_LIB_CLIENT_TRAIN_STOP_H
#define TNK_LIB_CLIENT_TRAIN_STOP_H

#include "lib/client/train/op.h"

/* What shows that a server may have lost its memory. */
typedef enum {
  TNK__SIGN_NONE = 0,
  TNK__SIGN_UNKNOWN,  /* of what it had accepted it does not know the result */
  TNK__SIGN_EXPECTED, /* it expects a number that it has run */
  TNK__SIGN_GONE,     /* it does not know the model */
  TNK__SIGN_RESTARTED /* it was down: its weights may be older */
} tnk__sign_t;

/* Why a client stops, for its sentence. */
typedef struct {
  tnk__sign_t sign;
  const char *name; /* of the operation, static */
  uint64_t number;
  int status;
} tnk__stop_t;

/* Note that a number has a good result. */
void tnk__training_known(tnk_training_t *training, uint64_t number);
/* Whether an answer to a part, its submission or its result, is such a sign. */
tnk__sign_t tnk__stop_sign(const tnk__part_t *part, const tnk__reply_t *reply);
/* What is told of it. */
tnk__stop_t tnk__stop_of(const tnk__part_t *part, const tnk__reply_t *reply,
                         tnk__sign_t sign);
/* Stop a client, unless it has, or there is no sign. The program is told, and
 * may close everything. Why what waits is to be rejected, for the caller to
 * give up; NULL: nothing is. */
tnk__error_t *tnk__training_stop(tnk_training_t *training,
                                 const tnk__stop_t *stop);
/* Let it train on; nothing happens if it has not stopped. */
void tnk__training_go_on(tnk_training_t *training);

#endif
