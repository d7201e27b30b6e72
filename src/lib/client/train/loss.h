#ifndef TNK_LIB_CLIENT_TRAIN_LOSS_H
#define TNK_LIB_CLIENT_TRAIN_LOSS_H

#include "lib/client/session/session.h"
#include "tnk/training.h"

/* A loss of the caller that the service stores: the result of a promise, which
 * may outlive the service. */
struct tnk_loss {
  tnk__arena_t arena; /* owns the fields below */
  const char *id;
  const char *session_id;
  const tnk_loss_argument_t *arguments;
  size_t n_arguments;
};

/* Create a loss on the service. Options have passed their checks and are
 * copied. */
tnk_promise_t *tnk__create_loss(tnk__session_t *session,
                                const tnk_loss_options_t *options);

#endif
