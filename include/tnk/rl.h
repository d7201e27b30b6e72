#ifndef TNK_RL_H
#define TNK_RL_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Numbers for reinforcement learning: pure functions over the caller's arrays.
 * They allocate nothing, keep nothing, and may be called from any thread.
 * Logarithms are natural, sums are made in double precision of what may have
 * been worked out in single precision, to 1e-6 of it, and what is not finite in
 * an array makes the result not finite rather than being left out.
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

/*
 * Losses and regularizers, for tnk_training_forward_backward_custom(). Each
 * returns its value times a factor of the caller's, and adds the derivative of
 * that to a gradient: the terms of a loss are called one after the other, for
 * each example,
 *
 *     tnk_rl_tokens_t t = {.n = n, .reference = sampled,
 *                          .logprobs = io->logprobs[i].data,
 *                          .gradient = io->gradients[i]};
 *     io->loss += tnk_rl_ppo(&t, advantages, 0.8, 1.2, 1.0 / n_tokens);
 *     io->loss += tnk_rl_kl_penalty(&t, TNK_KL_K3, 0.01 / n_tokens);
 *
 * and what one of them contributes, or the norm of its gradient
 * (tnk_rl_norm()), is learnt by calling it with a gradient of its own. Each
 * token is worked out in single precision.
 */

/** Tokens of a sequence. */
typedef struct {
  size_t n;
  const float *logprobs;  /**< [n], of the model that is trained. */
  const float *reference; /**< [n], what they are compared with: those that the
                               tokens were sampled with, or of another model. */
  const float *weights;   /**< [n], at least 0; NULL: all 1. What weighs 0 may
                               be anything. */
  float *gradient;        /**< [n], to be added to; NULL: the value alone. */
} tnk_rl_tokens_t;

/**
 * Importance sampling: the sum of -r A, where r = exp(logprobs - reference) is
 * the ratio of the probabilities and A the advantage. The loss
 * "importance_sampling" of the service. Sutton and Barto, "Reinforcement
 * Learning", section 5.5, with the gradient of section 13.3.
 *
 * @param advantages  [n].
 * @param scale       Times which the sum is taken.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_importance_sampling(const tnk_rl_tokens_t *tokens,
                                          const float *advantages,
                                          double scale);

/**
 * PPO: the sum of -min(r A, clip(r, low, high) A), the service's "ppo".
 * Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation 7,
 * which has 1 - epsilon and 1 + epsilon for the bounds.
 *
 * @param advantages  [n].
 * @param low, high   Bounds of the ratio; the service's are 0.8 and 1.2.
 * @param scale       Times which the sum is taken.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_ppo(const tnk_rl_tokens_t *tokens,
                          const float *advantages, double low, double high,
                          double scale);

/**
 * CISPO: the sum of -clip(r, low, high) A log p, where the clipped ratio counts
 * as a constant, so that no token loses its gradient; the service's "cispo".
 * MiniMax 2025, "MiniMax-M1", section 3.1.
 *
 * @param advantages  [n].
 * @param low, high   Bounds of the ratio; the service's are 0 and 4.
 * @param scale       Times which the sum is taken.
 * @return The value; it is no objective, only its gradient is meant. Never
 *         fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_cispo(const tnk_rl_tokens_t *tokens,
                            const float *advantages, double low, double high,
                            double scale);

/**
 * DPO: -log sigmoid(beta d) of a pair of sequences, where d is by how much more
 * the model has come to like the chosen one than the rejected one: the sum of
 * weight (logprobs - reference) of the first, less that of the second. Rafailov
 * et al. 2023, "Direct Preference Optimization", equation 7.
 *
 * @param chosen, rejected  Weights are 0 for the prompt.
 * @param beta              How far it may go from the reference; 0.1 is usual.
 * @param scale             Times which the loss is taken.
 * @param[out] margin       beta d; above 0 the pair is in order. May be NULL.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_dpo(const tnk_rl_tokens_t *chosen,
                          const tnk_rl_tokens_t *rejected, double beta,
                          double scale, double *margin);

/**
 * A penalty for leaving a reference model, of tokens that were drawn from the
 * model itself: the sum of estimates of KL(model, reference), with
 * r = reference - logprobs in the formulas of tnk_kl_t. GRPO has k3.
 *
 * @param scale  Times which the sum is taken; the coefficient.
 * @return The value; NaN for a @p kind that is none, and nothing is added then.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                                 double scale);

/** Between which of two distributions a divergence is taken. Kullback and
 * Leibler 1951, "On Information and Sufficiency". */
typedef enum {
  TNK_KL_FORWARD = 0,  /**< KL(model, reference): sum of p (log p - log q). */
  TNK_KL_REVERSE = 1,  /**< KL(reference, model): sum of q (log q - log p). */
  TNK_KL_SYMMETRIC = 2 /**< The mean of both; Jeffreys 1946, half of his. */
} tnk_kl_direction_t;

/**
 * The divergence of two distributions over the same outcomes, such as the
 * likeliest tokens of one place.
 *
 * @param[in,out] gradient  [n], by @p logprobs, each for itself; NULL: none.
 * @param logprobs          [n], of the model, finite.
 * @param reference         [n], finite.
 * @param scale             Times which it is taken.
 * @return The value; NaN for a @p direction that is none, and nothing is added
 *         then.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_kl_exact(float *gradient, const float *logprobs,
                               const float *reference, size_t n,
                               tnk_kl_direction_t direction, double scale);

/**
 * The entropy of softmax(logits / temperature), in nats. With a factor below 0
 * it is what keeps a policy from settling too early: Williams and Peng 1991,
 * "Function Optimization Using Connectionist Reinforcement Learning
 * Algorithms".
 *
 * @param[in,out] gradient  [n], by @p logits; NULL: none.
 * @param logits            [n], log-probabilities or what differs from them by
 *                          a constant; -infinity for what cannot come.
 * @param temperature       Above 0; 1 leaves them as they are.
 * @param scale             Times which it is taken: above 0 penalizes it.
 * @return The value; NaN for a @p temperature that is none, and nothing is
 *         added then.
 * Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_entropy_penalty(float *gradient, const float *logits,
                                      size_t n, double temperature,
                                      double scale);

/**
 * Distances to a reference: the sum of weight (l1 |d| + l2 d^2) with
 * d = value - reference. Without a reference it keeps values small: L1
 * (Tibshirani 1996, "Regression Shrinkage and Selection via the Lasso"), L2, or
 * both, the elastic net (Zou and Hastie 2005, "Regularization and Variable
 * Selection via the Elastic Net"). With one it asks for consistency: what two
 * views of the same tokens got is to be alike. The slope of |d| at 0 is 0.
 *
 * @param[in,out] gradient  [n], by @p values; NULL: none.
 * @param values            [n].
 * @param reference         [n]; NULL: all 0.
 * @param weights           [n], at least 0; NULL: all 1.
 * @param l1, l2            Coefficients, at least 0.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_elastic_net(float *gradient, const float *values,
                                  const float *reference, const float *weights,
                                  size_t n, double l1, double l2);

/**
 * L2 about the mean of the values: the sum of (value - mean)^2.
 *
 * @param[in,out] gradient  [n], by @p values; NULL: none.
 * @param values            [n].
 * @param scale             Times which it is taken.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_l2_centered(float *gradient, const float *values,
                                  size_t n, double scale);

/**
 * Soft orthogonality: |X X^T - I|^2, the sum of squares of all elements, which
 * is 0 where the rows are orthogonal and of length 1. Bansal et al. 2018, "Can
 * We Gain More from Orthogonality Regularizations in Training Deep CNNs?".
 *
 * @param[in,out] gradient   [n_rows, n_columns], by @p values; NULL: none.
 * @param values             [n_rows, n_columns], row by row.
 * @param n_rows, n_columns  It takes n_rows^2 n_columns steps.
 * @param scale              Times which it is taken.
 * @return The value. Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_orthogonality(float *gradient, const float *values,
                                    size_t n_rows, size_t n_columns,
                                    double scale);

/**
 * A penalty on the length of another loss's gradient: (|g| - target)^2.
 * Gulrajani et al. 2017, "Improved Training of Wasserstein GANs", equation 3,
 * which takes g at points between two sequences; by the sequence itself the
 * derivative is then that by the point times its share, which goes into
 * @p curvature.
 *
 * @param[in,out] gradient  [n]; NULL: none.
 * @param slope             [n], the other loss's gradient g.
 * @param curvature         [n], how g changes in its own direction, H g: for a
 *                          loss that is a sum over tokens, each second
 *                          derivative times the first. May be NULL where
 *                          @p gradient is.
 * @param target            The length that g should have.
 * @param scale             Times which it is taken.
 * @return The value; where g is 0 nothing is added to the gradient. Never
 *         fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_gradient_penalty(float *gradient, const float *slope,
                                       const float *curvature, size_t n,
                                       double target, double scale);

/**
 * The length of a vector, as of a gradient: the square root of the sum of
 * squares.
 * Never fails. Thread: any. Since: 0.1
 */
TNK_API double tnk_rl_norm(const float *values, size_t n);

#ifdef __cplusplus
}
#endif

#endif
