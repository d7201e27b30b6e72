/* SPDX-License-Identifier: MIT */
#ifndef TNK_RL_H
#define TNK_RL_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Arithmetic for reinforcement learning: pure functions on the caller's arrays.
 * They allocate nothing, keep no state, and may be called from any thread.
 * Logarithms are natural. Terms may be computed in single precision, with a
 * relative error of at most 1e-6, and are summed in double precision. A value
 * that is not finite makes the result not finite; it is never skipped.
 *
 * Common parameters:
 *
 * - `sampled`: log q(x), the logprobs of the sampled tokens under the sampler,
 *   from tnk_samples_logprobs().
 * - `trained`: log p(x), the logprobs of the same tokens under the trained
 *   model, from tnk_pass_tensor() with the name "logprobs".
 * - `weights`: the weight of each token, at least 0, for example a mask of 0
 *   and 1. NULL means 1 for every token.
 *
 * A mean of no values, or with all weights 0, is NaN.
 */

/** Baseline and scale of a reward within its group. */
typedef enum {
  /** r - mean. It has no division by the standard deviation, which favors
   * groups with similar rewards. Liu et al. 2025, "Understanding R1-Zero-Like
   * Training". */
  TNK_ADVANTAGE_CENTERED = 0,
  /** (r - mean) / standard deviation, with the population standard deviation of
   * the group. 0 if all rewards are equal. Shao et al. 2024, "DeepSeekMath"
   * (GRPO). */
  TNK_ADVANTAGE_NORMALIZED = 1,
  /** r - mean of the other rewards; 0 in a group of one. Kool et al. 2019, "Buy
   * 4 REINFORCE Samples, Get a Baseline for Free!" (RLOO). */
  TNK_ADVANTAGE_LEAVE_ONE_OUT = 2
} tnk_advantage_t;

/**
 * Compute the advantages of rewards in groups. The samples of one prompt form a
 * group and are adjacent in the array.
 *
 * @param[out] advantages  [n]; may be @p rewards.
 * @param rewards          [n].
 * @param n                A multiple of @p group_size.
 * @param group_size       At least 1.
 * @param kind             Baseline and scale.
 *
 * @return TNK_OK, or TNK_EINVAL for invalid sizes or an unknown kind. After an
 *         error nothing was written.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_rl_group_advantages(float *advantages, const float *rewards,
                                    size_t n, size_t group_size,
                                    tnk_advantage_t kind);

/**
 * Compute discounted returns: g[t] = r[t] + discount * g[t+1]. Sutton and
 * Barto, "Reinforcement Learning", equation 3.9.
 *
 * @param[out] sums  [n]; may be @p rewards.
 * @param rewards    [n], in time order.
 * @param discount   From 0 to 1; 1 means no discount.
 *
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_discounted_sums(float *sums, const float *rewards, size_t n,
                                    double discount);

/**
 * Estimators of the divergence KL(q, p) from tokens that were sampled from q,
 * with r = log p(x) - log q(x). Schulman 2020, "Approximating KL Divergence".
 */
typedef enum {
  TNK_KL_K1 = 1, /**< -r: unbiased, high variance, can be negative. */
  TNK_KL_K2 = 2, /**< r^2 / 2: biased, low variance. */
  TNK_KL_K3 = 3  /**< exp(r) - 1 - r: unbiased, never negative. */
} tnk_kl_t;

/**
 * Estimate the mean of KL(q, p) per token.
 *
 * @param sampled, trained, weights  [n], as above. `trained` may also come from
 *                                   another model.
 * @return The estimate; NaN for an unknown @p kind.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl(const float *sampled, const float *trained,
                         const float *weights, size_t n, tnk_kl_t kind);

/**
 * Estimate KL(q, p) for each token, for example as a penalty on its reward.
 *
 * @param[out] out  [n]; may be one of the input arrays. NaN for an unknown
 *                  @p kind.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_kl_tokens(float *out, const float *sampled,
                              const float *trained, size_t n, tnk_kl_t kind);

/**
 * Compute the importance ratio p(x) / q(x) of each token.
 *
 * @param[out] ratios  [n]; may be one of the input arrays.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API void tnk_rl_ratios(float *ratios, const float *sampled,
                           const float *trained, size_t n);

/**
 * Drift: the distance between the trained model and the sampler. If the weights
 * are the same, it shows their numerical differences. The members are weighted
 * means per token, except where noted.
 */
typedef struct {
  size_t size;              /**< Set by TNK_DRIFT_INIT. */
  size_t n;                 /**< Number of tokens with a weight above 0. */
  double log_ratio;         /**< log p - log q; -k1. */
  double abs_log_ratio;     /**< Absolute value of log_ratio. */
  double max_abs_log_ratio; /**< Maximum, not a mean. */
  double k2;
  double k3;
  double ratio; /**< p / q; 1 if there is no drift. */
  double min_ratio;
  double max_ratio;
  double ratio_variance;   /**< Variance of p / q. */
  double effective_tokens; /**< tnk_rl_effective_sample_size() of ratio times
                                weight; at most n. */
} tnk_drift_t;

#define TNK_DRIFT_INIT TNK_SIZED(tnk_drift_t)

/**
 * Compute the drift between sampler and trainer.
 *
 * @param[out] out  Initialize it with TNK_DRIFT_INIT. Members within its size
 *                  are set.
 * @param sampled, trained, weights  [n], as above.
 *
 * @return TNK_OK, or TNK_EINVAL if the size is not a size of tnk_drift_t.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_rl_drift(tnk_drift_t *out, const float *sampled,
                         const float *trained, const float *weights, size_t n);

/**
 * Compute the effective sample size (sum w)^2 / sum w^2. Kish 1965, "Survey
 * Sampling".
 *
 * @param log_weights  [n], log w, for example differences of logprobs.
 *                     -infinity means a weight of 0. Large values do not
 *                     overflow.
 * @return From 1 to n; 0 if all weights are 0.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_effective_sample_size(const float *log_weights, size_t n);

/**
 * Estimate the entropy of a model per token, in nats: the mean of -log q(x) of
 * the sampled tokens.
 *
 * @param sampled, weights  [n], as above.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_sampled_entropy(const float *sampled,
                                      const float *weights, size_t n);

/**
 * Compute the entropy of one distribution, in nats: -sum p log p.
 *
 * @param logprobs  [n], of all tokens; -infinity means a probability of 0. With
 *                  the top-k logprobs of a sample the result is a lower
 *                  bound.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_entropy(const float *logprobs, size_t n);

/*
 * Losses and regularizers for tnk_training_forward_backward_custom(). Each
 * function returns its value times a factor, and adds the derivative of this
 * product to a gradient. To combine the terms of a loss, call their functions
 * one after another for each example:
 *
 *     tnk_rl_tokens_t t = {.n = n, .reference = sampled,
 *                          .logprobs = io->logprobs[i].data,
 *                          .gradient = io->gradients[i]};
 *     io->loss += tnk_rl_ppo(&t, advantages, 0.8, 1.2, 1.0 / n_tokens);
 *     io->loss += tnk_rl_kl_penalty(&t, TNK_KL_K3, 0.01 / n_tokens);
 *
 * To measure the contribution of one term, or the norm of its gradient
 * (tnk_rl_norm()), call its function with a separate gradient. Each token is
 * computed in single precision.
 */

/** The tokens of one sequence. */
typedef struct {
  size_t n;
  const float *logprobs;  /**< [n], of the trained model. */
  const float *reference; /**< [n], of the sampler, or of another model. */
  const float *weights;   /**< [n], at least 0. NULL means 1 for every token.
                               The other values of a token with weight 0 are
                               ignored. */
  float *gradient;        /**< [n], to which the derivative is added. NULL
                               computes only the value. */
} tnk_rl_tokens_t;

/**
 * Importance sampling, the service's loss "importance_sampling": the sum of
 * -r A. r = exp(logprobs - reference) is the importance ratio and A is the
 * advantage. Sutton and Barto, "Reinforcement
 * Learning", section 5.5, with the gradient of section 13.3.
 *
 * @param advantages  [n].
 * @param scale       Factor of the sum.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_importance_sampling(const tnk_rl_tokens_t *tokens,
                                          const float *advantages,
                                          double scale);

/**
 * PPO, the service's loss "ppo": the sum of -min(r A, clip(r, low, high) A).
 * Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation 7,
 * in which the bounds are 1 - epsilon and 1 + epsilon.
 *
 * @param advantages  [n].
 * @param low, high   Bounds of the ratio. The service uses 0.8 and 1.2.
 * @param scale       Factor of the sum.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_ppo(const tnk_rl_tokens_t *tokens,
                          const float *advantages, double low, double high,
                          double scale);

/**
 * CISPO, the service's loss "cispo": the sum of -clip(r, low, high) A log p.
 * The clipped ratio is treated as a constant, so every token keeps its
 * gradient. MiniMax 2025, "MiniMax-M1", section 3.1.
 *
 * @param advantages  [n].
 * @param low, high   Bounds of the ratio. The service uses 0 and 4.
 * @param scale       Factor of the sum.
 * @return The value. Only its gradient has a meaning as an objective. Never
 *         fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_cispo(const tnk_rl_tokens_t *tokens,
                            const float *advantages, double low, double high,
                            double scale);

/**
 * DPO: -log sigmoid(beta d) for a pair of sequences. d is the sum of
 * weight * (logprobs - reference) over the chosen sequence, minus the same sum
 * over the rejected sequence. Rafailov et al. 2023, "Direct Preference
 * Optimization", equation 7.
 *
 * @param chosen, rejected  The weights of prompt tokens must be 0.
 * @param beta              Strength of the reference; 0.1 is usual.
 * @param scale             Factor of the loss.
 * @param[out] margin       Receives beta d. Above 0 means that the model
 * prefers the chosen sequence. May be NULL.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_dpo(const tnk_rl_tokens_t *chosen,
                          const tnk_rl_tokens_t *rejected, double beta,
                          double scale, double *margin);

/**
 * Penalty for the distance from a reference model: the sum of estimates of
 * KL(model, reference). The tokens must be sampled from the model. In the
 * formulas of tnk_kl_t, r is reference - logprobs. GRPO uses k3.
 *
 * @param scale  Factor of the sum: the KL coefficient.
 * @return The value; NaN for an unknown @p kind, which adds nothing to the
 *         gradient.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                                 double scale);

/** Direction of a divergence between two distributions. Kullback and
 * Leibler 1951, "On Information and Sufficiency". */
typedef enum {
  TNK_KL_FORWARD = 0,  /**< KL(model, reference): sum of p (log p - log q). */
  TNK_KL_REVERSE = 1,  /**< KL(reference, model): sum of q (log q - log p). */
  TNK_KL_SYMMETRIC = 2 /**< Mean of both: half of Jeffreys 1946. */
} tnk_kl_direction_t;

/**
 * Compute the divergence of two distributions over the same outcomes, for
 * example over the top-k tokens of one position.
 *
 * @param[in,out] gradient  [n], partial derivatives by @p logprobs. May be
 * NULL.
 * @param logprobs          [n], of the model, finite.
 * @param reference         [n], finite.
 * @param scale             Factor of the divergence.
 * @return The value; NaN for an unknown @p direction, which adds nothing to the
 *         gradient.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl_exact(float *gradient, const float *logprobs,
                               const float *reference, size_t n,
                               tnk_kl_direction_t direction, double scale);

/**
 * Compute the entropy of softmax(logits / temperature), in nats. A negative
 * factor makes it an entropy bonus, which delays the collapse of a policy.
 * Williams and Peng 1991, "Function Optimization Using Connectionist
 * Reinforcement Learning Algorithms".
 *
 * @param[in,out] gradient  [n], derivatives by @p logits. May be NULL.
 * @param logits            [n], logprobs, or logprobs plus a constant.
 * -infinity means a probability of 0.
 * @param temperature       Above 0; 1 leaves the logits unchanged.
 * @param scale             Factor of the entropy. A positive factor penalizes
 *                          entropy.
 * @return The value; NaN for an invalid @p temperature, which adds nothing to
 *         the gradient.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_entropy_penalty(float *gradient, const float *logits,
                                      size_t n, double temperature,
                                      double scale);

/**
 * Elastic net: the sum of weight * (l1 |d| + l2 d^2) with d = value -
 * reference. Without a reference it is a penalty on large values: L1
 * (Tibshirani 1996, "Regression Shrinkage and Selection via the Lasso"), L2, or
 * both (Zou and Hastie 2005, "Regularization and Variable Selection via the
 * Elastic Net"). With a reference it is a consistency loss between two views of
 * the same tokens. The derivative of |d| at 0 is defined as 0.
 *
 * @param[in,out] gradient  [n], derivatives by @p values. May be NULL.
 * @param values            [n].
 * @param reference         [n]. NULL means 0 for every value.
 * @param weights           [n], at least 0. NULL means 1 for every value.
 * @param l1, l2            Coefficients, at least 0.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_elastic_net(float *gradient, const float *values,
                                  const float *reference, const float *weights,
                                  size_t n, double l1, double l2);

/**
 * Centered L2: the sum of (value - mean)^2, with the mean of the values.
 *
 * @param[in,out] gradient  [n], derivatives by @p values. May be NULL.
 * @param values            [n].
 * @param scale             Factor of the sum.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_l2_centered(float *gradient, const float *values,
                                  size_t n, double scale);

/**
 * Soft orthogonality: |X X^T - I|^2, the sum of the squares of all elements. It
 * is 0 if the rows are orthonormal. Bansal et al. 2018, "Can
 * We Gain More from Orthogonality Regularizations in Training Deep CNNs?".
 *
 * @param[in,out] gradient   [n_rows, n_columns], derivatives by @p values. May
 *                           be NULL.
 * @param values             [n_rows, n_columns] in row-major order.
 * @param n_rows, n_columns  The time is proportional to n_rows^2 * n_columns.
 * @param scale              Factor of the sum.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_orthogonality(float *gradient, const float *values,
                                    size_t n_rows, size_t n_columns,
                                    double scale);

/**
 * Gradient penalty: (|g| - target)^2 for the gradient g of another loss.
 * Gulrajani et al. 2017, "Improved Training of Wasserstein GANs", equation 3.
 * There g is taken at points between two sequences. The derivative by a
 * sequence is then the derivative by the point times the share of the sequence;
 * include this share in @p curvature.
 *
 * @param[in,out] gradient  [n]. May be NULL.
 * @param slope             [n], the gradient g of the other loss.
 * @param curvature         [n], the product H g with the Hessian H of the other
 *                          loss. For a loss that is a sum over tokens, it is
 * the second derivative times the first for each token. May be NULL if @p
 * gradient is NULL.
 * @param target            Wanted length of g.
 * @param scale             Factor of the penalty.
 * @return The value. If g is 0, nothing is added to the gradient. Never fails.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_gradient_penalty(float *gradient, const float *slope,
                                       const float *curvature, size_t n,
                                       double target, double scale);

/**
 * Compute the Euclidean norm of a vector, for example of a gradient.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_norm(const float *values, size_t n);

#ifdef __cplusplus
}
#endif

#endif
