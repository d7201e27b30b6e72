#ifndef TNK_LIB_CLIENT_TRAIN_OPERATIONS_H
#define TNK_LIB_CLIENT_TRAIN_OPERATIONS_H

#include "lib/client/train/training.h"

/*
 * The operations of a training client, each begun by one call. Arguments have
 * passed their checks and are copied, but for data that is lent.
 */

/* ---- Passes: pass.c, custom.c ---- */

tnk_promise_t *tnk__pass_start(tnk_training_t *training,
                               const tnk_datum_t *data, size_t n_data,
                               const tnk_pass_options_t *options,
                               int forward_only);
/* Start a pass with a loss of the caller's: a forward pass, the function, a
 * backward pass with its gradients as weights. It keeps its turn throughout.
 * Protocol: training, forward_backward_custom. */
tnk_promise_t *tnk__custom_start(tnk_training_t *training,
                                 const tnk_datum_t *data, size_t n_data,
                                 tnk_custom_loss_cb loss, void *user,
                                 const tnk_pass_options_t *options);
/* Put off the answer of such a function, from inside of it, and give it; see
 * training.h. */
int tnk__custom_defer(tnk_custom_loss_t *io);
int tnk__custom_finish(tnk_custom_loss_t *io, int status);
/* Tell the lender of the data that nothing will be read of it, as loan.h says.
 * NULL options and copied data need nothing. */
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
/* The same for a ledger: it has its place in the queue but begins only with
 * tnk__op_let_go(), its metadata (as many of the caller's as there is room for)
 * also tells what it contains, and it ends when that is final. */
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
/* Load a state into a new client, as the last step of making it, then resolve
 * `promise`, which is taken over, with the client; if it fails, the client is
 * closed. */
void tnk__load_into_new(tnk_training_t *training, const char *path,
                        int with_optimizer, const char *access_token,
                        tnk_promise_t *promise);
tnk_promise_t *tnk__unload_start(tnk_training_t *training);

#endif
