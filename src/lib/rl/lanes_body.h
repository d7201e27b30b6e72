/* SPDX-License-Identifier: MIT */
/*
 * The loops of lanes.h, compiled once for each kind of processor. lanes.c
 * includes this file with NAME(), TARGET, FMA() and FMAF() defined, and with
 * IS_NARROW for narrower vectors. Therefore it has no include guard.
 *
 * All loops work on runs of LANES elements, which the compiler turns into
 * vector instructions. A shorter last run is padded with neutral values. A sum
 * has one partial sum per lane, always over the same elements.
 */

#ifndef PREFETCH
/* Prefetch the cache lines of a run. */
#if defined(__GNUC__)
#define PREFETCH(from)                                                         \
  for (size_t line = 0; line < LANES; line += 16)                              \
  __builtin_prefetch((from) + line)
#else
#define PREFETCH(from) ((void)(from))
#endif
#endif

/* The run at `at`, in place. For the last run, or for NULL, `own` is filled
 * with the remaining elements and zeros. */
TARGET INLINE const float *NAME(view)(float *own, const float *from, size_t at,
                                      size_t n) {
  const size_t m = n - at;

  if (m >= LANES && from != NULL)
    return from + at;
  for (size_t k = 0; k < LANES; k++)
    own[k] = 0;
  for (size_t k = 0; from != NULL && k < LANES && k < m; k++)
    own[k] = from[at + k];
  return own;
}

/* As above, but returns NULL for NULL. */
TARGET INLINE const float *NAME(view_or_null)(float *own, const float *from,
                                              size_t at, size_t n) {
  return from != NULL ? NAME(view)(own, from, at, n) : NULL;
}

/* Store the part of a run that fits. */
TARGET INLINE void NAME(store)(float *to, const float *restrict from, size_t at,
                               size_t n) {
  if (n - at >= LANES)
    memcpy(to + at, from, LANES * sizeof(*to));
  else
    memcpy(to + at, from, (n - at) * sizeof(*to));
}

/* The sum of all lanes; overwrites them. */
TARGET INLINE double NAME(total)(double *restrict lanes) {
  for (size_t half = LANES / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; k++)
      lanes[k] += lanes[half + k];
  return lanes[0];
}

/*
 * e^x = 2^i e^f, where |f| <= log(2) / 2 and e^f = 1 + f + f^2 q(f). The
 * polynomial q differs from the exact value by at most 1e-8 of e^f.
 *
 * Adding 1.5 * 2^23 leaves the integer i in the lowest bits. Below -87 the
 * scale and the result are 0; above 88.7 the result overflows. With `less` the
 * result is e^x - 1 - x, computed without cancellation for small x. The terms
 * are halved and their sum is doubled, because 2^i itself overflows from 88.03
 * on.
 */
TARGET INLINE void NAME(exp_f)(float *restrict out, const float *x, int less) {
  for (size_t k = 0; k < LANES; k++) {
    const float high = x[k] > 88.8f ? 88.8f : x[k];
    const float v = high < -87.3f ? -87.3f : high;
    const float t = FMAF(v, 1.44269504f, 12582912.0f);
    const float i = t - 12582912.0f;
    const float f =
        FMAF(i, 2.12194440e-4f, FMAF(i, -0.693359375f, v)); /* minus i log 2 */
    float p = 0.0013933652f;
    float half;
    uint32_t bits;

    p = FMAF(p, f, 0.0083631815f);
    p = FMAF(p, f, 0.041666465f);
    p = FMAF(p, f, 0.16666577f);
    p = FMAF(p, f, 0.5f);
    memcpy(&bits, &t, sizeof(bits));
    bits = (bits - 0x4B400000u + 126u) << 23;
    memcpy(&half, &bits, sizeof(half)); /* half of the scale */
    if (less)
      out[k] =
          2 * FMAF(half, p * f * f, (half - 0.5f) + half * f - 0.5f * high);
    else
      out[k] = 2 * FMAF(FMAF(p, f, 1.0f), f, 1.0f) * half;
  }
}

/* e^x - 1 - x in double precision, with an error of at most 2e-14 of e^x and
 * without cancellation for small x. Returns +INFINITY for large x. */
TARGET INLINE void NAME(exp_d_less)(double *restrict out,
                                    const double *restrict x) {
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
    /* The excess over the bound is added again, to keep infinities. */
    out[k] = FMA(scale, p, (scale - 1) + FMA(scale, f, -high)) + (over - 709.0);
  }
}

/* ---- Divergence and ratios ---- */

TARGET INLINE void NAME(estimates)(double *restrict out, const float *s,
                                   const float *t, tnk_kl_t kind) {
  double r[LANES];
  float by[LANES];

  if (kind == TNK_KL_K3) {
    for (size_t k = 0; k < LANES; k++)
      r[k] = (double)t[k] - (double)s[k];
    NAME(exp_d_less)(out, r);
    return;
  }
  for (size_t k = 0; k < LANES; k++)
    by[k] = s[k] - t[k];
  for (size_t k = 0; k < LANES; k++)
    out[k] =
        kind == TNK_KL_K1 ? (double)by[k] : (double)by[k] * (double)by[k] / 2;
}

/* k3, with each token in single precision. */
TARGET INLINE void NAME(estimates_quick)(double *restrict out, const float *s,
                                         const float *t) {
  float r[LANES];
  float y[LANES];

  for (size_t k = 0; k < LANES; k++)
    r[k] = t[k] - s[k];
  NAME(exp_f)(y, r, 1);
  for (size_t k = 0; k < LANES; k++)
    out[k] = (double)y[k];
}

/* Add weighted values to the lanes of a sum. */
TARGET INLINE void NAME(weigh)(double *restrict sum, double *restrict total,
                               const double *restrict x, const float *w) {
  double parts[LANES];

  for (size_t k = 0; k < LANES; k++)
    parts[k] = x[k] * (double)w[k];
  for (size_t k = 0; k < LANES; k++)
    sum[k] += w[k] == 0 ? 0 : parts[k];
  for (size_t k = 0; k < LANES; k++)
    total[k] += (double)w[k];
}

TARGET INLINE double NAME(kl_kind)(const float *sampled, const float *trained,
                                   const float *weights, size_t n,
                                   tnk_kl_t kind, int is_quick, double *total) {
  double sums[LANES] = {0};
  double totals[LANES] = {0};

  for (size_t at = 0; at < n; at += LANES) {
    float own[3][LANES];
    const float *s = NAME(view)(own[0], sampled, at, n);
    const float *t = NAME(view)(own[1], trained, at, n);
    double x[LANES];

    if (is_quick)
      NAME(estimates_quick)(x, s, t);
    else
      NAME(estimates)(x, s, t, kind); /* weight 0 adds 0 */
    if (weights != NULL) {
      NAME(weigh)(sums, totals, x, NAME(view)(own[2], weights, at, n));
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
  double sum;

  switch (kind) { /* one loop per kind, without a branch inside */
  case TNK_KL_K1:
    return NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K1, 0, total);
  case TNK_KL_K2:
    return NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K2, 0, total);
  case TNK_KL_K3:
    break;
  }
  sum = NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K3, 1, total);
  return isfinite(sum) /* single precision may have overflowed */
             ? sum
             : NAME(kl_kind)(sampled, trained, weights, n, TNK_KL_K3, 0, total);
}

/* As above in single precision, for r, which may be `out`. */
TARGET INLINE void NAME(estimates_f)(float *out, const float *r,
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

TARGET INLINE void NAME(tokens_kind)(float *out, const float *sampled,
                                     const float *trained, size_t n,
                                     tnk_kl_t kind) {
  for (size_t at = 0; at < n; at += LANES) {
    float own[2][LANES];
    const float *s = NAME(view)(own[0], sampled, at, n);
    const float *t = NAME(view)(own[1], trained, at, n);
    float y[LANES];

    for (size_t k = 0; k < LANES; k++)
      y[k] = t[k] - s[k];
    NAME(estimates_f)(y, y, kind);
    NAME(store)(out, y, at, n);
  }
}

#ifdef IS_NARROW
/* k1 for arrays that do not overlap, without a copy, up to the last whole cache
 * line. Returns the number of finished elements. */
TARGET static size_t NAME(differences)(float *restrict out,
                                       const float *restrict sampled,
                                       const float *restrict trained,
                                       size_t n) {
  size_t at = 0;
  size_t end;

  for (; at < n && (uintptr_t)(out + at) % 64 != 0; at++)
    out[at] = sampled[at] - trained[at];
  end = at + (n - at) / 16 * 16;
  for (; at < end; at++)
    out[at] = sampled[at] - trained[at];
  return at;
}
#endif

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
    const float *s = NAME(view)(own[0], sampled, at, n);
    const float *t = NAME(view)(own[1], trained, at, n);
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
  double sums[LANES];
  double totals[LANES];
  double few = 0;

  *total = (double)n;
  for (size_t k = 0; weights == NULL && n < LANES && k < n; k++)
    few += (double)values[k];
  if (weights == NULL && n < LANES)
    return few;
  memset(sums, 0, sizeof(sums));
  memset(totals, 0, sizeof(totals));
  for (size_t at = 0; at < n; at += LANES) {
    float own[2][LANES];
    const float *v = NAME(view)(own[0], values, at, n);
    double x[LANES];

    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)v[k];
    if (weights != NULL) {
      NAME(weigh)(sums, totals, x, NAME(view)(own[1], weights, at, n));
    } else {
      for (size_t k = 0; k < LANES; k++)
        sums[k] += x[k];
    }
  }
  if (weights != NULL)
    *total = NAME(total)(totals);
  return NAME(total)(sums);
}

/* Sum of the squares: short groups in single precision, their sums in double.
 * The next lines are prefetched, because the loop is bound by memory. */
TARGET INLINE double NAME(squares_quick)(const float *values, size_t n) {
  enum { FEW = 8 };
  double sums[LANES] = {0};
  double sum = 0;
  size_t at = 0;

  for (; at + FEW * LANES <= n; at += FEW * LANES) {
    const float *next =
        values + at + (at + 2 * FEW * LANES <= n ? FEW * LANES : 0);
    float few[LANES] = {0};

    for (size_t i = 0; i < FEW; i++) {
      PREFETCH(next + i * LANES);
      for (size_t k = 0; k < LANES; k++) {
        const float x = values[at + i * LANES + k];

        few[k] = FMAF(x, x, few[k]);
      }
    }
    for (size_t k = 0; k < LANES; k++)
      sums[k] += (double)few[k];
  }
  sum = NAME(total)(sums);
  for (; at < n; at++)
    sum += (double)values[at] * (double)values[at];
  return sum;
}

TARGET static double NAME(squares)(const float *values, size_t n,
                                   double center) {
  double sum = center == 0 ? NAME(squares_quick)(values, n) : 0;
  size_t at = 0;

  if (sum > 1e-20 && sum < INFINITY)
    return sum;
  sum = 0; /* may be out of range for single precision */
  if (n >= LANES) {
    double sums[LANES] = {0};

    for (; at + LANES <= n; at += LANES)
      for (size_t k = 0; k < LANES; k++) {
        const double by = (double)values[at + k] - center;

        sums[k] = FMA(by, by, sums[k]);
      }
    sum = NAME(total)(sums);
  }
  for (; at < n; at++)
    sum += ((double)values[at] - center) * ((double)values[at] - center);
  return sum;
}

/* The center is the sum of two single-precision numbers. The second one is
 * subtracted after the difference. */
TARGET static void NAME(shift)(float *out, const float *values, size_t n,
                               double center, double scale) {
  const float near = (float)center;
  const float rest = (float)(center - (double)near);
  const float by = (float)scale;
  size_t at = 0;

  for (; at + LANES <= n; at += LANES) {
    float v[LANES];

    for (size_t k = 0; k < LANES; k++)
      v[k] = (values[at + k] - near - rest) * by;
    memcpy(out + at, v, sizeof(v));
  }
  for (; at < n; at++)
    out[at] = (values[at] - near - rest) * by;
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
    const float *v = NAME(view)(own, values, at, n);
    float x[LANES];
    float e[LANES];

    for (size_t k = 0; k < LANES; k++)
      x[k] = v[k] - (float)max;
    for (size_t k = n - at; k < LANES; k++)
      x[k] = -INFINITY;
    NAME(exp_f)(e, x, 0);
    for (size_t k = 0; k < LANES; k++)
      sums[k] += (double)e[k];
    for (size_t k = 0; k < LANES; k++)
      squared[k] = FMA((double)e[k], (double)e[k], squared[k]);
  }
  *sum = NAME(total)(sums);
  *squares = NAME(total)(squared);
}

TARGET static double NAME(entropy)(const float *logprobs, size_t n) {
  double sums[LANES] = {0};

  for (size_t at = 0; at < n; at += LANES) {
    float own[LANES];
    const float *v = NAME(view)(own, logprobs, at, n);
    float e[LANES];
    double x[LANES];

    NAME(exp_f)(e, v, 0);
    for (size_t k = 0; k < LANES; k++)
      x[k] = (double)e[k] * (double)v[k]; /* 0 after the end */
    for (size_t k = 0; k < LANES; k++)
      sums[k] += v[k] == -INFINITY ? 0 : x[k]; /* p log p -> 0 as p -> 0 */
  }
  return NAME(total)(sums);
}

/* ---- Losses ---- */

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

#undef IS_NARROW
#undef NAME
#undef TARGET
#undef FMA
#undef FMAF
