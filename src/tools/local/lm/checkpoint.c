#include "tools/local/lm/config.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/check.h"
#include "tools/local/lm/tensors.h"

/*
 * Checkpoints. Writing: first the tensors, last the config with their
 * checksums. Reading: first the config, then the tensors that it lists, into
 * separate arrays. These replace the model's arrays only if there was no error.
 */

/* The moments of a model with the highest rank have 11 MB. */
#define MAX_FILE ((size_t)64 << 20)

/* Number of moment arrays of an optimizer family. */
static size_t n_moments(tnk__lm_optimizer_t optimizer) {
  return optimizer == TNK__LM_DIMUON ? 1 : 2;
}

static int write_error(const tnk__buf_t *buf, const char *name,
                       tnk__lm_why_t *why) {
  if (buf->err == TNK_OK)
    return TNK_OK;
  if (buf->err == TNK_ENOMEM)
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  return tnk__lm_refuse(why, TNK_EFAILED, "%s: cannot be written", name);
}

static int save_tensors(const tnk__lm_t *lm, const char *dir, const char *name,
                        size_t first, size_t count, tnk__lm_sum_t *sum,
                        tnk__lm_why_t *why) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  tnk__lm_tensors_write(lm, first, count, &buf);
  err = write_error(&buf, name, why);
  if (err == TNK_OK) {
    *sum = tnk__lm_file_sum(buf.data, buf.len);
    err = tnk__lm_file_write(dir, name, &buf, why);
  }
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__lm_save(const tnk__lm_t *lm, const char *dir, int with_optimizer,
                 tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved = {0};
  tnk__buf_t buf;
  int err = save_tensors(lm, dir, TNK__LM_FILE_ADAPTER, PARAM_VALUE, 1,
                         &saved.adapter, why);

  if (err == TNK_OK && with_optimizer)
    err = save_tensors(lm, dir, TNK__LM_FILE_OPTIMIZER, PARAM_MOMENT1,
                       n_moments(lm->config.optimizer), &saved.optimizer, why);
  if (err != TNK_OK)
    return err;
  saved.config = lm->config;
  saved.n_steps = lm->n_steps;
  saved.has_optimizer = with_optimizer != 0;
  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  tnk__lm_config_write(&saved, &buf);
  err = write_error(&buf, TNK__LM_FILE_CONFIG, why);
  if (err == TNK_OK)
    err = tnk__lm_file_write(dir, TNK__LM_FILE_CONFIG, &buf, why);
  tnk__buf_deinit(&buf);
  if (err == TNK_OK && !with_optimizer)
    tnk__lm_file_remove(lm->alloc, dir, TNK__LM_FILE_OPTIMIZER);
  if (err == TNK_OK)
    tnk__lm_dir_sync(dir);
  return err;
}

static int load_tensors(const tnk__lm_t *lm, const char *dir, const char *name,
                        size_t first, size_t count, const tnk__lm_sum_t *sum,
                        float *const *param, tnk__lm_why_t *why) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  err = tnk__lm_file_read(dir, name, &buf, why);
  if (err == TNK_ENOTFOUND)
    err = TNK_EPROTO; /* the config lists the file */
  if (err == TNK_OK &&
      strcmp(tnk__lm_file_sum(buf.data, buf.len).text, sum->text) != 0)
    err = tnk__lm_refuse(why, TNK_EPROTO, "%s: the check sum is wrong", name);
  if (err == TNK_OK)
    err = tnk__lm_tensors_read(lm, first, count, buf.data, buf.len, param, name,
                               why);
  tnk__buf_deinit(&buf);
  return err;
}

/* Fill `param`, zeroed arrays with the layout of lm. */
static int load_params(const tnk__lm_t *lm, const tnk__lm_saved_config_t *saved,
                       const char *dir, int with_optimizer, float *const *param,
                       tnk__lm_why_t *why) {
  int err = load_tensors(lm, dir, TNK__LM_FILE_ADAPTER, PARAM_VALUE, 1,
                         &saved->adapter, param, why);

  if (err == TNK_OK && with_optimizer)
    err = load_tensors(lm, dir, TNK__LM_FILE_OPTIMIZER, PARAM_MOMENT1,
                       n_moments(saved->config.optimizer), &saved->optimizer,
                       param, why);
  return err;
}

static int need_optimizer(const tnk__lm_saved_config_t *saved,
                          int with_optimizer, tnk__lm_why_t *why) {
  if (with_optimizer && !saved->has_optimizer)
    return tnk__lm_refuse(why, TNK_ENOTFOUND,
                          "the checkpoint has no optimizer state");
  return TNK_OK;
}

int tnk__lm_load(tnk__lm_t **out, const tnk__lm_base_t *base, const char *dir,
                 int with_optimizer, tnk__lm_optimizer_t optimizer,
                 const tnk_allocator_t *alloc, tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  tnk__lm_t *lm = NULL;
  int err = tnk__lm_config_read(&saved, dir, alloc, why);

  *out = NULL;
  if (err == TNK_OK)
    err = need_optimizer(&saved, with_optimizer, why);
  if (err != TNK_OK)
    return err;
  if (!with_optimizer)
    saved.config.optimizer = optimizer;
  err = tnk__lm_new(&lm, base, &saved.config, alloc, why);
  if (err == TNK_OK)
    err = load_params(lm, &saved, dir, with_optimizer, lm->param, why);
  if (err != TNK_OK) {
    tnk__lm_free(lm);
    return err;
  }
  lm->n_steps = with_optimizer ? saved.n_steps : 0;
  tnk__lm_merge(lm);
  *out = lm;
  return TNK_OK;
}

static int check_fit(const tnk__lm_t *lm, const tnk__lm_saved_config_t *saved,
                     int with_optimizer, tnk__lm_why_t *why) {
  const tnk__lm_config_t *a = &lm->config;
  const tnk__lm_config_t *b = &saved->config;

  if (a->rank != b->rank)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint has rank %lu, the model %lu",
                          (unsigned long)b->rank, (unsigned long)a->rank);
  if (!a->train_mlp != !b->train_mlp || !a->train_attn != !b->train_attn ||
      !a->train_unembed != !b->train_unembed)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint trains other layers than the model");
  if (with_optimizer && a->optimizer != b->optimizer)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint has another optimizer than the "
                          "model");
  return need_optimizer(saved, with_optimizer, why);
}

/* Replace the model's arrays by the loaded ones. */
static void take_over(tnk__lm_t *lm, float **param, uint64_t n_steps) {
  size_t i;

  for (i = 0; i < PARAM_KINDS; i++) {
    float *old = lm->param[i];
    lm->param[i] = param[i];
    param[i] = old;
  }
  lm->n_steps = n_steps;
  tnk__lm_zero_grad(lm);
  tnk__lm_merge(lm);
}

int tnk__lm_restore(tnk__lm_t *lm, const char *dir, int with_optimizer,
                    tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  float *param[PARAM_KINDS] = {NULL};
  size_t i;
  int err = tnk__lm_config_read(&saved, dir, lm->alloc, why);

  if (err == TNK_OK)
    err = check_fit(lm, &saved, with_optimizer, why);
  for (i = 0; err == TNK_OK && i < PARAM_KINDS; i++) {
    param[i] = tnk__calloc(lm->alloc, lm->n_params, sizeof(float));
    if (param[i] == NULL)
      err = tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  }
  if (err == TNK_OK)
    err = load_params(lm, &saved, dir, with_optimizer, param, why);
  if (err == TNK_OK)
    take_over(lm, param, with_optimizer ? saved.n_steps : 0);
  for (i = 0; i < PARAM_KINDS; i++)
    tnk__free(lm->alloc, param[i]);
  return err;
}

int tnk__lm_read_config(tnk__lm_config_t *out, const char *dir,
                        int *has_optimizer, const tnk_allocator_t *alloc,
                        tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  int err = tnk__lm_config_read(&saved, dir, alloc, why);

  if (err == TNK_OK) {
    *out = saved.config;
    *has_optimizer = saved.has_optimizer;
  }
  return err;
}

int tnk__lm_weights_load(tnk__lm_weights_t **out, const tnk__lm_base_t *base,
                         const char *dir, const tnk_allocator_t *alloc,
                         tnk__lm_why_t *why) {
  tnk__lm_t *lm;
  int err = tnk__lm_load(&lm, base, dir, 0, TNK__LM_ADAMW, alloc, why);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  *out = tnk__lm_snapshot(lm);
  tnk__lm_free(lm);
  return *out != NULL ? TNK_OK
                      : tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
}
