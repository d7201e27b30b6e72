#include "local/lm/pick.h"

#include <math.h>
#include <stdlib.h>

#include "local/lm/forward.h"

typedef struct {
  float logit;
  int32_t id;
} candidate_t;

/* Best first. The ids decide between equals, so that the outcome does not
 * depend on how the library sorts. */
static int compare(const void *a, const void *b) {
  const candidate_t *x = a;
  const candidate_t *y = b;

  if (x->logit != y->logit)
    return x->logit > y->logit ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* All ids with the best in front. */
static void rank(candidate_t *list, const float *logits) {
  int32_t i;

  for (i = 0; i < TNK__LM_VOCAB; i++) {
    list[i].logit = logits[i];
    list[i].id = i;
  }
  qsort(list, TNK__LM_VOCAB, sizeof(*list), compare);
}

static int32_t most_likely(const float *logits) {
  int32_t best = 0;
  int32_t i;

  for (i = 1; i < TNK__LM_VOCAB; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

/* How many of the best candidates carry top_p of the mass of all n. */
static size_t nucleus(const double *mass, size_t n, double top_p) {
  double total = 0;
  double sum = 0;
  size_t i;

  for (i = 0; i < n; i++)
    total += mass[i];
  for (i = 0; i < n; i++) {
    sum += mass[i];
    if (sum >= top_p * total)
      return i + 1;
  }
  return n;
}

int32_t tnk__lm_pick(const float *logits, const tnk__lm_pick_t *how,
                     tnk__lm_rng_t *rng) {
  candidate_t list[TNK__LM_VOCAB];
  double mass[TNK__LM_VOCAB];
  size_t n = TNK__LM_VOCAB;
  double total = 0;
  double at;
  size_t i;

  /* Without a draw, so that it takes no random number and repeats whatever the
   * seed. */
  if (how->temperature <= 0)
    return most_likely(logits);
  rank(list, logits);
  if (how->top_k >= 1 && how->top_k < TNK__LM_VOCAB)
    n = (size_t)how->top_k;
  for (i = 0; i < n; i++)
    mass[i] =
        exp(((double)list[i].logit - (double)list[0].logit) / how->temperature);
  /* The nucleus is taken of what top_k left, after the temperature. */
  if (how->top_p < 1)
    n = nucleus(mass, n, how->top_p);
  for (i = 0; i < n; i++)
    total += mass[i];
  at = tnk__lm_rng_unit(rng) * total;
  /* Rounding may leave a rest behind the last one: it stays there. */
  for (i = 0; i + 1 < n && at >= mass[i]; i++)
    at -= mass[i];
  return list[i].id;
}

void tnk__lm_best(const float *logits, size_t k, int32_t *ids,
                  float *logprobs) {
  candidate_t list[TNK__LM_VOCAB];
  float e[TNK__LM_LOGITS];
  float max;
  float sum;
  float log_sum;
  size_t i;

  rank(list, logits);
  tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
  for (i = 0; i < k; i++) {
    ids[i] = list[i].id;
    logprobs[i] = (list[i].logit - max) - log_sum;
  }
}

float tnk__lm_logprob(const float *logits, int32_t id) {
  float e[TNK__LM_LOGITS];
  float max;
  float sum;
  float log_sum;

  tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
  return (logits[id] - max) - log_sum;
}
