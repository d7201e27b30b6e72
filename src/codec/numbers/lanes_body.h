/*
 * The loops of lanes.h, compiled once for each kind of processor: lanes.c
 * includes this file with NAME(), TARGET, FMA() and FMAF() set. There is no
 * guard, for that reason.
 *
 * All work is done in runs of LANES, of which the compiler makes vector
 * instructions; a last, shorter one is filled up with what counts for nothing.
 * A sum has as many partial sums as there are lanes, always of the same
 * elements.
 */

/* The run at `at`: what there is of it, then zeros; of NULL `other`. */
TARGET static inline void NAME(load)(float *restrict to, const float *from,
                                     size_t at, size_t n, float other) {
  const size_t m = n - at;

  if (m >= LANES && from != NULL) {
    memcpy(to, from + at, LANES * sizeof(*to));
    return;
  }
  for (size_t k = 0; k < LANES; k++)
    to[k] = k >= m ? 0 : from != NULL ? from[at + k] : other;
}

/* Stores as much of a run as there is room for. */
TARGET static inline void NAME(store)(float *to, const float *restrict from,
                                      size_t at, size_t n) {
  if (n - at >= LANES)
    memcpy(to + at, from, LANES * sizeof(*to));
  else
    memcpy(to + at, from, (n - at) * sizeof(*to));
}

/* The sum of all lanes, which it uses up. */
TARGET static inline double NAME(total)(double *restrict lanes) {
  for (size_t half = LANES / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; k++)
      lanes[k] += lanes[half + k];
  return lanes[0];
}

/*
 * e^x = 2^i e^f, where |f| <= log(2) / 2 and e^f = 1 + f + f^2 q(f); q is a
 * polynomial that differs from it by 1e-8 of e^f at most. To add 1.5 * 2^23
 * leaves the integer i in the lowest bits. Below -87 the scale, and so the
 * result, is 0; above 88.7 it overflows.
 */
TARGET static inline void NAME(exp_f)(float *restrict out,
                                      const float *restrict x) {
  for (size_t k = 0; k < LANES; k++) {
    const float high = x[k] > 88.8f ? 88.8f : x[k];
    const float v = high < -87.3f ? -87.3f : high;
    const float t = FMAF(v, 1.44269504f, 12582912.0f);
    const float i = t - 12582912.0f;
    const float f =
        FMAF(i, 2.12194440e-4f, FMAF(i, -0.693359375f, v)); /* less i log 2 */
    float p = 0.0013933652f;
    float scale;
    uint32_t bits;

    p = FMAF(p, f, 0.0083631815f);
    p = FMAF(p, f, 0.041666465f);
    p = FMAF(p, f, 0.16666577f);
    p = FMAF(p, f, 0.5f);
    p = FMAF(p, f, 1.0f);
    p = FMAF(p, f, 1.0f);
    memcpy(&bits, &t, sizeof(bits));
    bits = (bits - 0x4B400000u + 126u) << 23;
    memcpy(&scale, &bits, sizeof(scale));
    out[k] = 2 * p * scale;
  }
}

/* The same in double precision, to 2e-14; with `less`, e^x - 1 - x without a
 * difference of large numbers where x is small. Each is +INFINITY where it
 * is too large. */
TARGET static inline void NAME(exp_d)(double *restrict out,
                                      const double *restrict x, int less) {
  for (size_t k = 0; k < LANES; k++) {
    const double high = x[k] > 709.0 ? 709.0 : x[k];
    const double v = high < -708.0 ? -708.0 : high;
    const double over = x[k] > 709.0 ? x[k] : 709.0;
    const double t = FMA(v, 1.4426950408889634, 6755399441055744.0);
    const double i = t - 6755399441055744.0;
    const double f = FMA(i, -1.90821492927058770002e-10,
                         FMA(i, -6.93147180369123816490e-01, v));
    double p = 2.7620089481954584e-07;
    double scale;
    uint64_t bits;

    p = FMA(p, f, 2.7625117029606066e-06);
    p = FMA(p, f, 2.4801521293463862e-05);
    p = FMA(p, f, 0.00019841208729485193);
    p = FMA(p, f, 0.0013888888917215586);
    p = FMA(p, f, 0.00833333335373123);
    p = FMA(p, f, 0.04166666666662412);
    p = FMA(p, f, 0.16666666666648286);
    p = FMA(p, f, 0.5);
    p = p * f * f;
    memcpy(&bits, &t, sizeof(bits));
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof(scale));
    /* What exceeds the bound is added again, for infinities. */
    out[k] = less ? FMA(scale, p, (scale - 1) + FMA(scale, f, -high)) +
                        (over - 709.0)
                  : FMA(scale, p, FMA(scale, f, scale)) + (over - 709.0);
  }
}

/* ---- Divergence and ratios ---- */

TARGET static inline void NAME(estimates)(double *restrict out,
                                          const float *restrict s,
                                          const float *restrict t,
                                          tnk_kl_t kind) {
  double r[LANES];

  for (size_t k = 0; k < LANES; k++)
    r[k] = (double)t[k] - (double)s[k];
  if (kind == TNK_KL_K3) {
    NAME(exp_d)(out, r, 1);
    return;
  }
  for (size_t k = 0; k < LANES; k++)
    out[k] = kind == TNK_KL_K1 ? -r[k] : r[k] * r[k] / 2;
}

/* Adds values times their weights to the lanes of a sum. */
TARGET static inline void NAME(weigh)(double *restrict sum,
                                      double *restrict total,
                                      const double *restrict x,
                                      const float *restrict w) {
  double parts[LANES];

  for (size_t k = 0; k < LANES; k++)
    parts[k] = x[k] * (double)w[k];
  for (size_t k = 0; k < LANES; k++)
    sum[k] += w[k] == 0 ? 0 : parts[k];
  for (size_t k = 0; k < LANES; k++)
    total[k] += (double)w[k];
}

TARGET static inline double NAME(kl_kind)(const float *sampled,
                                          const float *trained,
                                          const float *weights, size_t n,
                                          tnk_kl_t kind, double *total) {
  double sums[LANES] = {0};
  double totals[LANES] = {0};

  for (size_t at = 0; at < n; at += LANES) {
    float s[LANES];
    float t[LANES];
    float w[LANES];
    double x[LANES];

    NAME(load)(s, sampled, at, n, 0);
    NAME(load)(t, trained, at, n, 0);
    NAME(estimates)(x, s, t, kind); /* of nothing: 0 */
    if (weights != NULL) {
      NAME(load)(w, weights, at, n, 0);
      NAME(weigh)(sums, totals, x, w);
    } else {
      for (size_t k = 0; k < LANES; k++)
        sums[k] += x[k];
    }
  }
  *total = weights != NULL ? NAME(total)(totals) : (double)n;
  return NAME(total)(sums);
}

TARGET static double NAME(kl)(const float *sampled, const float *trained,
                              const float *weights, size_t n, tnk_kl_t kind,
                              double *total) {
  switch (kind) { /* a loop for each, without the question */
  case TNK_KL_K1:
    return NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K1, total);
  case TNK_KL_K2:
    return NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K2, total);
  case TNK_KL_K3:
    break;
  }
  return NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K3, total);
}

TARGET static void NAME(kl_tokens)(float *out, const float *sampled,
                                   const float *trained, size_t n,
                                   tnk_kl_t kind) {
  for (size_t at = 0; at < n; at += LANES) {
    float s[LANES];
    float t[LANES];
    float y[LANES];
    double x[LANES];

    NAME(load)(s, sampled, at, n, 0);
    NAME(load)(t, trained, at, n, 0);
    if (kind == TNK_KL_K3) {
      NAME(estimates)(x, s, t, TNK_KL_K3);
      for (size_t k = 0; k < LANES; k++)
        y[k] = (float)x[k];
    } else {
      for (size_t k = 0; k < LANES; k++)
        y[k] = s[k] - t[k];
      for (size_t k = 0; k < LANES && kind == TNK_KL_K2; k++)
        y[k] = y[k] * y[k] / 2;
    }
    NAME(store)(out, y, at, n);
  }
}

TARGET static void NAME(ratios)(float *out, const float *sampled,
                                const float *trained, size_t n) {
  for (size_t at = 0; at < n; at += LANES) {
    float s[LANES];
    float t[LANES];
    float r[LANES];

    NAME(load)(s, sampled, at, n, 0);
    NAME(load)(t, trained, at, n, 0);
    for (size_t k = 0; k < LANES; k++)
      t[k] -= s[k];
    NAME(exp_f)(r, t);
    NAME(store)(out, r, at, n);
  }
}

/* ---- Sums ---- */

TARGET static double NAME(sum)(const float *values, const float *weights,
                               size_t n, double *total) {
  double sums[LANES] = {0};
  double totals[LANES] = {0};
  double few = 0;

  if (weights == NULL && n < LANES) {
    for (size_t k = 0; k < n; k++)
      few += (double)values[k];
    *total = (double)n;
    return few;
  }
  for (size_t at = 0; at < n; at += LANES) {
    float v[LANES];
    float w[LANES];
    double x[LANES];

    NAME(load)(v, values, at, n, 0);
    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)v[k];
    if (weights != NULL) {
      NAME(load)(w, weights, at, n, 0);
      NAME(weigh)(sums, totals, x, w);
    } else {
      for (size_t k = 0; k < LANES; k++)
        sums[k] += x[k];
    }
  }
  *total = weights != NULL ? NAME(total)(totals) : (double)n;
  return NAME(total)(sums);
}

TARGET static double NAME(squares)(const float *values, size_t n,
                                   double center) {
  double sums[LANES] = {0};
  size_t at = 0;
  double rest = 0;

  for (; at + LANES <= n; at += LANES)
    for (size_t k = 0; k < LANES; k++) {
      const double by = (double)values[at + k] - center;

      sums[k] = FMA(by, by, sums[k]);
    }
  for (; at < n; at++)
    rest += ((double)values[at] - center) * ((double)values[at] - center);
  return n < LANES ? rest : NAME(total)(sums) + rest;
}

TARGET static void NAME(shift)(float *out, const float *values, size_t n,
                               double center, double scale) {
  size_t at = 0;

  for (; at + LANES <= n; at += LANES) {
    float v[LANES];

    for (size_t k = 0; k < LANES; k++)
      v[k] = (float)(((double)values[at + k] - center) * scale);
    memcpy(out + at, v, sizeof(v));
  }
  for (; at < n; at++)
    out[at] = (float)(((double)values[at] - center) * scale);
}

TARGET static double NAME(max)(const float *values, size_t n) {
  float lanes[LANES];
  size_t at = 0;
  float max = -INFINITY;

  for (size_t k = 0; k < LANES; k++)
    lanes[k] = -INFINITY;
  for (; at + LANES <= n; at += LANES)
    for (size_t k = 0; k < LANES; k++)
      lanes[k] = values[at + k] > lanes[k] ? values[at + k] : lanes[k];
  for (size_t k = 0; k < LANES; k++)
    max = lanes[k] > max ? lanes[k] : max;
  for (; at < n; at++)
    max = values[at] > max ? values[at] : max;
  return (double)max;
}

TARGET static void NAME(exp_sums)(const float *values, size_t n, double max,
                                  double *sum, double *squares) {
  double sums[LANES] = {0};
  double squared[LANES] = {0};

  for (size_t at = 0; at < n; at += LANES) {
    float v[LANES];
    double x[LANES];
    double e[LANES];

    NAME(load)(v, values, at, n, 0);
    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)v[k] - max;
    for (size_t k = n - at; k < LANES; k++)
      x[k] = -INFINITY;
    NAME(exp_d)(e, x, 0);
    for (size_t k = 0; k < LANES; k++)
      sums[k] += e[k];
    for (size_t k = 0; k < LANES; k++)
      squared[k] = FMA(e[k], e[k], squared[k]);
  }
  *sum = NAME(total)(sums);
  *squares = NAME(total)(squared);
}

TARGET static double NAME(entropy)(const float *logprobs, size_t n) {
  double sums[LANES] = {0};

  for (size_t at = 0; at < n; at += LANES) {
    float v[LANES];
    float e[LANES];
    double x[LANES];

    NAME(load)(v, logprobs, at, n, 0);
    NAME(exp_f)(e, v);
    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)e[k] * (double)v[k]; /* 0 behind the end */
    for (size_t k = 0; k < LANES; k++)
      sums[k] += v[k] == -INFINITY ? 0 : x[k]; /* p log p goes to 0 with p */
  }
  return NAME(total)(sums);
}

/* ---- Losses ---- */

/* Value and slope of each token, before its weight. The smaller of the two
 * counts in PPO; where they are equal the ratio is inside of its bounds, and
 * moves. */
TARGET static inline void NAME(terms)(float *restrict value,
                                      float *restrict slope,
                                      const float *restrict logprobs,
                                      const float *restrict ratio,
                                      const float *restrict a, float low,
                                      float high, tnk__surrogate_t kind) {
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

/* Adds slopes to the gradient and values to the sum, times their weights. */
TARGET static inline void NAME(add)(double *restrict sum, float *gradient,
                                    float *restrict value,
                                    float *restrict slope,
                                    const float *restrict w, double scale,
                                    size_t at, size_t n) {
  float g[LANES];

  for (size_t k = 0; k < LANES; k++)
    value[k] *= w[k];
  for (size_t k = 0; k < LANES; k++)
    value[k] = w[k] == 0 ? 0 : value[k];
  for (size_t k = 0; k < LANES; k++)
    sum[k] += (double)value[k];
  if (gradient == NULL)
    return;
  for (size_t k = 0; k < LANES; k++)
    slope[k] *= w[k] * (float)scale;
  for (size_t k = 0; k < LANES; k++)
    slope[k] = w[k] == 0 ? 0 : slope[k];
  NAME(load)(g, gradient, at, n, 0);
  for (size_t k = 0; k < LANES; k++)
    g[k] += slope[k];
  NAME(store)(gradient, g, at, n);
}

TARGET static inline double NAME(surrogate_kind)(const tnk_rl_tokens_t *tokens,
                                                 const float *advantages,
                                                 float low, float high,
                                                 double scale,
                                                 tnk__surrogate_t kind) {
  double sums[LANES] = {0};
  const size_t n = tokens->n;

  for (size_t at = 0; at < n; at += LANES) {
    float p[LANES];
    float q[LANES];
    float a[LANES];
    float w[LANES];
    float ratio[LANES];
    float value[LANES];
    float slope[LANES];

    NAME(load)(p, tokens->logprobs, at, n, 0);
    NAME(load)(q, tokens->reference, at, n, 0);
    NAME(load)(a, advantages, at, n, 0);
    NAME(load)(w, tokens->weights, at, n, 1);
    for (size_t k = 0; k < LANES; k++)
      q[k] = p[k] - q[k];
    NAME(exp_f)(ratio, q);
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

TARGET static double NAME(elastic)(float *gradient, const float *values,
                                   const float *reference, const float *weights,
                                   size_t n, double l1, double l2) {
  double sums[LANES] = {0};
  const float one = (float)l1;
  const float two = (float)l2;

  for (size_t at = 0; at < n; at += LANES) {
    float v[LANES];
    float r[LANES];
    float w[LANES];
    float value[LANES];
    float slope[LANES];

    NAME(load)(v, values, at, n, 0);
    NAME(load)(r, reference, at, n, 0);
    NAME(load)(w, weights, at, n, 1);
    for (size_t k = 0; k < LANES; k++)
      v[k] -= r[k];
    for (size_t k = 0; k < LANES; k++) {
      const float size = v[k] < 0 ? -v[k] : v[k];

      value[k] = one * size + two * v[k] * v[k];
    }
    for (size_t k = 0; k < LANES; k++)
      r[k] = v[k] > 0 ? one : 0;
    for (size_t k = 0; k < LANES; k++)
      slope[k] = r[k] - (v[k] < 0 ? one : 0) + 2 * two * v[k];
    NAME(add)(sums, gradient, value, slope, w, 1, at, n);
  }
  return NAME(total)(sums);
}

#undef NAME
#undef TARGET
#undef FMA
#undef FMAF
