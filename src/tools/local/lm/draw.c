/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"
#include "tools/local/lm/state.h"
#include "tools/local/lm/vocab.h"

/* ---- Options ---- */

/* Limits a value from the client that is multiplied by the length of the
 * prompt. */
enum { MAX_ALTERNATIVES = 4096 };

static int check_stops(const tnk__lm_draw_options_t *o, tnk__lm_why_t *why) {
  size_t i;

  for (i = 0; i < o->n_stop_texts; i++)
    if (o->stop_texts[i].length == 0)
      return tnk__lm_refuse(why, TNK_EINVAL, "stop[%zu] is empty", i);
  if (o->n_stop_texts > 0 && tnk__lm_width(o->n_vocab) != TNK__LM_VOCAB)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "stop must be token ids: those of a wider vocabulary "
                          "are not bytes");
  return tnk__lm_tokens_check(o->stop_tokens, o->n_stop_tokens, o->n_vocab,
                              "stop", why);
}

/* -1 requests nothing. */
static int check_ask(const tnk__lm_draw_options_t *o, tnk__lm_why_t *why) {
  const size_t n = o->ask == NULL ? 0 : (o->n_prompt - 1) * o->n_ask;
  size_t i;

  for (i = 0; i < n; i++)
    if (o->ask[i] < -1 || o->ask[i] >= tnk__lm_width(o->n_vocab))
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "target_prompt_logprobs[%zu] is %lld, the "
                            "vocabulary has ids 0 to %d",
                            i, (long long)o->ask[i],
                            (int)tnk__lm_width(o->n_vocab) - 1);
  return TNK_OK;
}

/* Check options: returns TNK_EINVAL with a message for invalid ones. */
static int lm_draw_check(const tnk__lm_draw_options_t *o, tnk__lm_why_t *why) {
  int err;

  if (o->n_prompt < 1 || o->n_prompt > TNK__LM_MAX_CONTEXT)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the prompt has %zu tokens, 1 to %d are possible",
                          o->n_prompt, TNK__LM_MAX_CONTEXT);
  if (o->n_samples < 1)
    return tnk__lm_refuse(why, TNK_EINVAL, "num_samples must be at least 1");
  if (!isfinite(o->temperature) || o->temperature < 0)
    return tnk__lm_refuse(why, TNK_EINVAL, "temperature must be at least 0");
  if (!(o->top_p > 0 && o->top_p <= 1))
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "top_p must be above 0 and at most 1");
  if (o->topk_prompt > TNK__LM_MAX_TOPK || o->topk_sample > TNK__LM_MAX_TOPK)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "at most %d logprobs a position are possible",
                          TNK__LM_MAX_TOPK);
  if (o->n_alternatives > MAX_ALTERNATIVES)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "prompt_alt_tokens_k must be at most %d",
                          MAX_ALTERNATIVES);
  if (o->last_n >= o->n_prompt && o->last_n > 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "prompt_logprobs_last_n must be below the prompt's "
                          "%zu tokens",
                          o->n_prompt);
  err = tnk__lm_tokens_check(o->prompt, o->n_prompt, o->n_vocab, "prompt", why);
  if (err == TNK_OK)
    err = check_stops(o, why);
  return err == TNK_OK ? check_ask(o, why) : err;
}

/* Copy an array into the arena; an empty array becomes NULL. */
static int copy(tnk__arena_t *arena, const void **at, size_t n, size_t size) {
  if (n == 0 || *at == NULL) {
    *at = NULL;
    return 1;
  }
  *at = tnk__arena_copy(arena, *at, n * size);
  return *at != NULL;
}

static int copy_texts(tnk__lm_draw_options_t *o, tnk__arena_t *arena) {
  tnk__lm_text_t *texts;
  size_t i;

  if (o->n_stop_texts == 0)
    return 1;
  texts =
      tnk__arena_copy(arena, o->stop_texts, o->n_stop_texts * sizeof(*texts));
  if (texts == NULL)
    return 0;
  o->stop_texts = texts;
  for (i = 0; i < o->n_stop_texts; i++) {
    texts[i].bytes = tnk__arena_copy(arena, texts[i].bytes, texts[i].length);
    if (texts[i].bytes == NULL)
      return 0;
  }
  return 1;
}

/* Replace all arrays by copies in the arena; returns 0 without memory. */
static int lm_draw_copy(tnk__lm_draw_options_t *o, tnk__arena_t *arena) {
  const void *prompt = o->prompt;
  const void *stops = o->stop_tokens;
  const void *ask = o->ask;
  int ok = copy(arena, &prompt, o->n_prompt, sizeof(*o->prompt)) &&
           copy(arena, &stops, o->n_stop_tokens, sizeof(*o->stop_tokens)) &&
           copy(arena, &ask, (o->n_prompt - 1) * o->n_ask, sizeof(*o->ask));

  o->prompt = prompt;
  o->stop_tokens = stops;
  o->ask = ask;
  return ok && copy_texts(o, arena);
}

/* ---- The weights ---- */

/* A snapshot copies the merged matrices. Sampling uses it while the model is
 * trained, and needs no factors. */

/* Weights with memory for their floats after the struct. */
typedef struct {
  tnk__lm_weights_t pub;
  float own[TNK__LM_N_WEIGHTS];
} owned_t;

tnk__lm_weights_t *tnk__lm_snapshot(const tnk__lm_t *lm) {
  owned_t *weights = tnk__malloc(lm->alloc, sizeof(*weights));

  if (weights == NULL)
    return NULL;
  weights->pub.alloc = lm->alloc;
  weights->pub.base = lm->base;
  weights->pub.w = weights->own;
  memcpy(weights->own, lm->w, sizeof(weights->own));
  return &weights->pub;
}

tnk__lm_weights_t *tnk__lm_base_weights(const tnk__lm_base_t *base,
                                        const tnk_allocator_t *alloc) {
  tnk__lm_weights_t *weights = tnk__malloc(alloc, sizeof(*weights));

  if (weights == NULL)
    return NULL;
  weights->alloc = alloc;
  weights->base = base;
  weights->w = base->weights;
  return weights;
}

void tnk__lm_weights_free(tnk__lm_weights_t *weights) {
  if (weights != NULL)
    tnk__free(weights->alloc, weights);
}

/* ---- Selecting tokens ---- */

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

/* ---- A request ---- */

/*
 * A sampling request.
 *
 *   NEW     has only a copy of the options
 *   PROMPT  reads the prompt, n_read tokens so far; each row of logits is
 *           scored at once, and only the last one is kept
 *   SAMPLE  writes sample number n_samples; the blocks hold the prompt and,
 *           after it, the tokens of this sample, which replace those of the
 *           previous one
 *   DONE    the results are available; the working memory is freed
 *
 * The random numbers of a sample come from (seed, its number), and those of the
 * draws at a prompt position from (seed, position). So results depend neither
 * on the slicing nor on the other options.
 */

enum { BLOCK = TNK__LM_BLOCK };
#define ALTERNATIVES_STREAM ((uint64_t)1 << 40)

typedef enum { NEW, PROMPT, SAMPLE, DONE } state_t;

/* Position of a finished sample in the common arrays. */
typedef struct {
  size_t begin;
  size_t n;
  tnk__lm_stop_reason_t reason;
} sample_t;

/* State that is needed only until the request is done. */
typedef struct {
  tnk__lm_chunk_t chunk;
  tnk__lm_scratch_t scratch;
  float first[TNK__LM_LOGITS]; /* logits after the prompt */
} work_t;

struct tnk__lm_draw {
  const tnk_allocator_t *alloc;
  const tnk__lm_weights_t *weights;
  tnk__arena_t arena; /* copies of the options, results for the prompt */
  tnk__lm_draw_options_t o;
  tnk__lm_pick_t pick;
  state_t state;
  size_t n_read;
  work_t *work;
  tnk__lm_block_t *blocks[TNK__LM_MAX_BLOCKS];
  /* Results for the prompt; NULL when off. */
  float *logprobs;
  int32_t *topk_tokens;
  float *topk_logprobs;
  int32_t *alt_tokens;
  float *alt_logprobs;
  float *ask_logprobs;
  /* All samples, one after the other. */
  sample_t *samples;
  size_t n_samples; /* finished samples; the next one is in progress */
  size_t samples_cap;
  int32_t *out_tokens;
  float *out_logprobs;
  int32_t *out_topk_tokens;
  float *out_topk_logprobs;
  size_t n_out;
  size_t out_cap;
  size_t begin; /* start of the current sample */
  tnk__lm_rng_t rng;
};

int tnk__lm_draw_new(tnk__lm_draw_t **out, const tnk__lm_weights_t *weights,
                     const tnk__lm_draw_options_t *options,
                     const tnk_allocator_t *alloc, tnk__lm_why_t *why) {
  tnk__lm_draw_t *draw;
  int err = lm_draw_check(options, why);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  draw = tnk__calloc(alloc, 1, sizeof(*draw));
  if (draw == NULL)
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  draw->alloc = alloc;
  draw->weights = weights;
  draw->o = *options;
  draw->pick.temperature = options->temperature;
  draw->pick.top_k = options->top_k;
  draw->pick.top_p = options->top_p;
  draw->pick.n_vocab = options->n_vocab;
  tnk__arena_init(&draw->arena, alloc, SIZE_MAX);
  if (!lm_draw_copy(&draw->o, &draw->arena)) {
    tnk__lm_draw_free(draw);
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  }
  *out = draw;
  return TNK_OK;
}

static void free_work(tnk__lm_draw_t *draw) {
  size_t i;

  for (i = 0; i < TNK__LM_MAX_BLOCKS; i++) {
    tnk__free(draw->alloc, draw->blocks[i]);
    draw->blocks[i] = NULL;
  }
  tnk__free(draw->alloc, draw->work);
  draw->work = NULL;
}

void tnk__lm_draw_free(tnk__lm_draw_t *draw) {
  if (draw == NULL)
    return;
  free_work(draw);
  tnk__free(draw->alloc, draw->samples);
  tnk__free(draw->alloc, draw->out_tokens);
  tnk__free(draw->alloc, draw->out_logprobs);
  tnk__free(draw->alloc, draw->out_topk_tokens);
  tnk__free(draw->alloc, draw->out_topk_logprobs);
  tnk__arena_deinit(&draw->arena);
  tnk__free(draw->alloc, draw);
}

/* Allocate n floats of `value`, or n ids of -1; both fill 32-bit words. */
static int filled_floats(tnk__lm_draw_t *draw, float **out, size_t n,
                         float value) {
  size_t i;

  *out = tnk__arena_calloc(&draw->arena, n, sizeof(**out));
  for (i = 0; *out != NULL && i < n; i++)
    (*out)[i] = value;
  return *out != NULL;
}

static int unset_ids(tnk__lm_draw_t *draw, int32_t **out, size_t n) {
  *out = tnk__arena_calloc(&draw->arena, n, sizeof(**out));
  if (*out != NULL)
    memset(*out, 0xff, n * sizeof(**out));
  return *out != NULL;
}

/* From NEW to PROMPT. */
static int begin(tnk__lm_draw_t *draw) {
  const tnk__lm_draw_options_t *o = &draw->o;
  const size_t n = o->n_prompt;
  int ok = 1;

  draw->work = tnk__malloc(draw->alloc, sizeof(*draw->work));
  ok = draw->work != NULL;
  if (o->prompt_logprobs)
    ok = ok && filled_floats(draw, &draw->logprobs, n, NAN);
  if (o->topk_prompt > 0)
    ok = ok && unset_ids(draw, &draw->topk_tokens, n * o->topk_prompt) &&
         filled_floats(draw, &draw->topk_logprobs, n * o->topk_prompt, NAN);
  if (o->n_alternatives > 0)
    ok = ok &&
         unset_ids(draw, &draw->alt_tokens, (n - 1) * o->n_alternatives) &&
         filled_floats(draw, &draw->alt_logprobs, (n - 1) * o->n_alternatives,
                       NAN);
  if (o->ask != NULL)
    ok = ok && filled_floats(draw, &draw->ask_logprobs, (n - 1) * o->n_ask, 0);
  draw->state = PROMPT;
  return ok ? TNK_OK : TNK_ENOMEM;
}

static int need_block(tnk__lm_draw_t *draw, size_t pos) {
  tnk__lm_block_t **block = &draw->blocks[pos / BLOCK];

  if (*block == NULL)
    *block = tnk__calloc(draw->alloc, 1, sizeof(**block));
  return *block != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Compute the requested values for prompt position `pos`, at least 1, from the
 * logits before it. */
static void score(tnk__lm_draw_t *draw, const float *logits, size_t pos) {
  const tnk__lm_draw_options_t *o = &draw->o;
  const size_t k = o->topk_prompt;
  const size_t n_alt = o->n_alternatives;
  size_t i;

  if (o->last_n == 0 || pos >= o->n_prompt - o->last_n) {
    if (draw->logprobs != NULL)
      draw->logprobs[pos] = tnk__lm_logprob(logits, o->n_vocab, o->prompt[pos]);
    if (draw->topk_tokens != NULL)
      tnk__lm_best(logits, o->n_vocab, k, draw->topk_tokens + pos * k,
                   draw->topk_logprobs + pos * k);
  }
  if (n_alt > 0) {
    tnk__lm_rng_t rng = tnk__lm_rng(o->seed, ALTERNATIVES_STREAM + pos);
    tnk__lm_pick_t pick = {o->temperature, 0, 1, o->n_vocab};
    for (i = (pos - 1) * n_alt; i < pos * n_alt; i++) {
      draw->alt_tokens[i] = tnk__lm_pick(logits, &pick, &rng);
      draw->alt_logprobs[i] =
          tnk__lm_logprob(logits, o->n_vocab, draw->alt_tokens[i]);
    }
  }
  if (draw->ask_logprobs != NULL)
    for (i = (pos - 1) * o->n_ask; i < pos * o->n_ask; i++)
      if (o->ask[i] >= 0)
        draw->ask_logprobs[i] =
            tnk__lm_logprob(logits, o->n_vocab, (int32_t)o->ask[i]);
}

static void begin_sample(tnk__lm_draw_t *draw) {
  draw->begin = draw->n_out;
  draw->rng = tnk__lm_rng(draw->o.seed, draw->n_samples);
}

/* Read up to `n` more tokens of the prompt, at most one chunk. */
static int read_prompt(tnk__lm_draw_t *draw, size_t n, size_t *done) {
  const size_t left = draw->o.n_prompt - draw->n_read;
  tnk__lm_chunk_t *chunk = &draw->work->chunk;
  const size_t at = draw->n_read;
  size_t i;
  int err;

  n = n < left ? n : left;
  /* A chunk may span two blocks, so both ends need theirs. */
  n = n < BLOCK ? n : BLOCK;
  err = need_block(draw, at);
  if (err == TNK_OK)
    err = need_block(draw, at + n - 1);
  if (err != TNK_OK)
    return err;
  tnk__lm_forward(draw->weights->base, draw->weights->w, draw->blocks, chunk,
                  &draw->work->scratch, draw->o.prompt + at, at, n);
  for (i = 0; i < n; i++)
    if (at + i + 1 < draw->o.n_prompt)
      score(draw, chunk->logits[i], at + i + 1);
  draw->n_read += n;
  *done = n;
  if (draw->n_read == draw->o.n_prompt) {
    memcpy(draw->work->first, chunk->logits[n - 1], sizeof(draw->work->first));
    draw->state = SAMPLE;
    begin_sample(draw);
  }
  return TNK_OK;
}

static int grow(tnk__lm_draw_t *draw, void **at, size_t n, size_t size) {
  void *more;

  if (n > SIZE_MAX / size)
    return 0;
  more = tnk__realloc(draw->alloc, *at, n * size);
  if (more != NULL)
    *at = more;
  return more != NULL;
}

/* Make space for one more sampled token. If a later allocation fails, the
 * arrays that have grown are longer than out_cap. That is harmless. */
static int room(tnk__lm_draw_t *draw) {
  const size_t k = draw->o.topk_sample;
  size_t cap = draw->out_cap * 2 > 64 ? draw->out_cap * 2 : 64;
  void *tokens = draw->out_tokens;
  void *logprobs = draw->out_logprobs;
  void *topk_tokens = draw->out_topk_tokens;
  void *topk_logprobs = draw->out_topk_logprobs;
  int ok;

  if (draw->n_out < draw->out_cap)
    return TNK_OK;
  ok = grow(draw, &tokens, cap, sizeof(int32_t)) &&
       grow(draw, &logprobs, cap, sizeof(float)) &&
       (k == 0 || (grow(draw, &topk_tokens, cap * k, sizeof(int32_t)) &&
                   grow(draw, &topk_logprobs, cap * k, sizeof(float))));
  draw->out_tokens = tokens;
  draw->out_logprobs = logprobs;
  draw->out_topk_tokens = topk_tokens;
  draw->out_topk_logprobs = topk_logprobs;
  if (ok)
    draw->out_cap = cap;
  return ok ? TNK_OK : TNK_ENOMEM;
}

static int end_sample(tnk__lm_draw_t *draw, tnk__lm_stop_reason_t reason) {
  if (draw->n_samples == draw->samples_cap) {
    size_t cap = draw->samples_cap * 2 > 4 ? draw->samples_cap * 2 : 4;
    void *samples = draw->samples;
    if (!grow(draw, &samples, cap, sizeof(*draw->samples)))
      return TNK_ENOMEM;
    draw->samples = samples;
    draw->samples_cap = cap;
  }
  draw->samples[draw->n_samples].begin = draw->begin;
  draw->samples[draw->n_samples].n = draw->n_out - draw->begin;
  draw->samples[draw->n_samples].reason = reason;
  if (++draw->n_samples < draw->o.n_samples) {
    begin_sample(draw);
  } else {
    free_work(draw);
    draw->state = DONE;
  }
  return TNK_OK;
}

/* Returns whether the current sample ends with the bytes. */
static int ends_with(const tnk__lm_draw_t *draw, const tnk__lm_text_t *text) {
  const int32_t *end = draw->out_tokens + draw->n_out;
  size_t i;

  if (text->length > draw->n_out - draw->begin)
    return 0;
  for (i = 0; i < text->length; i++)
    if (end[-1 - (ptrdiff_t)i] !=
        (unsigned char)text->bytes[text->length - 1 - i])
      return 0;
  return 1;
}

static int is_stop(const tnk__lm_draw_t *draw, int32_t token) {
  const tnk__lm_draw_options_t *o = &draw->o;
  size_t i;

  if (o->stop_kind == TNK__LM_STOP_EOS)
    return tnk__lm_class(token) == TNK__LM_EOS;
  for (i = 0; i < o->n_stop_tokens; i++)
    if (o->stop_tokens[i] == token)
      return 1;
  for (i = 0; i < o->n_stop_texts; i++)
    if (ends_with(draw, &o->stop_texts[i]))
      return 1;
  return 0;
}

/* Sample one token, from the prompt's logits or by running the previous
 * token. */
static int write_token(tnk__lm_draw_t *draw) {
  const tnk__lm_draw_options_t *o = &draw->o;
  const size_t n = draw->n_out - draw->begin;
  const size_t k = o->topk_sample;
  const float *logits = draw->work->first;
  int32_t token;
  int err = room(draw);

  if (o->n_prompt + n == TNK__LM_MAX_CONTEXT)
    return end_sample(draw, TNK__LM_LENGTH);
  if (err == TNK_OK && n > 0)
    err = need_block(draw, o->n_prompt + n - 1);
  if (err != TNK_OK)
    return err;
  if (n > 0) {
    tnk__lm_forward(draw->weights->base, draw->weights->w, draw->blocks,
                    &draw->work->chunk, &draw->work->scratch,
                    draw->out_tokens + draw->n_out - 1, o->n_prompt + n - 1, 1);
    logits = draw->work->chunk.logits[0];
  }
  token = tnk__lm_pick(logits, &draw->pick, &draw->rng);
  draw->out_tokens[draw->n_out] = token;
  draw->out_logprobs[draw->n_out] = tnk__lm_logprob(logits, o->n_vocab, token);
  if (k > 0)
    tnk__lm_best(logits, o->n_vocab, k, draw->out_topk_tokens + draw->n_out * k,
                 draw->out_topk_logprobs + draw->n_out * k);
  draw->n_out++;
  if (is_stop(draw, token))
    return end_sample(draw, TNK__LM_STOPPED);
  if (n + 1 == o->max_tokens || o->n_prompt + n + 1 == TNK__LM_MAX_CONTEXT)
    return end_sample(draw, TNK__LM_LENGTH);
  return TNK_OK;
}

int tnk__lm_draw_step(tnk__lm_draw_t *draw, size_t n_tokens, int *done) {
  int err = draw->state == NEW ? begin(draw) : TNK_OK;

  while (err == TNK_OK && n_tokens > 0 && draw->state != DONE) {
    size_t n = 1;
    err = draw->state == PROMPT ? read_prompt(draw, n_tokens, &n)
                                : write_token(draw);
    n_tokens -= n;
  }
  *done = err == TNK_OK && draw->state == DONE;
  return err;
}

tnk__lm_sample_t tnk__lm_draw_sample(const tnk__lm_draw_t *draw, uint32_t i) {
  const sample_t *s = &draw->samples[i];
  const size_t k = draw->o.topk_sample;
  tnk__lm_sample_t sample = {draw->out_tokens + s->begin,
                             draw->out_logprobs + s->begin,
                             s->n,
                             s->reason,
                             NULL,
                             NULL};

  if (k > 0) {
    sample.topk_tokens = draw->out_topk_tokens + s->begin * k;
    sample.topk_logprobs = draw->out_topk_logprobs + s->begin * k;
  }
  return sample;
}

tnk__lm_prompt_t tnk__lm_draw_prompt(const tnk__lm_draw_t *draw) {
  tnk__lm_prompt_t prompt = {draw->logprobs,      draw->topk_tokens,
                             draw->topk_logprobs, draw->alt_tokens,
                             draw->alt_logprobs,  draw->ask_logprobs};

  return prompt;
}
