#include "tools/local/lm/loss.h"

#include <math.h>

/* Bounds of the ratio at position i; the example's own bounds have priority. */
typedef struct {
  double low;
  double high;
} bounds_t;

static bounds_t bounds_at(const tnk__lm_loss_t *loss,
                          const tnk__lm_datum_t *datum, size_t i) {
  bounds_t b = {loss->clip_low, loss->clip_high};

  if (datum->clip_low != NULL)
    b.low = datum->clip_low[i];
  if (datum->clip_high != NULL)
    b.high = datum->clip_high[i];
  return b;
}

static double clip(double x, bounds_t b) {
  return x < b.low ? b.low : x > b.high ? b.high : x;
}

/* One term: its value and its derivative with respect to the logprob. */
typedef struct {
  double value;
  double slope;
} term_t;

/* -min(r A, clip(r) A), where r depends on the logprob. */
static term_t clipped(double ratio, double advantage, bounds_t b) {
  double open = ratio * advantage;
  double held = clip(ratio, b) * advantage;
  term_t t = {-held, 0};

  /* The smaller value counts. If both are equal, the ratio is within its
   * bounds, and its derivative is not 0. */
  if (open <= held) {
    t.value = -open;
    t.slope = -open;
  }
  return t;
}

/* gspo's ratio of the whole sequence: the geometric mean of the ratios at the
 * counted positions. */
static double sequence_ratio(const tnk__lm_datum_t *datum,
                             const float *logprobs) {
  double sum = 0;
  size_t n = 0;
  size_t i;

  for (i = 0; i < datum->n_tokens; i++)
    if (datum->mask == NULL || datum->mask[i] != 0) {
      sum += (double)logprobs[i] - (double)datum->logprobs[i];
      n++;
    }
  return n > 0 ? exp(sum / (double)n) : 1;
}

/* The formulas, with p the logprob, q the sampler's logprob, a the advantage.
 * The slope omits factors that count as constants. */
static term_t term_of(const tnk__lm_terms_t *terms, size_t i) {
  const tnk__lm_loss_t *loss = terms->loss;
  const tnk__lm_datum_t *datum = terms->datum;
  const int rl = loss->kind != TNK__LM_CROSS_ENTROPY;
  const double p = (double)terms->logprobs[i];
  const double q = rl ? (double)datum->logprobs[i] : 0;
  const double a = rl ? (double)datum->advantages[i] : 0;
  bounds_t b = bounds_at(loss, datum, i / datum->n_targets);
  term_t t = {0, 0};
  double held;

  switch (loss->kind) {
  case TNK__LM_CROSS_ENTROPY:
    t.value = -p;
    t.slope = -1;
    break;
  case TNK__LM_IMPORTANCE_SAMPLING:
    t.value = t.slope = -exp(p - q) * a;
    break;
  case TNK__LM_PPO:
    t = clipped(exp(p - q), a, b);
    break;
  case TNK__LM_CISPO:
    held = clip(exp(p - q), b);
    t.value = -held * p * a;
    t.slope = -held * a;
    break;
  case TNK__LM_DRO:
    t.value = -(p * a - 0.5 * loss->beta * (p - q) * (p - q));
    t.slope = -(a - loss->beta * (p - q));
    break;
  case TNK__LM_GSPO:
    t = clipped(terms->whole, a, b);
    break;
  case TNK__LM_STABLE_REINFORCE:
    /* A token that is now more likely than for the sampler has weight 1. A
     * token that is now less likely has the ratio of the probabilities as its
     * weight. */
    held = p < q ? exp(p - q) : 1;
    t.value = -held * p * a + 0.5 * loss->kl_coeff * (p - q) * (p - q);
    t.slope = -held * a + loss->kl_coeff * (p - q);
    break;
  }
  return t;
}

static double weight_of(const tnk__lm_datum_t *datum, size_t i) {
  return datum->weights != NULL ? (double)datum->weights[i] : 1;
}

tnk__lm_terms_t tnk__lm_terms(const tnk__lm_loss_t *loss,
                              const tnk__lm_datum_t *datum,
                              const float *logprobs) {
  tnk__lm_terms_t terms = {loss, datum, logprobs, 1, 0};
  const size_t n = datum->n_tokens * datum->n_targets;
  size_t i;

  if (loss->kind == TNK__LM_GSPO)
    terms.whole = sequence_ratio(datum, logprobs);
  for (i = 0; i < n; i++)
    if (weight_of(datum, i) != 0)
      terms.sum += weight_of(datum, i) * term_of(&terms, i).value;
  return terms;
}

float tnk__lm_slope(const tnk__lm_terms_t *terms, size_t i) {
  double weight = weight_of(terms->datum, i);

  return weight != 0 ? (float)(weight * term_of(terms, i).slope) : 0;
}
