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

/* The run at `at`, where it lies; of a last one, or of NULL, `own` is filled:
 * with what there is of it, then zeros; of NULL with `other`. */
TARGET static inline const float *NAME(view)(float *own, const float *from,
                                             size_t at, size_t n, float other) {
  const size_t m = n - at;

  if (m >= LANES && from != NULL)
    return from + at;
  for (size_t k = 0; k < LANES; k++)
    own[k] = other;
  for (size_t k = 0; from != NULL && k < m; k++)
    own[k] = from[at + k];
  for (size_t k = m; k < LANES; k++)
    own[k] = 0;
  return own;
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
 * result, is 0; above 88.7 it overflows. With `less` it is e^x - 1 - x, without
 * a difference of large numbers where x is small.
 */
TARGET static inline void NAME(exp_f)(float *restrict out, const float *x,
                                      int less) {
  for (size_t k = 0; k < LANES; k++) {
    const float high = x[k] > 88.8f ? 88.8f : x[k];
    const float v = high < -87.3f ? -87.3f : high;
    const float t = FMAF(v, 1.44269504f, 12582912.0f);
    const float i = t - 12582912.0f;
    const float f =
        FMAF(i, 2.12194440e-4f, FMAF(i, -0.693359375f, v)); /* less i log 2 */
    float p = 0.0013933652f;
    float half;
    uint32_t bits;

    p = FMAF(p, f, 0.0083631815f);
    p = FMAF(p, f, 0.041666465f);
    p = FMAF(p, f, 0.16666577f);
    p = FMAF(p, f, 0.5f);
    memcpy(&bits, &t, sizeof(bits));
    bits = (bits - 0x4B400000u + 126u) << 23;
    memcpy(&half, &bits, sizeof(half)); /* of the scale */
    if (less)
      out[k] = FMAF(2 * half, p * f * f, (2 * half - 1) + 2 * half * f - high);
    else
      out[k] = 2 * FMAF(FMAF(p, f, 1.0f), f, 1.0f) * half;
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

TARGET static inline void NAME(estimates)(double *restrict out, const float *s,
                                          const float *t, tnk_kl_t kind) {
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
                                      const float *w) {
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
    float own[3][LANES];
    const float *s = NAME(view)(own[0], sampled, at, n, 0);
    const float *t = NAME(view)(own[1], trained, at, n, 0);
    double x[LANES];

    NAME(estimates)(x, s, t, kind); /* of nothing: 0 */
    if (weights != NULL) {
      NAME(weigh)(sums, totals, x, NAME(view)(own[2], weights, at, n, 0));
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

/* The same in single precision, of r, which may be `out`. */
TARGET static inline void NAME(estimates_f)(float *out, const float *r,
                                            tnk_kl_t kind) {
  if (kind == TNK_KL_K3) {
    float x[LANES];

    NAME(exp_f)(x, r, 1);
    memcpy(out, x, sizeof(x));
    return;
  }
  for (size_t k = 0; k < LANES; k++)
    out[k] = kind == TNK_KL_K1 ? -r[k] : r[k] * r[k] / 2;
}

TARGET static inline void NAME(tokens_kind)(float *out, const float *sampled,
                                            const float *trained, size_t n,
                                            tnk_kl_t kind) {
  for (size_t at = 0; at < n; at += LANES) {
    float own[2][LANES];
    const float *s = NAME(view)(own[0], sampled, at, n, 0);
    const float *t = NAME(view)(own[1], trained, at, n, 0);
    float y[LANES];

    for (size_t k = 0; k < LANES; k++)
      y[k] = t[k] - s[k];
    NAME(estimates_f)(y, y, kind);
    NAME(store)(out, y, at, n);
  }
}

TARGET static void NAME(kl_tokens)(float *out, const float *sampled,
                                   const float *trained, size_t n,
                                   tnk_kl_t kind) {
  if (kind == TNK_KL_K1)
    NAME(tokens_kind)(out, sampled, trained, n, TNK_KL_K1);
  else if (kind == TNK_KL_K2)
    NAME(tokens_kind)(out, sampled, trained, n, TNK_KL_K2);
  else
    NAME(tokens_kind)(out, sampled, trained, n, TNK_KL_K3);
}

TARGET static void NAME(ratios)(float *out, const float *sampled,
                                const float *trained, size_t n) {
  for (size_t at = 0; at < n; at += LANES) {
    float own[2][LANES];
    const float *s = NAME(view)(own[0], sampled, at, n, 0);
    const float *t = NAME(view)(own[1], trained, at, n, 0);
    float by[LANES];
    float r[LANES];

    for (size_t k = 0; k < LANES; k++)
      by[k] = t[k] - s[k];
    NAME(exp_f)(r, by, 0);
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
    float own[2][LANES];
    const float *v = NAME(view)(own[0], values, at, n, 0);
    double x[LANES];

    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)v[k];
    if (weights != NULL) {
      NAME(weigh)(sums, totals, x, NAME(view)(own[1], weights, at, n, 0));
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
    float own[LANES];
    const float *v = NAME(view)(own, values, at, n, 0);
    double x[LANES];
    double e[LANES];

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
    float own[LANES];
    const float *v = NAME(view)(own, logprobs, at, n, 0);
    float e[LANES];
    double x[LANES];

    NAME(exp_f)(e, v, 0);
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
                                    float *restrict slope, const float *w,
                                    double scale, size_t at, size_t n) {
  float own[LANES];
  const float *g;

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
  g = NAME(view)(own, gradient, at, n, 0);
  for (size_t k = 0; k < LANES; k++)
    slope[k] += g[k];
  NAME(store)(gradient, slope, at, n);
}

TARGET static inline double NAME(surrogate_kind)(const tnk_rl_tokens_t *tokens,
                                                 const float *advantages,
                                                 float low, float high,
                                                 double scale,
                                                 tnk__surrogate_t kind) {
  double sums[LANES] = {0};
  const size_t n = tokens->n;

  for (size_t at = 0; at < n; at += LANES) {
    float own[4][LANES];
    const float *p = NAME(view)(own[0], tokens->logprobs, at, n, 0);
    const float *q = NAME(view)(own[1], tokens->reference, at, n, 0);
    const float *a = NAME(view)(own[2], advantages, at, n, 0);
    const float *w = NAME(view)(own[3], tokens->weights, at, n, 1);
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

/* The slope by the log-probability, against which r goes: 1, -r, and 1 - e^r.
 */
TARGET static inline double NAME(penalty_kind)(const tnk_rl_tokens_t *tokens,
                                               tnk_kl_t kind, double scale) {
  double sums[LANES] = {0};
  const size_t n = tokens->n;

  for (size_t at = 0; at < n; at += LANES) {
    float own[3][LANES];
    const float *p = NAME(view)(own[0], tokens->logprobs, at, n, 0);
    const float *q = NAME(view)(own[1], tokens->reference, at, n, 0);
    const float *w = NAME(view)(own[2], tokens->weights, at, n, 1);
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

TARGET static double NAME(elastic)(float *gradient, const float *values,
                                   const float *reference, const float *weights,
                                   size_t n, double l1, double l2) {
  double sums[LANES] = {0};
  const float one = (float)l1;
  const float two = (float)l2;

  for (size_t at = 0; at < n; at += LANES) {
    float own[3][LANES];
    const float *v = NAME(view)(own[0], values, at, n, 0);
    const float *r = NAME(view)(own[1], reference, at, n, 0);
    const float *w = NAME(view)(own[2], weights, at, n, 1);
    float by[LANES];
    float value[LANES];
    float slope[LANES];

    for (size_t k = 0; k < LANES; k++)
      by[k] = v[k] - r[k];
    for (size_t k = 0; k < LANES; k++)
      value[k] = one * fabsf(by[k]) + two * by[k] * by[k];
    for (size_t k = 0; k < LANES; k++)
      slope[k] = by[k] > 0 ? one : 0;
    for (size_t k = 0; k < LANES; k++)
      slope[k] = by[k] < 0 ? -one : slope[k];
    for (size_t k = 0; k < LANES; k++)
      slope[k] += 2 * two * by[k];
    NAME(add)(sums, gradient, value, slope, w, 1, at, n);
  }
  return NAME(total)(sums);
}

/* Sum of (value - center)^2 times the scale, with its slope. */
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

#undef NAME
#undef TARGET
#undef FMA
#undef FMAF
