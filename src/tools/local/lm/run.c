#include "tools/local/lm/state.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/loss.h"
#include "tools/local/lm/math.h"
#include "tools/local/lm/vocab.h"

/*
 * A pass over one example: all chunks forward, then the loss, then all chunks
 * backward. The loss comes first because it may need the whole sequence. The
 * activations are kept for that; they take 13 kB per token.
 */

enum { BLOCK = TNK__LM_BLOCK };

int tnk__lm_reserve(tnk__lm_t *lm, size_t n_tokens) {
  const size_t n = (n_tokens + BLOCK - 1) / BLOCK;

  while (lm->n_reserved < n) {
    size_t i = lm->n_reserved;
    /* After a failure the first allocation is kept for the next try. */
    if (lm->blocks[i] == NULL)
      lm->blocks[i] = tnk__calloc(lm->alloc, 1, sizeof(*lm->blocks[i]));
    if (lm->saved[i] == NULL)
      lm->saved[i] = tnk__malloc(lm->alloc, sizeof(*lm->saved[i]));
    if (lm->blocks[i] == NULL || lm->saved[i] == NULL)
      return TNK_ENOMEM;
    lm->n_reserved++;
  }
  return TNK_OK;
}

static int in_vocabulary(const tnk__lm_datum_t *datum, int64_t id) {
  return id >= 0 && id < tnk__lm_width(datum->n_vocab);
}

/* The logprob of its class, minus the share of the other members. */
static float logprob_of(const tnk__lm_datum_t *datum, const float *logits,
                        int64_t id, float max, float log_sum) {
  const int32_t of = tnk__lm_class(id);

  return (logits[of] - max) - log_sum -
         logf((float)tnk__lm_members(of, datum->n_vocab));
}

/* Logprobs of a chunk's targets, from position `pos` on; 0 for padding ids. */
static void target_logprobs(tnk__lm_chunk_t *chunk,
                            const tnk__lm_datum_t *datum, size_t pos, size_t n,
                            float *logprobs) {
  const size_t n_targets = datum->n_targets;
  const int64_t *targets = datum->targets + pos * n_targets;
  float e[TNK__LM_LOGITS];
  size_t i;
  size_t k;

  for (i = 0; i < n; i++) {
    float max;
    float sum;
    float log_sum;
    tnk__lm_softmax(e, chunk->logits[i], &max, &sum, &log_sum);
    for (k = 0; k < n_targets; k++) {
      int64_t id = targets[i * n_targets + k];
      logprobs[i * n_targets + k] =
          in_vocabulary(datum, id)
              ? logprob_of(datum, chunk->logits[i], id, max, log_sum)
              : 0;
    }
  }
}

/* Replace a chunk's logits by their gradients; the chunk begins at position
 * `pos`. */
static void logit_grads(tnk__lm_chunk_t *chunk, const tnk__lm_terms_t *terms,
                        size_t pos, size_t n) {
  const size_t n_targets = terms->datum->n_targets;
  float e[TNK__LM_LOGITS];
  size_t i;
  size_t k;

  for (i = 0; i < n; i++) {
    const size_t first = (pos + i) * n_targets;
    const int64_t *targets = terms->datum->targets + first;
    float *logits = chunk->logits[i];
    float total = 0;
    float max;
    float sum;
    float log_sum;
    tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
    for (k = 0; k < n_targets; k++)
      total += tnk__lm_slope(terms, first + k);
    for (k = 0; k < TNK__LM_LOGITS; k++)
      logits[k] = -total * (e[k] / sum);
    for (k = 0; k < n_targets; k++)
      if (in_vocabulary(terms->datum, targets[k]))
        logits[tnk__lm_class(targets[k])] += tnk__lm_slope(terms, first + k);
  }
}

/* Number of rows in a chunk; the last one may be short. */
static size_t rows_of(size_t index, size_t n_tokens) {
  size_t left = n_tokens - index * BLOCK;

  return left < BLOCK ? left : BLOCK;
}

static void forward(tnk__lm_t *lm, const tnk__lm_datum_t *datum,
                    float *logprobs) {
  const size_t n_blocks = (datum->n_tokens + BLOCK - 1) / BLOCK;
  const size_t k = datum->n_targets;
  size_t b;

  for (b = 0; b < n_blocks; b++) {
    size_t n = rows_of(b, datum->n_tokens);
    tnk__lm_chunk_t *chunk = &lm->saved[b]->chunk;
    tnk__lm_forward(lm->base, lm->w, lm->blocks, chunk, lm->scratch,
                    datum->tokens + b * BLOCK, b * BLOCK, n);
    target_logprobs(chunk, datum, b * BLOCK, n, logprobs + b * BLOCK * k);
  }
}

static void backward(tnk__lm_t *lm, const tnk__lm_terms_t *terms) {
  const tnk__lm_datum_t *datum = terms->datum;
  const size_t n_blocks = (datum->n_tokens + BLOCK - 1) / BLOCK;
  const size_t n_last = rows_of(n_blocks - 1, datum->n_tokens);
  /* In the order of tnk__lm_group_t. */
  const tnk__lm_back_t back = {
      lm->base,
      lm->wt,
      lm->g,
      {lm->config.train_attn, lm->config.train_mlp, lm->config.train_unembed},
      lm->blocks,
      lm->saved,
      lm->back_scratch};
  size_t b;
  size_t l;

  /* Clear values of an earlier pass. They are multiplied by a probability of 0,
   * which gives 0 only for finite values. */
  for (l = 0; l < TNK__LM_LAYERS; l++)
    memset(lm->blocks[n_blocks - 1]->v[l] + n_last, 0,
           (BLOCK - n_last) * TNK__LM_DIM * sizeof(float));
  for (b = 0; b < n_blocks; b++) {
    memset(lm->saved[b]->dk, 0, sizeof(lm->saved[b]->dk));
    memset(lm->saved[b]->dv, 0, sizeof(lm->saved[b]->dv));
  }
  for (b = n_blocks; b-- > 0;) {
    size_t n = rows_of(b, datum->n_tokens);
    logit_grads(&lm->saved[b]->chunk, terms, b * BLOCK, n);
    tnk__lm_backward(&back, b, n);
  }
}

int tnk__lm_run(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                const tnk__lm_datum_t *datum, int with_gradients,
                float *logprobs, double *loss_sum) {
  tnk__lm_terms_t terms;
  int err = tnk__lm_reserve(lm, datum->n_tokens);

  if (err != TNK_OK)
    return err;
  forward(lm, datum, logprobs);
  terms = tnk__lm_terms(loss, datum, logprobs);
  *loss_sum += terms.sum;
  if (with_gradients)
    backward(lm, &terms);
  return TNK_OK;
}
