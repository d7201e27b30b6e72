/* SPDX-License-Identifier: MIT */
/*
 * The loops of tnk/rl.h for each kind of processor that this machine can be
 * taken for, beside the same sums in plain double arithmetic.
 */
#include "lib/rl/lanes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "support/test.h"

enum { LANES = 128, MAX = 3 * LANES + 2 }; /* as many as in lanes.c */

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#define NAME(name) name##_any
#define TARGET
#define FMA(a, b, c) ((a) * (b) + (c))
#define FMAF(a, b, c) ((a) * (b) + (c))
#include "lib/rl/lanes_body.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define FMA(a, b, c) fma(a, b, c)
#define FMAF(a, b, c) fmaf(a, b, c)
#include "lib/rl/lanes_body.h"
#define HAS_AVX2()                                                             \
  (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#endif

/* The functions of one kind. */
typedef struct {
  double (*kl)(const float *, const float *, const float *, size_t, tnk_kl_t,
               double *);
  void (*kl_tokens)(float *, const float *, const float *, size_t, tnk_kl_t);
  void (*ratios)(float *, const float *, const float *, size_t);
  double (*sum)(const float *, const float *, size_t, double *);
  double (*squares)(const float *, size_t, double);
  void (*shift)(float *, const float *, size_t, double, double);
  void (*exp_sums)(const float *, size_t, double, double *, double *);
  double (*max)(const float *, size_t);
  double (*entropy)(const float *, size_t);
  double (*surrogate)(const tnk_rl_tokens_t *, const float *, double, double,
                      double, tnk__surrogate_t);
  double (*elastic)(float *, const float *, const float *, const float *,
                    size_t, double, double);
  double (*penalty)(const tnk_rl_tokens_t *, tnk_kl_t, double);
  double (*centered)(float *, const float *, size_t, double, double);
} lanes_t;

#define LANES_OF(end)                                                          \
  {                                                                            \
    kl_##end, kl_tokens_##end, ratios_##end, sum_##end, squares_##end,         \
        shift_##end, exp_sums_##end, max_##end, entropy_##end,                 \
        surrogate_##end, elastic_##end, penalty_##end, centered_##end          \
  }

static const lanes_t picked = {
    tnk__lanes_kl,        tnk__lanes_kl_tokens, tnk__lanes_ratios,
    tnk__lanes_sum,       tnk__lanes_squares,   tnk__lanes_shift,
    tnk__lanes_exp_sums,  tnk__lanes_max,       tnk__lanes_entropy,
    tnk__lanes_surrogate, tnk__lanes_elastic,   tnk__lanes_penalty,
    tnk__lanes_centered};
static const lanes_t any = LANES_OF(any);

typedef struct {
  const lanes_t *lanes;
  size_t n;
  const float *w; /* or NULL */
} case_t;

static float q[MAX], p[MAX], a[MAX], w[MAX];

static void fill(void) {
  uint64_t state = 3;

  for (size_t i = 0; i < MAX; i++) {
    q[i] = -(float)(test_random(&state) % 1000) / 128;
    p[i] = q[i] + ((float)(test_random(&state) % 1000) - 500) / 256;
    a[i] = ((float)(test_random(&state) % 100) - 50) / 16;
    w[i] = (float)(test_random(&state) % 3);
  }
}

static double weight_of(const case_t *c, size_t i) {
  return c->w != NULL ? (double)c->w[i] : 1;
}

static double estimate(size_t i, tnk_kl_t kind) {
  const double r = (double)p[i] - (double)q[i];

  return kind == TNK_KL_K1 ? -r : kind == TNK_KL_K2 ? r * r / 2 : expm1(r) - r;
}

static void check_kl(const case_t *c, tnk_kl_t kind) {
  double sum = 0;
  double total = 0;
  double got;
  float each[MAX] = {0};

  for (size_t i = 0; i < c->n; i++) {
    sum += weight_of(c, i) * estimate(i, kind);
    total += weight_of(c, i);
  }
  CHECK_NEAR(c->lanes->kl(q, p, c->w, c->n, kind, &got), sum,
             1e-7 * fabs(sum) + 1e-9);
  CHECK_NEAR(got, total, 0);
  c->lanes->kl_tokens(each, q, p, c->n, kind);
  for (size_t i = 0; i < MAX; i++)
    CHECK_NEAR((double)each[i], i < c->n ? estimate(i, kind) : 0, 1e-6);
}

static void check_sums(const case_t *c) {
  double sum = 0, total = 0, squares = 0, e = 0, e2 = 0, entropy = 0;
  double max = -INFINITY, got, got2;
  float out[MAX] = {0};

  for (size_t i = 0; i < c->n; i++) {
    const double x = (double)q[i];

    sum += weight_of(c, i) * x;
    total += weight_of(c, i);
    squares += (x - 0.5) * (x - 0.5);
    e += exp(x + 1);
    e2 += exp(2 * (x + 1));
    entropy += exp(x) * x;
    max = fmax(max, x);
  }
  CHECK_NEAR(c->lanes->sum(q, c->w, c->n, &got), sum, 1e-11);
  CHECK_NEAR(got, total, 0);
  CHECK_NEAR(c->lanes->squares(q, c->n, 0.5), squares, 1e-9);
  CHECK_NEAR(c->lanes->max(q, c->n), c->n > 0 ? max : -INFINITY, 0);
  c->lanes->exp_sums(q, c->n, -1, &got, &got2);
  CHECK_NEAR(got, e, 1e-7 * e);
  CHECK_NEAR(got2, e2, 1e-7 * e2);
  CHECK_NEAR(c->lanes->entropy(q, c->n), entropy, 1e-5);
  c->lanes->shift(out, q, c->n, -2, 0.5);
  for (size_t i = 0; i < MAX; i++)
    CHECK_NEAR((double)out[i], i < c->n ? ((double)q[i] + 2) / 2 : 0, 1e-6);
  c->lanes->ratios(out, q, p, c->n);
  for (size_t i = 0; i < c->n; i++)
    CHECK_NEAR((double)out[i] / exp((double)p[i] - (double)q[i]), 1, 3e-7);
}

static void check_losses(const case_t *c) {
  float gradient[MAX] = {0};
  const tnk_rl_tokens_t tokens = {c->n, p, q, c->w, gradient};
  double ppo = 0, elastic = 0;

  for (size_t i = 0; i < c->n; i++) {
    const double r = exp((double)p[i] - (double)q[i]);
    const double held = fmin(fmax(r, 0.8), 1.2);

    ppo -= weight_of(c, i) * fmin(r * (double)a[i], held * (double)a[i]);
    elastic += weight_of(c, i) * (fabs((double)p[i] - (double)q[i]) +
                                  2 * pow((double)p[i] - (double)q[i], 2));
  }
  CHECK_NEAR(c->lanes->surrogate(&tokens, a, 0.8, 1.2, 1, TNK__SURROGATE_PPO),
             ppo, 1e-4 + 1e-6 * fabs(ppo));
  CHECK_NEAR(c->lanes->elastic(gradient, p, q, c->w, c->n, 1, 2), elastic,
             1e-4 + 1e-6 * elastic);
  for (int kind = TNK_KL_K1; kind <= (int)TNK_KL_K3; kind++) {
    const tnk_rl_tokens_t back = {c->n, q, p, c->w, gradient};
    double sum = 0;

    for (size_t i = 0; i < c->n; i++)
      sum += weight_of(c, i) * estimate(i, (tnk_kl_t)kind);
    CHECK_NEAR(c->lanes->penalty(&back, (tnk_kl_t)kind, 2), 2 * sum,
               1e-3 + 1e-6 * fabs(sum));
  }
  CHECK_NEAR(c->lanes->centered(gradient, q, c->n, 0.5, 2),
             2 * c->lanes->squares(q, c->n, 0.5), 1e-9);
  for (size_t i = c->n; i < MAX; i++)
    CHECK(gradient[i] == 0);
}

/* Of every length of a first run, and some of more, so that the rest behind the
 * last full one is tried. */
static void check_lanes(const lanes_t *lanes) {
  fill();
  for (size_t n = 0; n <= MAX; n += n < LANES + 4 ? 1 : 42)
    for (int is_weighted = 0; is_weighted < 2; is_weighted++) {
      const case_t c = {lanes, n, is_weighted ? w : NULL};

      check_kl(&c, TNK_KL_K1);
      check_kl(&c, TNK_KL_K2);
      check_kl(&c, TNK_KL_K3);
      check_sums(&c);
      check_losses(&c);
    }
}

/* e^x - 1 - x as a float, over all of its range, and in each lane of a run. */
static void check_k3_range(const lanes_t *lanes) {
  enum { STEPS = 128 * 1024 };
  static float x[STEPS], zero[STEPS], got[STEPS], gradient[STEPS];

  for (size_t i = 0; i < STEPS; i++) {
    x[i] = -120 + 210 * (float)i / STEPS;
    gradient[i] = 0;
  }
  lanes->kl_tokens(got, zero, x, STEPS, TNK_KL_K3);
  for (size_t i = 0; i < STEPS; i++) {
    const long double e = expl((long double)x[i]);
    const long double expected = expm1l((long double)x[i]) - (long double)x[i];
    const double wide = (double)fmaxl(e, fmaxl(fabsl((long double)x[i]), 1));

    if (expected > 3.4028236e38L)
      CHECK(isinf(got[i]) && got[i] > 0);
    else if (fabsf(x[i]) < 0.34f)
      CHECK_NEAR((double)got[i], (double)expected, 1e-6 * (double)expected);
    else
      CHECK_NEAR((double)got[i], (double)expected, 5e-7 * wide);
  }
  /* The penalty of one token at a time has the same values. */
  for (size_t i = 0; i < STEPS; i += 7) {
    const tnk_rl_tokens_t one = {.logprobs = &zero[i],
                                 .reference = &x[i],
                                 .gradient = &gradient[i],
                                 .n = 1};
    const double value = lanes->penalty(&one, TNK_KL_K3, 1);

    if (isfinite(got[i]))
      CHECK_NEAR(value, (double)got[i], 1e-6 * fabs((double)got[i]) + 1e-9);
    CHECK(!isnan(value) && !isnan(gradient[i]));
  }
}

static const double extremes[] = {0,     1e-30, -1e-30,   88.7,
                                  -86,   -87.4, 88.8,     1000,
                                  -1000, -0.0,  INFINITY, -INFINITY};

/* Where an exponential ends, and what is not finite. */
static void check_ends(const lanes_t *lanes) {
  for (size_t i = 0; i < sizeof(extremes) / sizeof(extremes[0]); i++) {
    const float x = (float)extremes[i];
    const float zero = 0;
    const double expected = exp((double)x);
    double total, k3;
    float ratio;

    lanes->ratios(&ratio, &zero, &x, 1);
    if (expected > 3.4028235e38)
      CHECK(isinf(ratio) && ratio > 0);
    else
      CHECK_NEAR((double)ratio, expected, 3e-7 * expected + 1e-37);
    k3 = lanes->kl(&zero, &x, NULL, 1, TNK_KL_K3, &total);
    if (x > 709)
      CHECK(k3 > 1e300);
    else
      /* As a float where one holds it, else in double precision. */
      CHECK_NEAR(k3, expm1((double)x) - (double)x,
                 (x > 1 && !isinf(ratio) ? 1e-7 : 1e-13) * expected);
  }
  const float nan = NAN;
  float ratio;
  double total;
  lanes->ratios(&ratio, &nan, &nan, 1);
  CHECK(isnan(ratio) && isnan(lanes->entropy(&nan, 1)));
  CHECK(isnan(lanes->kl(&nan, &nan, NULL, 1, TNK_KL_K3, &total)));
}

TEST(rl_loops_as_they_are_picked_here) {
  check_lanes(&picked);
  check_ends(&picked);
  check_k3_range(&picked);
}

TEST(rl_loops_for_any_processor) {
  check_lanes(&any);
  check_ends(&any);
  check_k3_range(&any);
}

TEST(rl_loops_for_processors_with_AVX2) {
#ifdef HAS_AVX2
  static const lanes_t avx2 = LANES_OF(avx2);

  if (!HAS_AVX2())
    test_skip("this one has none");
  check_lanes(&avx2);
  check_ends(&avx2);
  check_k3_range(&avx2);
#else
  test_skip("this one is of another kind");
#endif
}
