/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_KL_H
#define TNK_TOOLS_TNK_LEARN_KL_H

#include <stddef.h>

/*
 * The advantages of sampled tokens from a teacher. That of token t is
 *
 *   a(t) = -coefficient * (sampled(t) - teacher(t)) + discount * a(t + 1),
 *
 * the reverse KL divergence as a penalty. With a discount a token also answers
 * for the later ones. Nothing is subtracted from it: no mean of a group.
 *
 * `sampled` and `teacher` are logprobs, and all arrays have `n` values. Returns
 * the sum of sampled(t) - teacher(t).
 */
double learn_kl_advantages(float *advantages, const float *sampled,
                           const float *teacher, size_t n, double coefficient,
                           double discount);

#endif
