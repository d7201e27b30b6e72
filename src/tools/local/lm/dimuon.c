#include "tools/local/lm/state.h"

#include <math.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/local/lm/check.h"
#include "tools/local/lm/math.h"

enum { ROUNDS = 5 };

static int check(const tnk__lm_t *lm, const tnk__dimuon_t *p,
                 tnk__lm_why_t *why) {
  if (lm->config.optimizer != TNK__LM_DIMUON)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the model was not created for dimuon");
  if (!isfinite(p->learning_rate) || p->learning_rate < 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"learning_rate\" must be at least 0");
  if (!(p->beta1 >= 0 && p->beta1 < 1))
    return tnk__lm_refuse(why, TNK_EINVAL, "\"beta1\" must be in [0, 1)");
  if (!isfinite(p->grad_clip_norm))
    return tnk__lm_refuse(why, TNK_EINVAL, "\"grad_clip_norm\" must be finite");
  return TNK_OK;
}

/* A factor: its position in the arrays, and its real shape. */
typedef struct {
  size_t at;
  size_t n_rows; /* as stored */
  size_t n_cols;
  float scale; /* scale of its update */
} factor_t;

/* One round x = a x + (b y + c y y) x with y = x x^T, for x of m x n with m <=
 * n. It moves all singular values towards 1. `room` has n x m floats and two
 * squares of m. */
static void round_of(float *x, size_t m, size_t n, float *room) {
  const float a = 3.4445f;
  const float b = -4.7750f;
  const float c = 2.0315f;
  float *y = room + n * m;
  float *yy = y + m * m;
  tnk__lm_view_t view = {x, n, 1};
  tnk__lm_view_t square = {y, m, 1};
  size_t i;

  tnk__lm_transpose(room, x, m, n);
  tnk__lm_gemm(y, m, view, room, m, m, m, n, 0);
  tnk__lm_gemm(yy, m, square, y, m, m, m, m, 0);
  for (i = 0; i < m * m; i++)
    y[i] = b * y[i] + c * yy[i];
  tnk__lm_gemm(room, n, square, x, n, m, n, m, 0);
  for (i = 0; i < m * n; i++)
    x[i] = a * x[i] + room[i];
}

/* Make `x`, n_rows x n_cols, nearly orthogonal; the shorter side is used as
 * rows. The result is in `work`, transposed if `x` was transposed. */
static int orthogonalise(float *work, const float *x, size_t n_rows,
                         size_t n_cols) {
  const size_t size = n_rows * n_cols;
  const int turned = n_rows > n_cols;
  double sum = 0;
  float by;
  size_t i;

  if (turned)
    tnk__lm_transpose(work, x, n_rows, n_cols);
  else
    memcpy(work, x, size * sizeof(*x));
  for (i = 0; i < size; i++)
    sum += (double)x[i] * (double)x[i];
  /* Scale to singular values of at most 1, for which the rounds converge; a
   * matrix of zeros stays zero. */
  by = (float)(1 / (sqrt(sum) + 1e-30));
  for (i = 0; i < size; i++)
    work[i] *= by;
  for (i = 0; i < ROUNDS; i++)
    round_of(work, turned ? n_cols : n_rows, turned ? n_rows : n_cols,
             work + size);
  return turned;
}

static void update(tnk__lm_t *lm, const factor_t *f, float rate, float beta) {
  float *value = lm->param[PARAM_VALUE] + f->at;
  float *m = lm->param[PARAM_MOMENT1] + f->at;
  const float *g = lm->grad + f->at;
  const float step = rate * f->scale;
  size_t i;
  size_t j;
  int turned;

  for (i = 0; i < f->n_rows * f->n_cols; i++)
    m[i] = beta * m[i] + g[i];
  turned = orthogonalise(lm->work, m, f->n_rows, f->n_cols);
  for (i = 0; i < f->n_rows; i++)
    for (j = 0; j < f->n_cols; j++)
      value[i * f->n_cols + j] -=
          step * lm->work[turned ? j * f->n_rows + i : i * f->n_cols + j];
}

/* sqrt(max(1, outputs / inputs)) of a factor. */
static float scale_of(size_t n_out, size_t n_in) {
  return n_out > n_in ? sqrtf((float)n_out / (float)n_in) : 1;
}

int tnk__lm_step_dimuon(tnk__lm_t *lm, const tnk__dimuon_t *params,
                        tnk__lm_step_t *out, tnk__lm_why_t *why) {
  const float rate = (float)params->learning_rate;
  const float beta = (float)params->beta1;
  const size_t rank = lm->config.rank;
  size_t i;
  int err = check(lm, params, why);

  if (err != TNK_OK)
    return err;
  tnk__lm_step_begin(lm, params->grad_clip_norm, out);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    factor_t a = {lm->factors[i].a, m.n_in, lm->lanes, scale_of(rank, m.n_in)};
    factor_t b = {lm->factors[i].b, lm->lanes, m.n_out,
                  scale_of(m.n_real, rank)};
    if (!lm->factors[i].trained)
      continue;
    update(lm, &a, rate, beta);
    update(lm, &b, rate, beta);
  }
  tnk__lm_zero_grad(lm);
  tnk__lm_merge(lm);
  return TNK_OK;
}
