#ifndef TNK_TRAINING_H
#define TNK_TRAINING_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Operations of one training client reach the service strictly in call order;
 * their results may settle in any order. Nothing here blocks: call the next
 * one before the last has settled, and the service is never idle.
 *
 * Every operation takes its place in the queue when it is called and its
 * sequence number when it is sent, so one that fails locally or is canceled
 * in time leaves no hole. One that fails rejects its own promise and nothing
 * else.
 */

/*
 * Losses, what they read beside the tokens of each example, and their settings.
 * T is the number of tokens of the input; every input is f32 [T], but for
 * target_tokens, which is i64 [T]. With cross_entropy both may be [T, K], for K
 * candidates a position.
 *
 *   cross_entropy        target_tokens; weights
 *   importance_sampling  target_tokens, logprobs, advantages; weights
 *   ppo                  the same; clip_low_threshold, clip_high_threshold
 *   cispo                the same; clip_low_threshold, clip_high_threshold
 *   gspo                 the same; clip_low_threshold, clip_high_threshold,
 *                        sequence_ratio_mask
 *   dro                  as importance_sampling
 *
 * What stands before the semicolon is required. `logprobs` are those that the
 * tokens were sampled with, `weights` are 1 where they are not given. Settings
 * are clip_low_threshold (0.8) and clip_high_threshold (1.2) of ppo, the same
 * two with other defaults of cispo and gspo, and beta (0.05) of dro. Defaults
 * are the service's; other servers may have others. What a known loss does not
 * read is refused. The name of a loss that is not listed is sent as it is, with
 * whatever it is given.
 */

/** A tensor that a loss of the caller's reads, for each example. */
typedef struct {
  const char *name; /**< "logprobs" of the first, then loss inputs. */
  uint32_t n_dims;  /**< 0 or 1: [T]; 2: [T, K]. */
  uint32_t reserved;
} tnk_loss_argument_t;

/** A loss of the caller's, to be run by the service. All are required. */
typedef struct {
  size_t size;      /**< Set by TNK_LOSS_OPTIONS_INIT. */
  const char *name; /**< For people. */
  /** What it is called with, in this order: first "logprobs", those of the
   * target tokens, then the loss inputs by their names, of small letters,
   * digits and underscores; 16 at most. */
  const tnk_loss_argument_t *arguments;
  size_t n_arguments;
  /** What it computes for one example, as JSON: `{"format":1,"nodes":[...]}`,
   * with one placeholder an argument, and an output of the loss and of metrics.
   * The nodes name functions of torch; the service says which it runs. */
  const char *graph;
  uint64_t reserved;
} tnk_loss_options_t;

#define TNK_LOSS_OPTIONS_INIT TNK_SIZED(tnk_loss_options_t)

/**
 * Hand a loss to the service, for passes of all training clients of this
 * service: `loss` of tnk_pass_options_t. It stays there as long as the session.
 *
 * Servers need not run losses of their clients; with all of them
 * tnk_training_forward_backward_custom() computes one here.
 *
 * @param options  Copied.
 * Protocol: training, custom loss graphs.
 * @return A promise of tnk_loss_t, which belongs to it.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL names the argument or the node; TNK_EUNSUPPORTED on servers
 *   without it; TNK_EFAILED for a graph that the service does not run.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_loss(tnk_service_t *service,
                        const tnk_loss_options_t *options);

/**
 * The id of a loss at the service; NULL for NULL.
 * Lifetime: as long as the loss. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_loss_id(const tnk_loss_t *loss);

/** How to run a pass. */
typedef struct {
  size_t size;         /**< Set by TNK_PASS_OPTIONS_INIT. */
  const char *loss_fn; /**< NULL: "cross_entropy". Any name is sent. */
  const tnk_loss_setting_t *settings; /**< The loss's configuration. */
  size_t n_settings;
  /**
   * When set, the arrays that the data points to are not copied: they are
   * read, part by part and again for every repeat of a request, until
   * `release` is called, once. That is never inside the call, unless dozens of
   * calls are refused in one turn of the loop without any memory, or the client
   * is closed and gone. They and the structs themselves (tnk_datum_t and below)
   * must stay and not change until then; where the service wants requests
   * compressed, libuv's thread pool reads them too.
   */
  void (*release)(void *user);
  void *release_user;
  uint64_t reserved;
  /** One of tnk_service_create_loss(), in place of loss_fn and settings. Each
   * example has all that it reads. Needed during the call only. */
  const tnk_loss_t *loss;
} tnk_pass_options_t;

#define TNK_PASS_OPTIONS_INIT TNK_SIZED(tnk_pass_options_t)

/**
 * Run one forward and backward pass; gradients add up on the service until
 * tnk_training_optim_step().
 *
 * Passes are sent as protobuf. If the service refuses the first pass of a
 * session with HTTP 415 or 422, the same pass is sent as JSON, which has no
 * provenance spans. The session keeps the form that the service accepts first.
 *
 * @param data     Examples; each needs the inputs of its loss, as listed above.
 * @param n_data   At least 1. May be sent as several requests; metrics are
 *                 then combined and outputs keep the order of @p data. When
 *                 the service has run one but its result is lost, the others
 *                 are sent all the same: the pass rejects, and has been run.
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

/** A number that a custom loss tells beside its value. */
typedef struct {
  const char *name; /**< Its key in tnk_pass_metrics(), any text. */
  double value;
} tnk_custom_metric_t;

/** What a custom loss function reads and writes; valid until it returns, or
 * after tnk_custom_loss_defer() until tnk_custom_loss_finish(). */
typedef struct {
  size_t n_data;
  const tnk_tensor_t *logprobs; /**< f32, for each example. */
  float *const *gradients;      /**< d loss / d logprobs to be filled in, as
                                     many values an example as logprobs has;
                                     zero at first. */
  double loss;                  /**< To be filled in. */
  /** May be set: metrics for the result, at most 1,024. They take the place of
   * those of the service with the same name, but for "loss:sum" and
   * "surrogate_loss:sum". Read when the loss is known, and copied. */
  const tnk_custom_metric_t *metrics;
  size_t n_metrics;
} tnk_custom_loss_t;

/**
 * Computes a loss and its gradient from the log-probabilities of a forward
 * pass.
 *
 * @param io    See tnk_custom_loss_t.
 * @param user  As given.
 * @return 0, or any other number to give up: the promise then rejects with
 *         TNK_EUSER carrying that number as its cause, and nothing is sent.
 * Called once, on the loop thread. Every function of this library may be
 * called, but not tnk_wait(). One that takes long defers its answer.
 * Since: 0.1
 */
typedef int (*tnk_custom_loss_cb)(tnk_custom_loss_t *io, void *user);

/**
 * Say, from inside a custom loss function, that its answer comes later: the
 * loop goes on with heartbeats and polls while the loss is computed elsewhere,
 * as on a thread of uv_queue_work(). What the function returns does not count
 * then.
 *
 * @p io and all it points to stay as they are until tnk_custom_loss_finish();
 * one other thread may read and write them meanwhile. The operation keeps its
 * place in the queue. It may be canceled and the client closed, of which the
 * thread notices nothing: it has to be finished all the same, and until then
 * its memory stays and the client has not closed.
 *
 * @return TNK_OK; TNK_EINVAL when @p io is NULL or deferred already.
 * Thread: loop thread. Callable from callbacks: that function alone. Since: 0.1
 */
TNK_API int tnk_custom_loss_defer(tnk_custom_loss_t *io);

/**
 * Answer what was deferred, once. @p io is gone with it.
 *
 * @param status  What the function would have returned: 0, or a number to give
 *                up.
 * @return TNK_OK; TNK_ECANCELED when the operation was over already, and the
 *         answer is dropped; TNK_EREENTRANT inside the function that deferred,
 *         and nothing happens; TNK_EINVAL when @p io is NULL or was not
 *         deferred.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_custom_loss_finish(tnk_custom_loss_t *io, int status);

/**
 * Run a forward pass, let @p loss compute loss and gradients from the
 * log-probabilities, and run the backward pass with them.
 *
 * The whole operation holds one place in the queue: calls made after it
 * reach the service after its backward pass.
 *
 * @param data    Each needs "target_tokens". Copied, unless options->release
 *                is set.
 * @param n_data  At least 1.
 * @param loss    Called between the two passes.
 * @param user    Handed to @p loss.
 * @param options Without loss_fn, settings and loss. NULL for defaults.
 *
 * Protocol: training, forward_backward_custom.
 * @return A promise of tnk_pass_t, whose metric "loss:sum" is the loss that
 *         @p loss computed; the server's own is under "surrogate_loss:sum", and
 *         the metrics of @p loss are there too.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h),
 *   TNK_EUSER.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_forward_backward_custom(
    tnk_training_t *training, const tnk_datum_t *data, size_t n_data,
    tnk_custom_loss_cb loss, void *user, const tnk_pass_options_t *options);

/**
 * One step of an optimizer. TNK_OPTIM_INIT is a step of Adam with every number
 * absent, which stands for what the official client has:
 *
 *                    ADAMW    DIMUON
 *     learning_rate  0.0001   required   at least 0
 *     beta1          0.9      0.9        from 0, below 1
 *     beta2          0.95     -          from 0, below 1
 *     eps            1e-12    -          above 0
 *     weight_decay   0        -          at least 0
 *     grad_clip_norm 0        0          0: no clipping; for ADAMW at least 0
 *
 * Numbers are finite. One that the optimizer does not have (-) is refused, and
 * so is every number beside `json`.
 */
typedef struct {
  size_t size;               /**< Set by TNK_OPTIM_INIT. */
  tnk_optimizer_t optimizer; /**< What the model was created for. */
  uint32_t reserved;
  double learning_rate;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double grad_clip_norm;
  /** TNK_OPTIMIZER_RAW: an object with a text under "type", for an optimizer
   * that this library does not know; it is sent as it is. */
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

/** How to save. */
typedef struct {
  size_t size;            /**< Set by TNK_SAVE_OPTIONS_INIT. */
  uint64_t ttl_seconds;   /**< 0: kept until deleted. */
  tnk_choice_t overwrite; /**< save_state only. Default no. */
  uint32_t reserved;
  const tnk_pair_t *user_metadata; /**< Not for save_weights_external. */
  size_t n_user_metadata;
  const char *const *recipients; /**< save_weights_external: age or SSH keys;
                                      each file is encrypted for them. A secret
                                      key is refused, and not sent. */
  size_t n_recipients;
} tnk_save_options_t;

#define TNK_SAVE_OPTIONS_INIT TNK_SIZED(tnk_save_options_t)

/**
 * What was saved. Belongs to its promise, and may get more members.
 *
 * The counts are those of the sequence of operations, whatever the program
 * called meanwhile: a save that is called with steps in flight contains them.
 * They begin with 0 when the model is made, restored or loaded. What the
 * service has accepted before the save counts, unless it says that it failed,
 * as far as it has said so when the save ends.
 */
typedef struct {
  const char *path;  /**< "tinker://..."; of tnk_training_ready() or NULL. */
  uint64_t n_steps;  /**< Steps of the optimizer before it. */
  uint64_t n_passes; /**< Passes with gradients before it. */
} tnk_saved_t;

/**
 * What a save of a training client has saved; its path is that of
 * tnk_promise_path(). Also the result of tnk_training_ready().
 *
 * @return NULL unless resolved with that type. Lifetime: that of the promise.
 * Thread: loop thread. Since: 0.1
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
 *   TNK_ECONFLICT when the name exists, or TNK_EFAILED where the server learns
 *   of it only when it saves.
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
 * Export weights in a foreign layout. Protocol: training, JSON training
 * requests.
 *
 * @param name     Required. Copied.
 * @param options  NULL for defaults. Copied.
 * @return A promise of a path.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EUNSUPPORTED on servers without it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_save_weights_external(tnk_training_t *training, const char *name,
                                   const tnk_save_options_t *options);

/** Which weights a sampling client made from a training client uses. */
typedef enum {
  TNK_SAMPLING_SNAPSHOT = 0, /**< Frozen at the save. */
  TNK_SAMPLING_INFLIGHT = 1  /**< Moved by each later save of this kind. */
} tnk_sampling_kind_t;

/**
 * Save the current weights without a name and sample from them. Protocol:
 * training, snapshot and inflight samplers.
 *
 * @param kind     Whether later saves move it.
 * @param options  Without model_path, base_model and exported. NULL for
 *                 defaults.
 * @return A promise of tnk_sampling_t, as tnk_service_create_sampling().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_save_weights_and_get_sampling(
    tnk_training_t *training, tnk_sampling_kind_t kind,
    const tnk_sampling_options_t *options);

/** What to load into a model that exists. */
typedef struct {
  size_t size;      /**< Set by TNK_LOAD_OPTIONS_INIT. */
  const char *path; /**< Required: `tinker://RUN/weights/NAME`. */
  /** TNK_YES: moments and step count of the optimizer too. Default no. */
  tnk_choice_t with_optimizer;
  uint32_t reserved;
  const char *weights_access_token; /**< For somebody else's state. */
} tnk_load_options_t;

#define TNK_LOAD_OPTIONS_INIT TNK_SIZED(tnk_load_options_t)

/**
 * Load a saved state into this model, for servers that know it. Protocol:
 * training, JSON training requests.
 *
 * @param options  Copied.
 * @return A promise of a path.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND, or TNK_EFAILED where the server learns of a missing path
 *   only when it loads.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_training_load_state(tnk_training_t *training,
                        const tnk_load_options_t *options);

/** What the server said of a model; strings may be NULL. */
typedef struct {
  size_t size; /**< Set by TNK_TRAINING_INFO_INIT. */
  const char *model_id;
  const char *base_model;
  const char *arch;
  const char *tokenizer_id; /**< Cut at the first ":". */
  const char *optimizer;    /**< Type of the optimizer, "adamw" ... */
  uint32_t lora_rank;       /**< 0: not stated. */
  uint32_t reserved;
} tnk_training_info_t;

#define TNK_TRAINING_INFO_INIT TNK_SIZED(tnk_training_info_t)

/**
 * What is known of the model; fetched when it was created.
 *
 * @param[out] out  Begins with TNK_TRAINING_INFO_INIT. Filled, as far as its
 *                  size goes; the texts live as long as the client.
 * @param training  NULL, or closed: nothing is known.
 *
 * @return TNK_OK, or TNK_EINVAL for a size that is none of
 *         tnk_training_info_t.
 * Protocol: session, get info. Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_training_info(tnk_training_info_t *out,
                              const tnk_training_t *training);

/**
 * Train on with what the server has, after the client has stopped because the
 * server may have lost its memory (TNK_QUEUE_MEMORY_LOST of service.h). The
 * next operation goes under the next number, and nothing is restored. It is
 * better to restore a saved state (tnk_service_restore(), or
 * tnk_training_load_state() after this), unless the result was merely dropped
 * and the weights are known to be good.
 *
 * @return TNK_OK, also where it had not stopped; TNK_EINVAL for NULL;
 *         TNK_ECLOSED, TNK_ETHREAD, TNK_EFORKED.
 * Protocol: training, failure and cancellation.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_training_go_on(tnk_training_t *training);

/**
 * Wait until the client accepts operations, and learn from which step to
 * continue.
 *
 * After a loss, with the service's `recovery`, the promise resolves when the
 * model has been restored from its last saved or loaded state. A model that was
 * never saved is made again with the same options and seed, at step 0. A client
 * that has lost nothing resolves in the next turn of the loop.
 *
 * A service without on_recovery cannot tell the program that a model was
 * restored. Operations of the client therefore reject with TNK_ESESSION until
 * this function has been called.
 *
 * The result is read with tnk_promise_saved(): `n_steps` is the number of
 * optimizer steps that the weights contain, counted as for a save, so the
 * program continues with the next one. `path` is the state that was saved or
 * loaded last, or NULL.
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
 * Remove the model from the service; further operations on it fail there.
 * Protocol: session, unload.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EUNSUPPORTED on servers without it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_unload(tnk_training_t *training);

/**
 * Close the client; its model stays on the service.
 *
 * Everything pending rejects with TNK_ECLOSED, then @p cb runs. Until then
 * calls on the handle reject with TNK_ECLOSED, and a second close does nothing
 * and calls nothing. After that the handle is gone, unless a promise that
 * showed it still lives: then it goes on like that until that one is dropped.
 *
 * @param training  NULL calls nothing.
 * @param cb        May be NULL.
 * @param user      Handed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_training_close(tnk_training_t *training, tnk_close_cb cb,
                                void *user);

#ifdef __cplusplus
}
#endif

#endif
