/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"
#include "tools/local/lm/vocab.h"

int tnk__lm_refuse(tnk__lm_why_t *why, int code, const char *format, ...) {
  va_list args;

  if (why != NULL) {
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    tnk__utf8_repair(why->text);
  }
  return code;
}

int tnk__lm_tokens_check(const int32_t *tokens, size_t n, int32_t n_vocab,
                         const char *what, tnk__lm_why_t *why) {
  const int32_t width = tnk__lm_width(n_vocab);
  size_t i;

  for (i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= width)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "%s[%zu] is %ld, the vocabulary has ids 0 to %d",
                            what, i, (long)tokens[i], (int)width - 1);
  return TNK_OK;
}

typedef struct {
  const char *name;
  tnk__lm_loss_t defaults;
} known_loss_t;

static const known_loss_t losses[] = {
    {"cross_entropy", {TNK__LM_CROSS_ENTROPY, 0, 0, 0, 0}},
    {"importance_sampling", {TNK__LM_IMPORTANCE_SAMPLING, 0, 0, 0, 0}},
    {"ppo", {TNK__LM_PPO, 0.8, 1.2, 0, 0}},
    {"cispo", {TNK__LM_CISPO, 0.0, 4.0, 0, 0}},
    {"dro", {TNK__LM_DRO, 0, 0, 0.05, 0}},
    {"gspo", {TNK__LM_GSPO, 0.8, 1.2, 0, 0}},
    {"stable_reinforce", {TNK__LM_STABLE_REINFORCE, 0, 0, 0, 0.01}},
};

/* The member for a setting, or NULL if the loss has no such setting. */
static double *setting_of(tnk__lm_loss_t *loss, const char *name) {
  int clips = loss->kind == TNK__LM_PPO || loss->kind == TNK__LM_CISPO ||
              loss->kind == TNK__LM_GSPO;

  if (clips && strcmp(name, "clip_low_threshold") == 0)
    return &loss->clip_low;
  if (clips && strcmp(name, "clip_high_threshold") == 0)
    return &loss->clip_high;
  if (loss->kind == TNK__LM_DRO && strcmp(name, "beta") == 0)
    return &loss->beta;
  if (loss->kind == TNK__LM_STABLE_REINFORCE && strcmp(name, "kl_coeff") == 0)
    return &loss->kl_coeff;
  return NULL;
}

static int apply(tnk__lm_loss_t *loss, const char *name,
                 const tnk_loss_setting_t *setting, tnk__lm_why_t *why) {
  double *value = setting_of(loss, setting->name);

  if (value == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "%s has no setting \"%.64s\"", name,
                          setting->name);
  /* No loss here has a string setting. */
  if (setting->text != NULL || !isfinite(setting->number) ||
      setting->number < 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"%.64s\" of %s must be a number of at least 0",
                          setting->name, name);
  *value = setting->number;
  return TNK_OK;
}

int tnk__lm_loss_init(tnk__lm_loss_t *loss, const char *name,
                      const tnk_loss_setting_t *settings, size_t n_settings,
                      tnk__lm_why_t *why) {
  const size_t n = sizeof(losses) / sizeof(losses[0]);
  size_t i;

  if (name == NULL)
    name = "cross_entropy";
  for (i = 0; i < n && strcmp(losses[i].name, name) != 0; i++)
    ;
  if (i == n)
    return tnk__lm_refuse(why, TNK_EUNSUPPORTED,
                          "loss \"%.64s\" is not known to this server", name);
  *loss = losses[i].defaults;
  for (i = 0; i < n_settings; i++) {
    int err = apply(loss, name, &settings[i], why);
    if (err != TNK_OK)
      return err;
  }
  if (loss->clip_low > loss->clip_high)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "clip_low_threshold of %s is above "
                          "clip_high_threshold",
                          name);
  return TNK_OK;
}

static int check_floats(const float *values, size_t n, const char *name,
                        int required, tnk__lm_why_t *why) {
  size_t i;

  if (values == NULL)
    return required
               ? tnk__lm_refuse(why, TNK_EINVAL, "the loss needs \"%s\"", name)
               : TNK_OK;
  for (i = 0; i < n; i++)
    if (!isfinite(values[i]))
      return tnk__lm_refuse(why, TNK_EINVAL, "\"%s\"[%zu] is not finite", name,
                            i);
  return TNK_OK;
}

/* A position with weight 0 is padding, so any id is accepted. */
static int check_targets(const tnk__lm_datum_t *datum, tnk__lm_why_t *why) {
  const size_t n = datum->n_tokens * datum->n_targets;
  size_t i;

  if (datum->targets == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "the loss needs \"target_tokens\"");
  for (i = 0; i < n; i++) {
    int64_t id = datum->targets[i];
    int padding = datum->weights != NULL && datum->weights[i] == 0;
    if ((id < 0 || id >= tnk__lm_width(datum->n_vocab)) && !padding)
      return tnk__lm_refuse(
          why, TNK_EINVAL,
          "\"target_tokens\"[%zu] is %lld, the vocabulary has ids 0 to %d", i,
          (long long)id, (int)tnk__lm_width(datum->n_vocab) - 1);
  }
  return TNK_OK;
}

int tnk__lm_datum_check(const tnk__lm_datum_t *datum,
                        const tnk__lm_loss_t *loss, tnk__lm_why_t *why) {
  const size_t n = datum->n_tokens;
  const int rl = loss->kind != TNK__LM_CROSS_ENTROPY;
  int err;

  if (n < 1 || n > TNK__LM_MAX_CONTEXT)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the input has %zu tokens, 1 to %d are possible", n,
                          TNK__LM_MAX_CONTEXT);
  if (datum->n_targets < 1 || datum->n_targets > TNK__LM_VOCAB ||
      (rl && datum->n_targets != 1))
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"target_tokens\" has %zu targets a position",
                          datum->n_targets);
  err = tnk__lm_tokens_check(datum->tokens, n, datum->n_vocab, "tokens", why);
  if (err == TNK_OK)
    err = check_floats(datum->weights, n * datum->n_targets, "weights", 0, why);
  if (err == TNK_OK)
    err = check_targets(datum, why);
  if (err == TNK_OK)
    err = check_floats(datum->logprobs, n, "logprobs", rl, why);
  if (err == TNK_OK)
    err = check_floats(datum->advantages, n, "advantages", rl, why);
  if (err == TNK_OK)
    err = check_floats(datum->clip_low, n, "clip_low_threshold", 0, why);
  if (err == TNK_OK)
    err = check_floats(datum->clip_high, n, "clip_high_threshold", 0, why);
  if (err == TNK_OK)
    err = check_floats(datum->mask, n, "sequence_ratio_mask", 0, why);
  return err;
}
