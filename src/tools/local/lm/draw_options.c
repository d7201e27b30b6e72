#include "tools/local/lm/draw_options.h"

#include <math.h>

#include "tnk/error.h"
#include "tools/local/lm/check.h"
#include "tools/local/lm/vocab.h"

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

int tnk__lm_draw_check(const tnk__lm_draw_options_t *o, tnk__lm_why_t *why) {
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

int tnk__lm_draw_copy(tnk__lm_draw_options_t *o, tnk__arena_t *arena) {
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
