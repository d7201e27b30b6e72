#ifndef TNK_RL_H
#define TNK_RL_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Numbers for reinforcement learning: pure functions over the caller's arrays.
 * They allocate nothing, keep nothing, and may be called from any thread.
 * Logarithms are natural, sums are made in double precision, and what is not
 * finite in an array makes the result not finite rather than being left out.
 *
 * In all of them
 *
 *   sampled  log-probabilities that tokens were drawn with, of
 *            tnk_samples_logprobs(): log q(x)
 *   trained  those that the model gives the same tokens now, of
 *            tnk_pass_tensor() under "logprobs": log p(x)
 *   weights  how much each token counts, at least 0, as a mask of 0 and 1;
 *            NULL: all 1
 *
 * A mean over nothing, or over weights that are all 0, is NaN.
 */

/** What a reward is compared with inside of its group. */
typedef enum {
  /** r - mean. Without the division below, which favours groups whose rewards
   * hardly differ. Liu et al. 2025, "Understanding R1-Zero-Like Training". */
  TNK_ADVANTAGE_CENTERED = 0,
  /** (r - mean) / standard deviation, that of the group itself (divided by its
   * size); 0 where all rewards are equal. Shao et al. 2024, "DeepSeekMath"
   * (GRPO). */
  TNK_ADVANTAGE_NORMALIZED = 1,
  /** r - mean of the others, 0 in a group of one. Kool et al. 2019, "Buy 4
   * REINFORCE Samples, Get a Baseline for Free!" (RLOO). */
  TNK_ADVANTAGE_LEAVE_ONE_OUT = 2
} tnk_advantage_t;

/**
 * Advantages of rewards in groups: those of all samples of one prompt follow
 * each other.
 *
 * @param[out] advantages  [n]; may be @p rewards.
 * @param rewards          [n].
 * @param n                A multiple of @p group_size.
 * @param group_size       At least 1.
 * @param kind             What each is compared with.
 *
 * @return TNK_OK, or TNK_EINVAL for sizes and a kind that are none; nothing is
 *         written then.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_rl_group_advantages(float *advantages, const float *rewards,
                                    size_t n, size_t group_size,
                                    tnk_advantage_t kind);

/**
 * Discounted sums of what follows, itself included: g[t] = r[t] + discount
 * g[t+1]. Sutton and Barto, "Reinforcement Learning", equation 3.9.
 *
 * @param[out] sums  [n]; may be @p rewards.
 * @param rewards    [n], in the order of time.
 * @param discount   From 0 to 1; 1 adds up.
 *
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_discounted_sums(float *sums, const float *rewards, size_t n,
                                    double discount);

/**
 * Estimators of the divergence KL(q, p) from tokens that were drawn from q;
 * with r = log p(x) - log q(x). Schulman 2020, "Approximating KL Divergence".
 */
typedef enum {
  TNK_KL_K1 = 1, /**< -r: no bias, much variance, and negative at times. */
  TNK_KL_K2 = 2, /**< r^2 / 2: biased, little variance. */
  TNK_KL_K3 = 3  /**< exp(r) - 1 - r: no bias, never negative. */
} tnk_kl_t;

/**
 * A mean estimate of KL(q, p), a token.
 *
 * @param sampled, trained, weights  [n], as above; the model that is compared
 *                                   with may be any.
 * @return The estimate; NaN for a @p kind that is none.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl(const float *sampled, const float *trained,
                         const float *weights, size_t n, tnk_kl_t kind);

/**
 * The same for each token by itself, as a penalty on its reward wants it.
 *
 * @param[out] out  [n]; may be one of the other two. NaN for a @p kind that is
 *                  none.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_kl_tokens(float *out, const float *sampled,
                              const float *trained, size_t n, tnk_kl_t kind);

/**
 * Importance ratios p(x) / q(x) of each token.
 *
 * @param[out] ratios  [n]; may be one of the other two.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_ratios(float *ratios, const float *sampled,
                           const float *trained, size_t n);

/**
 * How far the model that is trained has moved from the one that was sampled
 * from, or how much their numerics differ when it has not moved. All are means
 * over tokens by their weights unless it is said otherwise.
 */
typedef struct {
  size_t size;              /**< Set by TNK_DRIFT_INIT. */
  size_t n;                 /**< Tokens that count: of weight above 0. */
  double log_ratio;         /**< log p - log q; -k1. */
  double abs_log_ratio;     /**< Its magnitude. */
  double max_abs_log_ratio; /**< The largest of them. */
  double k2;
  double k3;
  double ratio; /**< p / q; 1 where nothing has moved. */
  double min_ratio;
  double max_ratio;
  double ratio_variance;   /**< Of p / q about its mean. */
  double effective_tokens; /**< tnk_rl_effective_sample_size() of the ratios,
                                each times its weight; at most n. */
} tnk_drift_t;

#define TNK_DRIFT_INIT TNK_SIZED(tnk_drift_t)

/**
 * Statistics of the drift between sampler and trainer.
 *
 * @param[out] out  Begins with TNK_DRIFT_INIT. Filled, as far as its size goes.
 * @param sampled, trained, weights  [n], as above.
 *
 * @return TNK_OK, or TNK_EINVAL for a size that is none of tnk_drift_t.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_rl_drift(tnk_drift_t *out, const float *sampled,
                         const float *trained, const float *weights, size_t n);

/**
 * How many equal samples are worth as much as these: (sum w)^2 / sum w^2. Kish
 * 1965, "Survey Sampling".
 *
 * @param log_weights  [n], log w, as differences of log-probabilities are;
 * those of -infinity weigh nothing. However large they are, nothing overflows.
 * @return From 1 to n; 0 where nothing weighs anything.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_effective_sample_size(const float *log_weights, size_t n);

/**
 * An estimate of a model's entropy a token, in nats, from what was drawn: the
 * mean of -log q(x).
 *
 * @param sampled, weights  [n], as above.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_sampled_entropy(const float *sampled,
                                      const float *weights, size_t n);

/**
 * The entropy of one distribution, in nats: -sum p log p.
 *
 * @param logprobs  [n], of all tokens; -infinity for those that cannot come. Of
 *                  the likeliest ones alone, as sampling tells them, it is a
 *                  lower bound.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_entropy(const float *logprobs, size_t n);

#ifdef __cplusplus
}
#endif

#endif
