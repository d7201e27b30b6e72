/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/kl.h"

double learn_kl_advantages(float *advantages, const float *sampled,
                           const float *teacher, size_t n, double coefficient,
                           double discount) {
  double later = 0, sum = 0;

  for (size_t t = n; t-- > 0;) {
    const double kl = (double)sampled[t] - (double)teacher[t];

    later = -coefficient * kl + discount * later;
    advantages[t] = (float)later;
    sum += kl;
  }
  return sum;
}
