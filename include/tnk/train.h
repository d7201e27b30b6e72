/* SPDX-License-Identifier: MIT */
#ifndef TNK_TRAIN_H
#define TNK_TRAIN_H

#include "tnk/observe.h"
#include "tnk/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The parts of a training run: which examples a step has, its learning rate,
 * the loss of data that are held out, and the file of metrics.
 *
 *     tnk_plan_options_t options = TNK_PLAN_OPTIONS_INIT;
 *     tnk_plan_t *plan;
 *     options.n_examples = n;
 *     options.n_batch = 32;
 *     options.n_epochs = 3;
 *     if (tnk_plan_new(&plan, &options, why, sizeof(why)) != TNK_OK)
 *       ...
 *     for (uint64_t step = first; step < tnk_plan_steps(plan); step++)
 *       for (uint64_t i = 0; i < tnk_plan_count(plan, step); i++)
 *         batch[i] = data[tnk_plan_example(plan, step, i)];
 *
 * A plan and a schedule are pure functions of the step. A run that is resumed
 * at a step makes the same plan again and needs no other state.
 */

/* ---- The examples of each step ---- */

/** The order in which examples are trained. */
typedef struct tnk_plan tnk_plan_t;

/** Options of a plan. 0 or NULL selects the default. */
typedef struct {
  size_t size;         /**< Set by TNK_PLAN_OPTIONS_INIT. */
  uint64_t n_examples; /**< Number of examples, from 1 to 2^40. */
  /** Examples of a step, from 1 to 2^20. May exceed n_examples. Set either this
   * or max_batch_tokens. */
  uint64_t n_batch;
  /** Tokens of a step: it has as many examples as fit, at least 1 and at most
   * 2^20. */
  uint64_t max_batch_tokens;
  /** [n_examples]: the number of tokens of each example. Required with
   * max_batch_tokens. Only read during the call. */
  const uint64_t *tokens;
  /** Length of the run: the number of times that each example is trained, at
   * most 2^20. 0 means 1, unless n_steps is set. */
  uint64_t n_epochs;
  /** Length of the run as a number of steps, instead of n_epochs: at most 2^40,
   * or 2^26 with max_batch_tokens. */
  uint64_t n_steps;
  uint64_t seed;                    /**< Selects the order. */
  const tnk_allocator_t *allocator; /**< Copied; NULL for malloc and its
                                         family. */
} tnk_plan_options_t;

#define TNK_PLAN_OPTIONS_INIT TNK_SIZED(tnk_plan_options_t)

/**
 * Create a plan.
 *
 * Each epoch has all examples once, in its own order. The epochs follow each
 * other without a gap: if the number of examples is not a multiple of the
 * batch, a step has the end of one epoch and the start of the next one. Only
 * the last step may be smaller; with n_steps it is not.
 *
 * The order depends on `n_examples` and `seed` only, on every machine. The plan
 * uses constant memory, except that max_batch_tokens needs 8 bytes for each
 * step.
 *
 * @param[out] out  The plan, which the caller must free. NULL after an error.
 * @param options   Required. Copied.
 * @param why       After an error, receives one sentence that names the invalid
 *                  option. May be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is truncated.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, a number out of its range, or options
 *         that exclude each other; TNK_ENOTSUP if @p options sets a field that
 *         this library does not know; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_plan_new(tnk_plan_t **out, const tnk_plan_options_t *options,
                         char *why, size_t why_size);

/** Free the plan. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_plan_free(tnk_plan_t *plan);

/** Get the number of steps. 0 for NULL. Thread: any. Since: 0.1 */
TNK_API uint64_t tnk_plan_steps(const tnk_plan_t *plan);

/** Get the number of examples of all steps. An example counts once for each
 * time that it is trained. 0 for NULL. Thread: any. Since: 0.1 */
TNK_API uint64_t tnk_plan_total(const tnk_plan_t *plan);

/** Get the number of examples of the largest step, for example to allocate
 * memory for a batch. 0 for NULL. Thread: any. Since: 0.1 */
TNK_API uint64_t tnk_plan_max_count(const tnk_plan_t *plan);

/**
 * Get the number of examples of a step.
 *
 * @param step  From 0.
 * @return 0 after the last step.
 * Thread: any. Since: 0.1
 */
TNK_API uint64_t tnk_plan_count(const tnk_plan_t *plan, uint64_t step);

/**
 * Get an example of a step.
 *
 * @param step  From 0.
 * @param i     Less than tnk_plan_count() of the step.
 * @return The index of the example, less than n_examples. UINT64_MAX if there
 *         is no such example.
 * Thread: any. Since: 0.1
 */
TNK_API uint64_t tnk_plan_example(const tnk_plan_t *plan, uint64_t step,
                                  uint64_t i);

/**
 * Get the number of epochs that are complete after @p n_steps steps, with their
 * fraction: 1.5 means that every example was trained once, and half of them a
 * second time.
 *
 * @return If the run has fewer steps, its length in epochs. 0 for NULL.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_plan_epoch(const tnk_plan_t *plan, uint64_t n_steps);

/**
 * Get an element of a permutation of the numbers from 0 to n - 1, in constant
 * memory. A plan uses it with the number of the epoch. For example, the first
 * elements of an epoch that no run reaches (UINT64_MAX) are a random choice of
 * examples to hold out.
 *
 * @param seed, epoch  Select the permutation.
 * @param n            From 1 to 2^62.
 * @param i            Less than @p n.
 * @return A number below @p n; UINT64_MAX if @p n or @p i is out of range.
 * Thread: any. Since: 0.1
 */
TNK_API uint64_t tnk_shuffle(uint64_t seed, uint64_t epoch, uint64_t n,
                             uint64_t i);

/* ---- The learning rate ---- */

/** How a learning rate decays after the warm-up. */
typedef enum {
  TNK_DECAY_CONSTANT = 0, /**< The rate stays at the peak. */
  TNK_DECAY_LINEAR = 1,   /**< It falls to 0 on a straight line. */
  TNK_DECAY_COSINE = 2    /**< It falls to 0 as half a period of a cosine. */
} tnk_decay_t;

/**
 * The learning rate of each step. It rises in equal parts during the warm-up,
 * whose last step has the peak. Then it decays until the end of the run. It
 * reaches 0 after the last step, so the last step still learns.
 */
typedef struct {
  size_t size; /**< Set by TNK_SCHEDULE_INIT. */
  tnk_decay_t decay;
  uint32_t reserved;
  double peak;        /**< The highest rate, at least 0. */
  uint64_t n_warm_up; /**< Steps of the warm-up; 0 means none. */
  /** Steps of the run, including the warm-up. May be 0 if the rate is
   * constant. */
  uint64_t n_steps;
} tnk_schedule_t;

#define TNK_SCHEDULE_INIT TNK_SIZED(tnk_schedule_t)

/**
 * Compute the learning rate of a step.
 *
 * @param schedule  Required.
 * @param step      From 0. Steps after the run have the rate at the end of the
 *                  decay.
 * @return NaN for an invalid schedule: NULL, an unknown decay, a peak that is
 *         negative or not finite, a decay over no steps, or a field that this
 *         library does not know. tnk_training_optim_step() rejects NaN.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_schedule_rate(const tnk_schedule_t *schedule, uint64_t step);

/**
 * Get a peak for fine-tuning with LoRA by the number of parameters in a model's
 * name, such as 8B. Larger models get smaller rates: 5e-4 below 2B, 3e-4 below
 * 16B, 2e-4 below 100B, otherwise 1e-4. For preference pairs and reinforcement
 * learning, a tenth of it is a better start.
 *
 * @param model  For example "Qwen/Qwen3-8B". NULL is a name without a number.
 * @return 1e-4 if the name has no number of parameters; 0.01 for "tnk/byte-lm",
 *         the tiny model of the local server.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_default_rate(const char *model);

/* ---- Losses ---- */

/**
 * Get the total weight of the targets of examples. Divide a summed loss by it
 * to get the mean per token.
 *
 * @param data    [n_data]. A token without weights has the weight 1. If an
 *                example has logprobs, as those of reinforcement learning, its
 *                weight is the number of its sampled tokens: those whose
 *                logprob is not 0.
 * @param n_data  0 gives 0.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_data_weight(const tnk_datum_t *data, size_t n_data);

/**
 * Get the summed loss of a pass: the metric "loss:sum". If the server has sent
 * no metrics at all, it is tnk_pass_loss(), which the library computes then.
 *
 * @return NaN for NULL, and if there is no such sum.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_pass_loss_sum(const tnk_pass_t *pass);

/** Options of an evaluation. 0 or NULL selects the default. */
typedef struct {
  size_t size;         /**< Set by TNK_EVAL_OPTIONS_INIT. */
  const char *loss_fn; /**< NULL means "cross_entropy". */
  size_t n_batch;      /**< Examples of a pass, at most. 0 means 1,024. */
} tnk_eval_options_t;

#define TNK_EVAL_OPTIONS_INIT TNK_SIZED(tnk_eval_options_t)

/** The result of an evaluation. Only the library creates this struct, so later
 * versions may append members. */
typedef struct {
  /** Mean per token: loss_sum / weight. NaN if the weight is 0. */
  double loss;
  double loss_sum;   /**< Sum of tnk_pass_loss_sum() of the passes. */
  double weight;     /**< tnk_data_weight() of the examples. */
  uint64_t n_tokens; /**< Tokens of the model inputs. */
  size_t n_data;     /**< Examples. */
  size_t n_passes;
} tnk_eval_t;

/**
 * Compute the loss of examples, for example of held-out data, with forward
 * passes. The model does not change.
 *
 * Order: all passes take their places in the sequence of @p training with this
 * call. They use the weights after the operations called before it, whatever
 * is called after it.
 *
 * @param data     Examples, as for tnk_training_forward(). Copied.
 * @param n_data   At least 1. If there are more than options->n_batch, there
 *                 are several passes.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: it resolves when all passes have resolved. If a pass rejects, the
 * promise rejects with its error, and the other passes are canceled. Cancel
 * cancels the passes.
 *
 * @return A promise of tnk_promise_eval().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_training_evaluate(tnk_training_t *training,
                                             const tnk_datum_t *data,
                                             size_t n_data,
                                             const tnk_eval_options_t *options);

/**
 * Get the result of tnk_training_evaluate().
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 *         promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_eval_t *tnk_promise_eval(const tnk_promise_t *promise);

/* ---- Metrics ---- */

/*
 * The file metrics.jsonl has one line for each step, which tnk_numbers_append()
 * writes. A run that continues at an earlier step removes the later lines
 * first, so that each step has exactly one line:
 *
 *     tnk_numbers_rewind("run/metrics.jsonl", first);
 *     ...
 *     tnk_numbers_append("run/metrics.jsonl", step + 1, numbers, n);
 *
 * A state that is saved must not be ahead of the lines: after a loss of power
 * the run would continue behind steps without metrics. So wait for
 * tnk_numbers_sync() before you save.
 *
 * tnk_numbers_rewind() and tnk_numbers_last() set errno if they return
 * TNK_EFILE. They allocate no memory, even if lines are long.
 */

/**
 * Remove the lines of metrics after a step, and an incomplete last line. A line
 * that has no step is kept if no removed line is before it.
 *
 * @param path     The file. A file that does not exist has no lines.
 * @param n_steps  The last step to keep. Steps must ascend in the file.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE if the file cannot be read or
 *         written, or is not a regular file.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_numbers_rewind(const char *path, uint64_t n_steps);

/**
 * Find the last step that has a complete line of metrics.
 *
 * @param path          The file. A file that does not exist has no lines.
 * @param[out] n_steps  The step; 0 if there is none, and after an error.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE if the file cannot be read, or
 *         is not a regular file.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_numbers_last(const char *path, uint64_t *n_steps);

/**
 * Write the lines of metrics to the disk, so that they exist after a loss of
 * power: all lines that were appended before the call. A thread of libuv's pool
 * waits for the disk, so the loop does not.
 *
 * Completion: after a cancel the file is still written to the disk. Closing the
 * service does not cancel it.
 *
 * @param service  Its loop is used. Nothing is sent to the server.
 * @param path     The file, at most 4095 bytes. Copied. A file that does not
 *                 exist has no lines.
 *
 * @return A promise without a result.
 * Rejects with: Caller (groups of error.h): TNK_EINVAL; TNK_EFILE
 *   (error->cause is libuv's code).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_numbers_sync(tnk_service_t *service,
                                        const char *path);

#ifdef __cplusplus
}
#endif

#endif
