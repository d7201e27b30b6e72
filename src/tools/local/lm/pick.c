#include "tools/local/lm/pick.h"

#include <math.h>
#include <stdlib.h>

#include "tools/local/lm/forward.h"
#include "tools/local/lm/vocab.h"

/* A class and the number of its members that can be drawn. */
typedef struct {
  float logit; /* of each member */
  int32_t id;  /* the first member; the others follow at regular distances */
  int32_t n;
} candidate_t;

/* Best first. Equal logits are ordered by id, so that the result does not
 * depend on the sort algorithm. */
static int compare(const void *a, const void *b) {
  const candidate_t *x = a;
  const candidate_t *y = b;

  if (x->logit != y->logit)
    return x->logit > y->logit ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static float share(const float *logits, int32_t of_class, int32_t n_vocab) {
  return logits[of_class] - logf((float)tnk__lm_members(of_class, n_vocab));
}

/* All classes, the best first. */
static void rank(candidate_t *list, const float *logits, int32_t n_vocab) {
  int32_t i;

  for (i = 0; i < TNK__LM_VOCAB; i++) {
    list[i].logit = share(logits, i, n_vocab);
    list[i].id = i;
    list[i].n = tnk__lm_members(i, n_vocab);
  }
  qsort(list, TNK__LM_VOCAB, sizeof(*list), compare);
}

static int32_t most_likely(const float *logits, int32_t n_vocab) {
  int32_t best = 0;
  int32_t i;

  for (i = 1; i < TNK__LM_VOCAB; i++)
    if (share(logits, i, n_vocab) > share(logits, best, n_vocab))
      best = i;
  return best;
}

/* Keep the k best ids. Returns the number of remaining classes. */
static size_t cut(candidate_t *list, int64_t k) {
  size_t i;

  for (i = 0; i < TNK__LM_VOCAB && k > 0; i++) {
    if (list[i].n > k)
      list[i].n = (int32_t)k;
    k -= list[i].n;
  }
  return i;
}

/* Keep the best ids that have top_p of the total mass of n classes. Returns the
 * number of remaining classes. */
static size_t nucleus(candidate_t *list, double *mass, size_t n, double top_p) {
  double total = 0;
  double sum = 0;
  size_t i;

  for (i = 0; i < n; i++)
    total += mass[i];
  for (i = 0; i < n; i++) {
    const double each = mass[i] / list[i].n;
    const double wanted = ceil((top_p * total - sum) / each);

    sum += mass[i];
    if (sum < top_p * total)
      continue;
    if (wanted >= 1 && wanted < list[i].n) {
      list[i].n = (int32_t)wanted;
      mass[i] = each * wanted;
    }
    return i + 1;
  }
  return n;
}

/* Select a member of a drawn class. */
static int32_t member(const candidate_t *of, tnk__lm_rng_t *rng) {
  int32_t i;

  if (of->n == 1)
    return of->id;
  i = (int32_t)(tnk__lm_rng_unit(rng) * of->n);
  return of->id + TNK__LM_VOCAB * (i < of->n ? i : of->n - 1);
}

int32_t tnk__lm_pick(const float *logits, const tnk__lm_pick_t *how,
                     tnk__lm_rng_t *rng) {
  candidate_t list[TNK__LM_VOCAB];
  double mass[TNK__LM_VOCAB];
  size_t n = TNK__LM_VOCAB;
  double total = 0;
  double at;
  size_t i;

  /* The most likely token uses no random number, so the result is the same for
   * every seed. */
  if (how->temperature <= 0)
    return most_likely(logits, how->n_vocab);
  rank(list, logits, how->n_vocab);
  if (how->top_k >= 1)
    n = cut(list, how->top_k);
  for (i = 0; i < n; i++)
    mass[i] = list[i].n * exp(((double)list[i].logit - (double)list[0].logit) /
                              how->temperature);
  /* The nucleus is computed from the result of top_k, after the temperature. */
  if (how->top_p < 1)
    n = nucleus(list, mass, n, how->top_p);
  for (i = 0; i < n; i++)
    total += mass[i];
  at = tnk__lm_rng_unit(rng) * total;
  /* A remainder from rounding belongs to the last one. */
  for (i = 0; i + 1 < n && at >= mass[i]; i++)
    at -= mass[i];
  return member(&list[i], rng);
}

void tnk__lm_best(const float *logits, int32_t n_vocab, size_t k, int32_t *ids,
                  float *logprobs) {
  candidate_t list[TNK__LM_VOCAB];
  float e[TNK__LM_LOGITS];
  float max;
  float sum;
  float log_sum;
  size_t n = 0;

  rank(list, logits, n_vocab);
  tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
  for (size_t i = 0; n < k; i++)
    for (int32_t m = 0; m < list[i].n && n < k; m++, n++) {
      ids[n] = list[i].id + TNK__LM_VOCAB * m;
      logprobs[n] = (logits[list[i].id] - max) - log_sum -
                    logf((float)tnk__lm_members(list[i].id, n_vocab));
    }
}

float tnk__lm_logprob(const float *logits, int32_t n_vocab, int32_t id) {
  const int32_t of = tnk__lm_class(id);
  float e[TNK__LM_LOGITS];
  float max;
  float sum;
  float log_sum;

  tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
  return (logits[of] - max) - log_sum -
         logf((float)tnk__lm_members(of, n_vocab));
}
