/* The loops for losses: the second part of lanes_body.h, which includes it. */

/* Value and slope of each token, before its weight. PPO uses the smaller of two
 * values. If they are equal, the ratio is within its bounds, and the slope is
 * not 0. */
TARGET INLINE void NAME(terms)(float *restrict value, float *restrict slope,
                               const float *restrict logprobs,
                               const float *restrict ratio,
                               const float *restrict a, float low, float high,
                               tnk__surrogate_t kind) {
  float held[LANES];

  for (size_t k = 0; k < LANES; k++) {
    const float above = ratio[k] < low ? low : ratio[k];

    held[k] = (above > high ? high : above) * a[k];
  }
  if (kind == TNK__SURROGATE_CISPO) {
    for (size_t k = 0; k < LANES; k++)
      slope[k] = -held[k];
    for (size_t k = 0; k < LANES; k++)
      value[k] = -held[k] * logprobs[k];
    return;
  }
  for (size_t k = 0; k < LANES; k++)
    slope[k] = value[k] = -(ratio[k] * a[k]);
  if (kind == TNK__SURROGATE_RATIO)
    return;
  for (size_t k = 0; k < LANES; k++)
    slope[k] = -value[k] > held[k] ? 0 : slope[k];
  for (size_t k = 0; k < LANES; k++)
    value[k] = -value[k] > held[k] ? -held[k] : value[k];
}

/* Add weighted slopes to the gradient and weighted values to the sum. */
TARGET INLINE void NAME(add)(double *restrict sum, float *gradient,
                             float *restrict value, float *restrict slope,
                             const float *w, double scale, size_t at,
                             size_t n) {
  float own[LANES];
  const float *g;

  if (w != NULL) {
    for (size_t k = 0; k < LANES; k++)
      value[k] *= w[k];
    for (size_t k = 0; k < LANES; k++)
      value[k] = w[k] == 0 ? 0 : value[k];
    for (size_t k = 0; k < LANES; k++)
      slope[k] *= w[k];
    for (size_t k = 0; k < LANES; k++)
      slope[k] = w[k] == 0 ? 0 : slope[k];
  }
  for (size_t k = 0; k < LANES / 2; k++)
    sum[k] += (double)(value[k] + value[LANES / 2 + k]);
  if (gradient == NULL)
    return;
  for (size_t k = 0; k < LANES; k++)
    slope[k] *= (float)scale;
  g = NAME(view)(own, gradient, at, n);
  for (size_t k = 0; k < LANES; k++)
    slope[k] += g[k];
  NAME(store)(gradient, slope, at, n);
}

TARGET INLINE double NAME(surrogate_kind)(const tnk_rl_tokens_t *tokens,
                                          const float *advantages, float low,
                                          float high, double scale,
                                          tnk__surrogate_t kind) {
  double sums[LANES] = {0};
  const size_t n = tokens->n;

  for (size_t at = 0; at < n; at += LANES) {
    float own[4][LANES];
    const float *p = NAME(view)(own[0], tokens->logprobs, at, n);
    const float *q = NAME(view)(own[1], tokens->reference, at, n);
    const float *a = NAME(view)(own[2], advantages, at, n);
    const float *w = NAME(view_or_null)(own[3], tokens->weights, at, n);
    float by[LANES];
    float ratio[LANES];
    float value[LANES];
    float slope[LANES];

    for (size_t k = 0; k < LANES; k++)
      by[k] = p[k] - q[k];
    NAME(exp_f)(ratio, by, 0);
    NAME(terms)(value, slope, p, ratio, a, low, high, kind);
    NAME(add)(sums, tokens->gradient, value, slope, w, scale, at, n);
  }
  return scale * NAME(total)(sums);
}

TARGET static double NAME(surrogate)(const tnk_rl_tokens_t *tokens,
                                     const float *advantages, double low,
                                     double high, double scale,
                                     tnk__surrogate_t kind) {
  const float from = (float)low;
  const float to = (float)high;

  switch (kind) {
  case TNK__SURROGATE_RATIO:
    return NAME(surrogate_kind)(tokens, advantages, from, to, scale,
                                TNK__SURROGATE_RATIO);
  case TNK__SURROGATE_PPO:
    return NAME(surrogate_kind)(tokens, advantages, from, to, scale,
                                TNK__SURROGATE_PPO);
  case TNK__SURROGATE_CISPO:
    break;
  }
  return NAME(surrogate_kind)(tokens, advantages, from, to, scale,
                              TNK__SURROGATE_CISPO);
}

/* The slope with respect to the log-probability, which decreases as r grows: 1,
 * -r, and 1 - e^r.
 */
TARGET INLINE double NAME(penalty_kind)(const tnk_rl_tokens_t *tokens,
                                        tnk_kl_t kind, double scale) {
  double sums[LANES] = {0};
  const size_t n = tokens->n;

  for (size_t at = 0; at < n; at += LANES) {
    float own[3][LANES];
    const float *p = NAME(view)(own[0], tokens->logprobs, at, n);
    const float *q = NAME(view)(own[1], tokens->reference, at, n);
    const float *w = NAME(view_or_null)(own[2], tokens->weights, at, n);
    float r[LANES];
    float value[LANES];
    float slope[LANES];

    for (size_t k = 0; k < LANES; k++)
      r[k] = q[k] - p[k];
    NAME(estimates_f)(value, r, kind);
    for (size_t k = 0; k < LANES; k++)
      slope[k] = kind == TNK_KL_K1   ? 1
                 : kind == TNK_KL_K2 ? -r[k]
                                     : -(value[k] + r[k]);
    NAME(add)(sums, tokens->gradient, value, slope, w, scale, at, n);
  }
  return scale * NAME(total)(sums);
}

TARGET static double NAME(penalty)(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                                   double scale) {
  return kind == TNK_KL_K1   ? NAME(penalty_kind)(tokens, TNK_KL_K1, scale)
         : kind == TNK_KL_K2 ? NAME(penalty_kind)(tokens, TNK_KL_K2, scale)
                             : NAME(penalty_kind)(tokens, TNK_KL_K3, scale);
}

TARGET INLINE void NAME(add_l1)(float *restrict value, float *restrict slope,
                                const float *restrict by, float l1) {
  float sign[LANES];

  for (size_t k = 0; k < LANES; k++)
    value[k] += l1 * fabsf(by[k]);
  for (size_t k = 0; k < LANES; k++)
    sign[k] = by[k] > 0 ? l1 : 0;
  for (size_t k = 0; k < LANES; k++)
    sign[k] = by[k] < 0 ? -l1 : sign[k];
  for (size_t k = 0; k < LANES; k++)
    slope[k] += sign[k];
}

TARGET static double NAME(elastic)(float *gradient, const float *values,
                                   const float *reference, const float *weights,
                                   size_t n, double l1, double l2) {
  double sums[LANES] = {0};
  const float one = (float)l1;
  const float two = (float)l2;

  for (size_t at = 0; at < n; at += LANES) {
    float own[3][LANES];
    const float *v = NAME(view)(own[0], values, at, n);
    const float *r = NAME(view_or_null)(own[1], reference, at, n);
    const float *w = NAME(view_or_null)(own[2], weights, at, n);
    float by[LANES];
    float value[LANES];
    float slope[LANES];

    memcpy(by, v, sizeof(by));
    if (r != NULL)
      for (size_t k = 0; k < LANES; k++)
        by[k] -= r[k];
    for (size_t k = 0; k < LANES; k++)
      value[k] = two * by[k] * by[k];
    for (size_t k = 0; k < LANES; k++)
      slope[k] = 2 * two * by[k];
    if (one != 0)
      NAME(add_l1)(value, slope, by, one);
    NAME(add)(sums, gradient, value, slope, w, 1, at, n);
  }
  return NAME(total)(sums);
}

/* Scaled sum of (value - center)^2, with its slope. */
TARGET static double NAME(centered)(float *gradient, const float *values,
                                    size_t n, double center, double scale) {
  double sums[LANES] = {0};
  size_t at = 0;
  double rest = 0;

  for (; at + LANES <= n; at += LANES) {
    float slope[LANES];

    for (size_t k = 0; k < LANES; k++) {
      const double by = (double)values[at + k] - center;

      sums[k] = FMA(by, by, sums[k]);
      slope[k] = (float)(2 * scale * by);
    }
    for (size_t k = 0; k < LANES; k++)
      slope[k] += gradient[at + k];
    memcpy(gradient + at, slope, sizeof(slope));
  }
  for (; at < n; at++) {
    const double by = (double)values[at] - center;

    rest += by * by;
    gradient[at] += (float)(2 * scale * by);
  }
  return scale * (NAME(total)(sums) + rest);
}
