/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_RL_H
#define TNK_TEST_API_DEPTH_RL_H

/* The rows of test_depth.c for tnk/rl.h, which it includes behind the macros.
 */
static float rewards[2] = {-1, -2};
static tnk_drift_t drift = TNK_DRIFT_INIT;
static const tnk_rl_tokens_t rl_tokens = {
    .n = 2, .logprobs = rewards, .reference = rewards};

GETS(tnk_rl_cispo, tnk_rl_cispo(&rl_tokens, rewards, 0, 4, 1))
GETS(tnk_rl_discounted_sums, tnk_rl_discounted_sums(rewards, rewards, 2, 1))
GETS(tnk_rl_dpo, tnk_rl_dpo(&rl_tokens, &rl_tokens, 1, 1, NULL))
GETS(tnk_rl_drift, tnk_rl_drift(&drift, rewards, rewards, NULL, 2))
GETS(tnk_rl_effective_sample_size, tnk_rl_effective_sample_size(rewards, 2))
GETS(tnk_rl_elastic_net, tnk_rl_elastic_net(NULL, rewards, NULL, NULL, 2, 1, 1))
GETS(tnk_rl_entropy, tnk_rl_entropy(rewards, 2))
GETS(tnk_rl_entropy_penalty, tnk_rl_entropy_penalty(NULL, rewards, 2, 1, 1))
GETS(tnk_rl_gradient_penalty,
     tnk_rl_gradient_penalty(NULL, rewards, rewards, 2, 1, 1))
GETS(tnk_rl_group_advantages,
     tnk_rl_group_advantages(rewards, rewards, 2, 2, TNK_ADVANTAGE_CENTERED))
GETS(tnk_rl_importance_sampling,
     tnk_rl_importance_sampling(&rl_tokens, rewards, 1))
GETS(tnk_rl_kl, tnk_rl_kl(rewards, rewards, NULL, 2, TNK_KL_K1))
GETS(tnk_rl_kl_exact,
     tnk_rl_kl_exact(NULL, rewards, rewards, 2, TNK_KL_FORWARD, 1))
GETS(tnk_rl_kl_penalty, tnk_rl_kl_penalty(&rl_tokens, TNK_KL_K3, 1))
GETS(tnk_rl_kl_tokens,
     tnk_rl_kl_tokens(rewards, rewards, rewards, 2, TNK_KL_K1))
GETS(tnk_rl_l2_centered, tnk_rl_l2_centered(NULL, rewards, 2, 1))
GETS(tnk_rl_norm, tnk_rl_norm(rewards, 2))
GETS(tnk_rl_orthogonality, tnk_rl_orthogonality(NULL, rewards, 1, 2, 1))
GETS(tnk_rl_ppo, tnk_rl_ppo(&rl_tokens, rewards, 0.8, 1.2, 1))
GETS(tnk_rl_ratios, tnk_rl_ratios(rewards, rewards, rewards, 2))
GETS(tnk_rl_sampled_entropy, tnk_rl_sampled_entropy(rewards, NULL, 2))

#endif
