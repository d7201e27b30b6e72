/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_OPERATIONS_H
#define TNK_LIB_CLIENT_TRAIN_OPERATIONS_H

#include "lib/client/session/session.h"
#include "lib/client/train/training.h"
#include "tnk/training.h"

/*
 * The operations of a training client. One call starts each. Arguments have
 * passed their checks and are copied, except for lent data.
 */

/* ---- Passes: pass.c, custom.c ---- */

tnk_promise_t *tnk__pass_start(tnk_training_t *training,
                               const tnk_datum_t *data, size_t n_data,
                               const tnk_pass_options_t *options,
                               int forward_only);
/* Start a pass with a loss of the caller: a forward pass, the function, and a
 * backward pass with its gradients as weights. It keeps its turn throughout.
 * Protocol: training, forward_backward_custom. */
tnk_promise_t *tnk__custom_start(tnk_training_t *training,
                                 const tnk_datum_t *data, size_t n_data,
                                 tnk_custom_loss_cb loss, void *user,
                                 const tnk_pass_options_t *options);
/* Defer the result of such a function, called inside it, and provide the result
 * later; see training.h. */
int tnk__custom_defer(tnk_custom_loss_t *io);
int tnk__custom_finish(tnk_custom_loss_t *io, int status);
/* Notify the lender of the data that none of it will be read, see session.h.
 * Does nothing for NULL options and copied data. */
void tnk__pass_give_back(tnk__session_t *session,
                         const tnk_pass_options_t *options);

/* ---- Steps of the optimizer: step.c ---- */

/* Starts an optimizer step. `optim` has passed its checks and is copied. */
tnk_promise_t *tnk__step_start(tnk_training_t *training,
                               const tnk_optim_t *optim);

/* ---- Saves, loads and the end of the model: weights.c ---- */

typedef enum {
  TNK__SAVE_STATE,
  TNK__SAVE_SAMPLER,
  TNK__SAVE_EXTERNAL
} tnk__save_kind_t;

tnk_promise_t *tnk__save_start(tnk_training_t *training, tnk__save_kind_t kind,
                               const char *name,
                               const tnk_save_options_t *options);
/* A save for a ledger. It is queued at once but begins only after
 * tnk__op_let_go(). Its metadata also describes the content, next to as many of
 * the caller's pairs as fit. It ends when that content is final. */
enum { TNK__SAVE_MAX_KEPT = 8 };
tnk_promise_t *tnk__save_start_kept(tnk_training_t *training,
                                    tnk__save_kind_t kind, const char *name,
                                    const tnk_save_options_t *options);
tnk_promise_t *tnk__save_ephemeral_start(tnk_training_t *training,
                                         tnk_sampling_kind_t kind,
                                         const tnk_sampling_options_t *options);
/* Load a saved state; access_token may be NULL. */
tnk_promise_t *tnk__load_start(tnk_training_t *training, const char *path,
                               int with_optimizer, const char *access_token);
/* Load a state into a new client, as the last step of creating it. Then resolve
 * `promise`, which is taken over, with the client. If the load fails, the
 * client is closed. */
void tnk__load_into_new(tnk_training_t *training, const char *path,
                        int with_optimizer, const char *access_token,
                        tnk_promise_t *promise);
tnk_promise_t *tnk__unload_start(tnk_training_t *training);

/* ---- Losses that the service stores: loss.c ---- */

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
