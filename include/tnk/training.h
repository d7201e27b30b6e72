/* SPDX-License-Identifier: MIT */
#ifndef TNK_TRAINING_H
#define TNK_TRAINING_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Operations of one training client reach the service in call order. Their
 * results may settle in any order. No call blocks: make the next call before
 * the last promise has settled, and the service is never idle.
 *
 * An operation takes its place in the queue when it is called, and its sequence
 * number when it is sent. An operation that fails locally or is canceled in
 * time therefore leaves no gap. A failed operation rejects only its own
 * promise.
 */

/*
 * Losses and the inputs that they read for each example. T is the number of
 * input tokens. Each input is f32 [T], except target_tokens, which is i64 [T].
 * For cross_entropy both may be [T, K], with K candidates for each position.
 *
 *   cross_entropy        target_tokens; weights
 *   importance_sampling  target_tokens, logprobs, advantages; weights
 *   ppo                  the same; clip_low_threshold, clip_high_threshold
 *   cispo                the same; clip_low_threshold, clip_high_threshold
 *   gspo                 the same; clip_low_threshold, clip_high_threshold,
 *                        sequence_ratio_mask
 *   dro                  as importance_sampling
 *
 * Inputs before the semicolon are required. `logprobs` are those of the sampled
 * tokens. `weights` are 1 if they are not given. The settings are
 * clip_low_threshold (0.8) and clip_high_threshold (1.2) for ppo, the same two
 * with other defaults for cispo and gspo, and beta (0.05) for dro. These are
 * the defaults of the service; other servers may differ. An input that a known
 * loss does not read is rejected. A loss that is not listed is sent unchanged,
 * with all its inputs.
 */

/** A tensor that a custom loss reads for each example. */
typedef struct {
  const char *name; /**< "logprobs", or the name of a loss input. */
  uint32_t n_dims;  /**< 0 or 1 means [T], 2 means [T, K]. */
  uint32_t reserved;
} tnk_loss_argument_t;

/** A custom loss that the service runs. All members are required. */
typedef struct {
  size_t size;      /**< Set by TNK_LOSS_OPTIONS_INIT. */
  const char *name; /**< For people. */
  /** Its arguments, at most 16. The first is "logprobs", the logprobs of the
   * target tokens. Loss inputs follow. Names consist of lower-case letters,
   * digits and underscores. */
  const tnk_loss_argument_t *arguments;
  size_t n_arguments;
  /** Its computation for one example, as JSON: `{"format":1,"nodes":[...]}`. It
   * has one placeholder for each argument, and an output with the loss and
   * metrics. The nodes name functions of torch; the service decides which it
   * runs. */
  const char *graph;
  uint64_t reserved;
} tnk_loss_options_t;

#define TNK_LOSS_OPTIONS_INIT TNK_SIZED(tnk_loss_options_t)

/**
 * Create a loss on the service, for passes of all training clients of this
 * service: see `loss` of tnk_pass_options_t. It exists as long as the session.
 *
 * Not every server runs custom losses. tnk_training_forward_backward_custom()
 * computes one in this process and works with every server.
 *
 * @param options  Copied.
 * Protocol: training, custom loss graphs.
 * @return A promise of tnk_loss_t. The promise owns it.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL names the argument or the node; TNK_EUNSUPPORTED if the server
 *   has no custom losses; TNK_EFAILED if the service does not run the graph.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_loss(tnk_service_t *service,
                        const tnk_loss_options_t *options);

/**
 * Get the id of a loss on the service. NULL for NULL.
 * Lifetime: as long as the loss. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_loss_id(const tnk_loss_t *loss);

/** Options of a pass. */
typedef struct {
  size_t size;                        /**< Set by TNK_PASS_OPTIONS_INIT. */
  const char *loss_fn;                /**< NULL means "cross_entropy". */
  const tnk_loss_setting_t *settings; /**< Settings of the loss. */
  size_t n_settings;
  /**
   * If set, the arrays of the data are not copied. The library reads them in
   * pieces, and again for each retry, until it calls `release` once. They and
   * the structs (tnk_datum_t and its members) must stay unchanged until then.
   * If the service wants compressed requests, libuv's thread pool reads them
   * too.
   *
   * `release` is not called from inside the pass function. There are two
   * exceptions: the client is closed and freed, or dozens of calls fail in one
   * turn of the loop because there is no memory.
   */
  void (*release)(void *user);
  void *release_user;
  uint64_t reserved;
  /** A loss of tnk_service_create_loss(). It replaces loss_fn and settings.
   * Each example must have all its inputs. Only used during the call. */
  const tnk_loss_t *loss;
} tnk_pass_options_t;

#define TNK_PASS_OPTIONS_INIT TNK_SIZED(tnk_pass_options_t)

/**
 * Run one forward and backward pass. The service accumulates the gradients
 * until tnk_training_optim_step().
 *
 * Passes are sent as protobuf. If the service rejects the first pass of a
 * session with HTTP 415 or 422, the same pass is sent as JSON, which has no
 * provenance spans. The session keeps the form that the service accepts first.
 *
 * A large pass is sent as several requests. Its metrics are combined, and its
 * outputs have the order of @p data. If the service has run one of them but its
 * result is lost, the others are still sent; the pass then rejects, and has
 * been run.
 *
 * @param data     Examples. Each needs the inputs of its loss, as listed above.
 * @param n_data   At least 1.
 * @param options  NULL for defaults. Copied.
 *
 * Lifetime: @p data is copied, unless options->release is set.
 * Protocol: training, forward_backward; training, chunking.
 *
 * @return A promise of tnk_pass_t.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL names the datum and the input.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_forward_backward(tnk_training_t *training, const tnk_datum_t *data,
                              size_t n_data, const tnk_pass_options_t *options);

/**
 * Run a forward pass only: losses and log-probabilities, no gradients.
 *
 * Arguments and lifetime as tnk_training_forward_backward().
 * Protocol: training, forward_backward.
 *
 * @return A promise of tnk_pass_t.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_forward(tnk_training_t *training,
                                            const tnk_datum_t *data,
                                            size_t n_data,
                                            const tnk_pass_options_t *options);

/** A metric that a custom loss returns. */
typedef struct {
  const char *name; /**< Its key in tnk_pass_metrics(). */
  double value;
} tnk_custom_metric_t;

/** Input and output of a custom loss function. Valid until the function
 * returns, or after tnk_custom_loss_defer() until tnk_custom_loss_finish(). */
typedef struct {
  size_t n_data;
  const tnk_tensor_t *logprobs; /**< Input: one f32 tensor for each example. */
  float *const *gradients; /**< Output: d loss / d logprobs, with as many values
                              for each example as logprobs has. Initially 0. */
  double loss;             /**< Output: the loss. */
  /** Output, optional: metrics for the result, at most 1,024. They replace
   * metrics of the service with the same name, except "loss:sum" and
   * "surrogate_loss:sum". Copied when the loss is known. */
  const tnk_custom_metric_t *metrics;
  size_t n_metrics;
} tnk_custom_loss_t;

/**
 * Compute a loss and its gradient from the logprobs of a forward pass.
 *
 * It is called once, on the loop thread. It may call any function of this
 * library except tnk_wait(). A long computation should be deferred, see
 * tnk_custom_loss_defer().
 *
 * @param io    See tnk_custom_loss_t.
 * @param user  As passed to tnk_training_forward_backward_custom().
 * @return 0, or another number to fail: the promise then rejects with TNK_EUSER
 *         and this number as its cause, and no backward pass is sent.
 * Since: 0.1
 */
typedef int (*tnk_custom_loss_cb)(tnk_custom_loss_t *io, void *user);

/**
 * Defer the result of a custom loss function; call it inside that function. The
 * loop then continues with heartbeats and polls while the loss is computed
 * elsewhere, for example with uv_queue_work(). The return value of the function
 * is ignored.
 *
 * @p io and everything it points to stay valid until tnk_custom_loss_finish().
 * One
 * other thread may read and write them until then. The operation keeps its
 * place in the queue.
 *
 * If the operation is canceled or the client is closed, the other thread is not
 * notified. It must still finish the loss. Until then the memory is kept and
 * the client is not closed completely.
 *
 * @return TNK_OK; TNK_EINVAL if @p io is NULL or already deferred.
 * Thread: loop thread. Callable from callbacks: only that function. Since: 0.1
 */
TNK_API int tnk_custom_loss_defer(tnk_custom_loss_t *io);

/**
 * Finish a deferred loss, once. @p io is invalid afterwards.
 *
 * @param status  As the return value of the function: 0, or a number to fail.
 * @return TNK_OK; TNK_ECANCELED if the operation has already ended, and the
 *         result is dropped; TNK_EREENTRANT inside the function that deferred,
 *         with no effect; TNK_EINVAL if @p io is NULL or was not deferred.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_custom_loss_finish(tnk_custom_loss_t *io, int status);

/**
 * Run a forward pass, call @p loss with the logprobs, and run the backward pass
 * with the gradients that it returns.
 *
 * The operation keeps one place in the queue: later calls reach the service
 * after its backward pass.
 *
 * @param data    Examples; each needs "target_tokens". Copied, unless
 *                options->release is set.
 * @param n_data  At least 1.
 * @param loss    Called between the two passes.
 * @param user    Passed to @p loss.
 * @param options Must not set loss_fn, settings and loss. NULL for defaults.
 *
 * Protocol: training, forward_backward_custom.
 * @return A promise of tnk_pass_t. Its metric "loss:sum" is the loss that @p
 *         loss returned, and "surrogate_loss:sum" is the server's own. The
 *         metrics of @p loss are included.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h),
 *   TNK_EUSER.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_forward_backward_custom(
    tnk_training_t *training, const tnk_datum_t *data, size_t n_data,
    tnk_custom_loss_cb loss, void *user, const tnk_pass_options_t *options);

/**
 * Parameters of an optimizer step. TNK_OPTIM_INIT is a step of AdamW in which
 * each number is absent. An absent number has the default of the official
 * client:
 *
 *                    ADAMW    DIMUON
 *     learning_rate  0.0001   required   at least 0
 *     beta1          0.9      0.9        from 0, below 1
 *     beta2          0.95     -          from 0, below 1
 *     eps            1e-12    -          above 0
 *     weight_decay   0        -          at least 0
 *     grad_clip_norm 0        0          0: no clipping; for ADAMW at least 0
 *
 * Numbers must be finite. A number that the optimizer does not have (-) is
 * rejected, and with `json` all numbers are.
 */
typedef struct {
  size_t size;               /**< Set by TNK_OPTIM_INIT. */
  tnk_optimizer_t optimizer; /**< The family that the model was created with. */
  uint32_t reserved;
  double learning_rate;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double grad_clip_norm;
  /** TNK_OPTIMIZER_RAW: a JSON object with a string "type", for an optimizer
   * that this library does not know. It is sent unchanged. */
  const char *json;
} tnk_optim_t;

#define TNK_OPTIM_INIT                                                         \
  {                                                                            \
    sizeof(tnk_optim_t), TNK_OPTIMIZER_ADAMW, 0, TNK_ABSENT, TNK_ABSENT,       \
        TNK_ABSENT, TNK_ABSENT, TNK_ABSENT, TNK_ABSENT, NULL                   \
  }

/**
 * Apply the gradients and clear them.
 *
 * @param optim  NULL for TNK_OPTIM_INIT. Copied.
 * Protocol: training, optimizers; training, open step.
 * @return A promise of tnk_metrics_t.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL names the parameter.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_optim_step(tnk_training_t *training,
                                               const tnk_optim_t *optim);

/** Options of a save. */
typedef struct {
  size_t size;            /**< Set by TNK_SAVE_OPTIONS_INIT. */
  uint64_t ttl_seconds;   /**< Lifetime; 0 keeps it until deleted. */
  tnk_choice_t overwrite; /**< Only for save_state. Default: no. */
  uint32_t reserved;
  const tnk_pair_t *user_metadata; /**< Not for save_weights_external. */
  size_t n_user_metadata;
  const char *const
      *recipients; /**< Only for save_weights_external: age or SSH public keys.
                      Each file is encrypted for them. A secret key is rejected
                      and not sent. */
  size_t n_recipients;
} tnk_save_options_t;

#define TNK_SAVE_OPTIONS_INIT TNK_SIZED(tnk_save_options_t)

/**
 * The result of a save. The promise owns it. Later versions may append members.
 *
 * The counts follow the sequence of operations: a save that is called with
 * steps in flight counts these steps. They begin with 0 when the model is
 * created, restored or loaded, and with the counts of the run after
 * tnk_ledger_resume(). An operation counts if the service accepted it before
 * the save and has not reported its failure when the save ends.
 */
typedef struct {
  const char
      *path; /**< "tinker://..."; may be NULL after tnk_training_ready(). */
  uint64_t n_steps;  /**< Optimizer steps before the save. */
  uint64_t n_passes; /**< Passes with gradients before it. */
} tnk_saved_t;

/**
 * Get the result of a save, or of tnk_training_ready(). Its path is also
 * returned by tnk_promise_path().
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 * promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_saved_t *tnk_promise_saved(const tnk_promise_t *promise);

/**
 * Save weights and optimizer state under a name. Protocol: training, JSON
 * training requests.
 *
 * @param name     Required. Copied.
 * @param options  NULL for defaults. Copied.
 * @return A promise of a path, `tinker://RUN/weights/NAME`.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ECONFLICT if the name exists, or TNK_EFAILED if the server notices this
 *   only when it saves.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_save_state(tnk_training_t *training, const char *name,
                        const tnk_save_options_t *options);

/**
 * Save weights for sampling under a name. Protocol: training, JSON training
 * requests.
 *
 * @param name     Required. Copied.
 * @param options  NULL for defaults. Copied.
 * @return A promise of a path.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_save_weights_for_sampler(tnk_training_t *training,
                                      const char *name,
                                      const tnk_save_options_t *options);

/**
 * Save weights as files for other programs, such as a PEFT adapter. Protocol:
 * training, JSON training requests.
 *
 * @param name     Required. Copied.
 * @param options  NULL for defaults. Copied.
 * @return A promise of a path.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EUNSUPPORTED if the server does not offer it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_save_weights_external(tnk_training_t *training, const char *name,
                                   const tnk_save_options_t *options);

/** The weights that a sampling client of a training client uses. */
typedef enum {
  TNK_SAMPLING_SNAPSHOT = 0, /**< Those of the save. */
  TNK_SAMPLING_INFLIGHT = 1  /**< Those of the latest save of this kind. */
} tnk_sampling_kind_t;

/**
 * Save the current weights without a name and sample from them. Protocol:
 * training, snapshot and inflight samplers.
 *
 * @param kind     Whether later saves change its weights.
 * @param options  Must not set model_path, base_model and exported. NULL for
 *                 defaults.
 * @return A promise of tnk_sampling_t, as tnk_service_create_sampling().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_save_weights_and_get_sampling(
    tnk_training_t *training, tnk_sampling_kind_t kind,
    const tnk_sampling_options_t *options);

/** Options of loading a state into an existing model. */
typedef struct {
  size_t size;      /**< Set by TNK_LOAD_OPTIONS_INIT. */
  const char *path; /**< Required: `tinker://RUN/weights/NAME`. */
  /** TNK_YES also loads the moments and the step count of the optimizer.
   * Default: no. */
  tnk_choice_t with_optimizer;
  uint32_t reserved;
  const char *weights_access_token; /**< For a state of another user. */
} tnk_load_options_t;

#define TNK_LOAD_OPTIONS_INIT TNK_SIZED(tnk_load_options_t)

/**
 * Load a saved state into this model. Not every server offers this. Protocol:
 * training, JSON training requests.
 *
 * @param options  Copied.
 * @return A promise of a path.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND if the path does not exist, or TNK_EFAILED if the server
 *   notices this only when it loads.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_load_state(tnk_training_t *training,
                        const tnk_load_options_t *options);

/** Description of a model. Strings may be NULL. */
typedef struct {
  size_t size; /**< Set by TNK_TRAINING_INFO_INIT. */
  const char *model_id;
  const char *base_model;
  const char *arch;
  const char *tokenizer_id; /**< Up to the first ":". */
  const char *optimizer;    /**< Type of the optimizer, "adamw" ... */
  uint32_t lora_rank;       /**< 0 if unknown. */
  uint32_t reserved;
} tnk_training_info_t;

#define TNK_TRAINING_INFO_INIT TNK_SIZED(tnk_training_info_t)

/**
 * Get the description of the model. It was fetched when the model was created.
 *
 * @param[out] out  Initialize it with TNK_TRAINING_INFO_INIT. The strings are
 *                  valid as long as the client.
 * @param training  NULL or a closed client returns an empty description.
 *
 * @return TNK_OK, or TNK_EINVAL if `size` is not a size of tnk_training_info_t.
 * Protocol: session, get info. Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_training_info(tnk_training_info_t *out,
                              const tnk_training_t *training);

/**
 * Continue with the current weights of the server, after the client has stopped
 * because the server may have lost state (TNK_QUEUE_MEMORY_LOST of service.h).
 * The next operation has the next sequence number, and nothing is restored.
 *
 * Use it only if you know that the weights are good, for example because only a
 * result was dropped. Otherwise restore a saved state with
 * tnk_service_restore(), or with tnk_training_load_state() after this call.
 *
 * @return TNK_OK, also if the client had not stopped; TNK_EINVAL for NULL;
 *         TNK_ECLOSED, TNK_ETHREAD, TNK_EFORKED.
 * Protocol: training, failure and cancellation.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_training_go_on(tnk_training_t *training);

/**
 * Wait until the client accepts operations, and get the step from which to
 * continue.
 *
 * If the model was lost and the service has `recovery`, the promise resolves
 * when the model has been restored from its last saved or loaded state. A model
 * that was never saved is created again with the same options and seed, at step
 * 0. For a client that has lost nothing the promise resolves in the next turn
 * of the loop.
 *
 * A service without on_recovery cannot report to the program that a model was
 * restored. Operations of the client therefore reject with TNK_ESESSION until
 * this function has been called.
 *
 * Read the result with tnk_promise_saved(). `n_steps` is the number of
 * optimizer steps in the weights, counted as for a save; continue with the next
 * step. `path` is the last saved or loaded state, or NULL.
 *
 * @return A promise of tnk_saved_t.
 * Rejects with: Caller (group of error.h), and
 *   TNK_ESESSION  the client stays lost: recovery is off, or its last attempt
 *                 has failed; see tnk_training_go_on()
 * Protocol: training, failure and cancellation.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_ready(tnk_training_t *training);

/**
 * Remove the model from the service. Later operations on it fail.
 * Protocol: session, unload.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EUNSUPPORTED if the server does not offer it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_unload(tnk_training_t *training);

/**
 * Close the client. Its model stays on the service.
 *
 * Pending promises reject with TNK_ECLOSED, then @p cb is called. Until then
 * calls on the handle reject with TNK_ECLOSED, and a second close does nothing
 * and does not call its callback. After that the handle is invalid, unless a
 * promise that returned it still exists. It then stays valid, as a closed
 * client, until that promise is released.
 *
 * @param training  NULL does nothing and does not call @p cb.
 * @param cb        May be NULL.
 * @param user      Passed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_training_close(tnk_training_t *training, tnk_close_cb cb,
                                void *user);

#ifdef __cplusplus
}
#endif

#endif
