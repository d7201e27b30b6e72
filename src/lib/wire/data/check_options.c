/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/data.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* ---- Secret keys ---- */

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int has(const char *text, const char *word) {
  for (; *text != '\0'; text++) {
    int n = 0;

    while (word[n] != '\0' && lower(text[n]) == lower(word[n]))
      n++;
    if (word[n] == '\0')
      return 1;
  }
  return 0;
}

int tnk__is_secret_key(const char *text) {
  return has(text, "AGE-SECRET-KEY") || has(text, "PRIVATE KEY");
}

/* ---- The optimizer ---- */

/* Check that the JSON is an object with a string "type". */
static int check_optimizer_json(const char *json, char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  const char *type;
  json_t *object;
  int err = tnk__check_text("the optimizer's JSON", json, text, size);

  if (err != TNK_OK)
    return err;
  err = tnk__json_parse_object(&object, json, strlen(json));
  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK)
    return tnk__refuse(&where, "the optimizer's JSON is not an object");
  type = tnk__json_str(object, "type");
  if (type == NULL || type[0] == '\0')
    err =
        tnk__refuse(&where, "the optimizer's JSON has no text under \"type\"");
  json_decref(object);
  return err;
}

/* Check a parameter that must be in [low, high). */
static int check_range(const tnk__where_t *where, const char *name,
                       double value, double low, double high) {
  if (value == TNK_ABSENT)
    return TNK_OK;
  if (!isfinite(value))
    return tnk__refuse(where, "%s is not a finite number", name);
  /* Only the bounds 0 and 1 appear in the sentence. HUGE_VAL means no bound,
   * because every finite value is below it. */
  if (value < low)
    return tnk__refuse(where, "%s is below %d", name, (int)low);
  if (value >= high)
    return tnk__refuse(where, "%s is not below %d", name, (int)high);
  return TNK_OK;
}

static int check_no(const tnk__where_t *where, const char *name, double value) {
  return value == TNK_ABSENT
             ? TNK_OK
             : tnk__refuse(where, "%s is not for this optimizer", name);
}

static int check_adam(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err =
      check_range(where, "learning_rate", optim->learning_rate, 0, HUGE_VAL);

  if (err == TNK_OK)
    err = check_range(where, "beta1", optim->beta1, 0, 1);
  if (err == TNK_OK)
    err = check_range(where, "beta2", optim->beta2, 0, 1);
  if (err == TNK_OK)
    err = check_range(where, "eps", optim->eps, 0, HUGE_VAL);
  if (err == TNK_OK && optim->eps == 0)
    err = tnk__refuse(where, "eps is not above 0");
  if (err == TNK_OK)
    err = check_range(where, "weight_decay", optim->weight_decay, 0, HUGE_VAL);
  if (err == TNK_OK)
    err = check_range(where, "grad_clip_norm", optim->grad_clip_norm, 0,
                      HUGE_VAL);
  return err;
}

static int check_no_adam(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = check_no(where, "beta2", optim->beta2);

  if (err == TNK_OK)
    err = check_no(where, "eps", optim->eps);
  if (err == TNK_OK)
    err = check_no(where, "weight_decay", optim->weight_decay);
  return err;
}

static int check_dimuon(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = TNK_OK;

  if (optim->learning_rate == TNK_ABSENT)
    return tnk__refuse(where, "learning_rate is missing");
  err = check_range(where, "learning_rate", optim->learning_rate, 0, HUGE_VAL);
  if (err == TNK_OK)
    err = check_range(where, "beta1", optim->beta1, 0, 1);
  if (err == TNK_OK && !isfinite(optim->grad_clip_norm))
    err = tnk__refuse(where, "grad_clip_norm is not a finite number");
  if (err == TNK_OK)
    err = check_no_adam(where, optim);
  return err;
}

static int check_raw(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = check_optimizer_json(optim->json, where->text, where->size);

  if (err == TNK_OK)
    err = check_no(where, "learning_rate", optim->learning_rate);
  if (err == TNK_OK)
    err = check_no(where, "beta1", optim->beta1);
  if (err == TNK_OK)
    err = check_no(where, "grad_clip_norm", optim->grad_clip_norm);
  if (err == TNK_OK)
    err = check_no_adam(where, optim);
  return err;
}

int tnk__check_optim(const tnk_optim_t *optim, char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};

  if (optim->optimizer == TNK_OPTIMIZER_RAW)
    return check_raw(&where, optim);
  if (optim->json != NULL)
    return tnk__refuse(&where, "json is given, and optimizer is not "
                               "TNK_OPTIMIZER_RAW");
  if (optim->optimizer == TNK_OPTIMIZER_ADAMW)
    return check_adam(&where, optim);
  if (optim->optimizer == TNK_OPTIMIZER_DIMUON)
    return check_dimuon(&where, optim);
  return tnk__refuse(&where, "the optimizer is of an unknown kind");
}

/* ---- The service ---- */

/* The server checks the format of a recipient, because servers differ. But a
 * secret key is never sent, and never appears in the sentence. */
static int check_recipient(const tnk__where_t *where, const char *recipient) {
  int err = tnk__check_text_at(where, "a recipient", recipient);

  if (err == TNK_OK && tnk__is_secret_key(recipient))
    err = tnk__refuse(where, "a recipient is a secret key; files are encrypted "
                             "for the public one that belongs to it");
  return err;
}

int tnk__check_save(const char *name, const tnk_save_options_t *options,
                    char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = tnk__check_text("the name", name, text, size);

  if (err != TNK_OK || options == NULL)
    return err;
  if (options->ttl_seconds > INT64_MAX)
    return tnk__refuse(&where, "ttl_seconds is too large");
  if (options->n_recipients > 0 && options->recipients == NULL)
    return tnk__refuse(&where, "recipients is missing");
  for (size_t i = 0; i < options->n_recipients && err == TNK_OK; i++)
    err = check_recipient(&where, options->recipients[i]);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", options->user_metadata,
                           options->n_user_metadata, text, size);
  return err;
}

static int check_optimizer(const tnk__where_t *where, tnk_optimizer_t optimizer,
                           const char *json) {
  if (optimizer == TNK_OPTIMIZER_RAW)
    return check_optimizer_json(json, where->text, where->size);
  if (optimizer != TNK_OPTIMIZER_ADAMW && optimizer != TNK_OPTIMIZER_DIMUON)
    return tnk__refuse(where, "the optimizer is of an unknown kind");
  if (json != NULL)
    return tnk__refuse(where, "optimizer_json is given, and optimizer is "
                              "not TNK_OPTIMIZER_RAW");
  return TNK_OK;
}

/* Check a path from the server. Servers differ in the form after the scheme, so
 * it is not checked. */
static int check_path(const tnk__where_t *where, const char *path) {
  int err = tnk__check_text_at(where, "the path", path);

  if (err == TNK_OK && strncmp(path, "tinker://", 9) != 0)
    err = tnk__refuse(where, "the path does not begin with tinker://");
  return err;
}

int tnk__check_load(const tnk_load_options_t *options, char *text,
                    size_t size) {
  int err = tnk__check_text("path", options->path, text, size);

  if (err == TNK_OK)
    err = tnk__check_optional("weights_access_token",
                              options->weights_access_token, text, size);
  return err;
}

int tnk__check_lora(const tnk_lora_options_t *options, char *text,
                    size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = tnk__check_text("base_model", options->base_model, text, size);

  if (err != TNK_OK)
    return err;
  if (options->rank > INT32_MAX)
    return tnk__refuse(&where, "rank is too large");
  /* The official client requires one of them, too. */
  if (options->train_mlp == TNK_NO && options->train_attn == TNK_NO &&
      options->train_unembed == TNK_NO)
    return tnk__refuse(&where, "no part of the model is to be trained");
  err = check_optimizer(&where, options->optimizer, options->optimizer_json);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", options->user_metadata,
                           options->n_user_metadata, text, size);
  return err;
}

int tnk__check_restore(const tnk_restore_options_t *options, char *text,
                       size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = check_path(&where, options->path);

  if (err != TNK_OK)
    return err;
  /* A state with its optimizer includes the optimizer's type. */
  if (options->with_optimizer == TNK_YES &&
      options->optimizer != TNK_OPTIMIZER_ADAMW)
    return tnk__refuse(
        &where, "an optimizer can be chosen only without with_optimizer");
  err = check_optimizer(&where, options->optimizer, options->optimizer_json);
  if (err == TNK_OK)
    err = tnk__check_optional("base_model", options->base_model, text, size);
  if (err == TNK_OK)
    err = tnk__check_optional("weights_access_token",
                              options->weights_access_token, text, size);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", options->user_metadata,
                           options->n_user_metadata, text, size);
  return err;
}

int tnk__check_sampler(const tnk_sampling_options_t *options, char *text,
                       size_t size) {
  tnk__where_t where = {.text = text, .size = size};

  if (options->exported != NULL &&
      (options->model_path != NULL || options->base_model != NULL ||
       options->record_stability_info != TNK_DEFAULT))
    return tnk__refuse(&where, "exported cannot be combined with the other "
                               "options, which are for a new sampler");
  if (options->exported != NULL)
    return TNK_OK;
  if (options->model_path == NULL && options->base_model == NULL)
    return tnk__refuse(&where,
                       "none of model_path, base_model and exported is set");
  if (options->model_path != NULL &&
      check_path(&where, options->model_path) != TNK_OK)
    return TNK_EINVAL;
  return tnk__check_optional("base_model", options->base_model, text, size);
}

/* ---- Options ---- */

int tnk__check_text(const char *what, const char *value, char *text,
                    size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = tnk__check_text_at(&where, what, value);

  if (err == TNK_OK && value[0] == '\0')
    err = tnk__refuse(&where, "%s is empty", what);
  return err;
}

int tnk__check_optional(const char *what, const char *value, char *text,
                        size_t size) {
  tnk__where_t where = {.text = text, .size = size};

  return value == NULL ? TNK_OK : tnk__check_text_at(&where, what, value);
}

int tnk__check_pairs(const char *what, const tnk_pair_t *pairs, size_t n,
                     char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size, .kind = what};
  int err = TNK_OK;

  if (n > 0 && pairs == NULL)
    return tnk__refuse(&(tnk__where_t){.text = text, .size = size},
                       "%s is missing, and n_%s is %zu", what, what, n);
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    where.index = i;
    err = tnk__check_text_at(&where, "its name", pairs[i].name);
    if (err == TNK_OK)
      err = tnk__check_text_at(&where, "its value", pairs[i].value);
  }
  return err;
}

int tnk__check_headers(const tnk_pair_t *headers, size_t n, char *text,
                       size_t size) {
  tnk__where_t where = {.text = text, .size = size, .kind = "headers"};

  if (n > 0 && headers == NULL)
    return tnk__refuse(&(tnk__where_t){.text = text, .size = size},
                       "headers is missing, and n_headers is %zu", n);
  for (size_t i = 0; i < n; i++) {
    const char *name = headers[i].name;
    where.index = i;
    if (name == NULL || !tnk__http_is_token(name))
      return tnk__refuse(&where, "its name is not a valid header name");
    if (tnk__http_is_reserved(name))
      return tnk__refuse(&where, "%.40s is set by the library", name);
    /* The value is not quoted, because it may be a credential. */
    if (headers[i].value == NULL || !tnk__http_is_field_value(headers[i].value))
      return tnk__refuse(&where, "the value of %.40s cannot be sent", name);
  }
  return TNK_OK;
}

static int check_prompt(const tnk_model_input_t *prompt, char *text,
                        size_t size) {
  tnk__where_t where = {.text = text, .size = size};

  if (prompt == NULL)
    return tnk__refuse(&where, "there is no prompt");
  return tnk__check_input_at(&where, prompt, 1);
}

static int check_stop(const tnk__where_t *where,
                      const tnk_sampling_params_t *params) {
  int err = TNK_OK;

  if (params->stop_texts != NULL && params->stop_tokens != NULL)
    return tnk__refuse(where, "stop is given as texts and as tokens");
  if (params->n_stop_texts > 0 && params->stop_texts == NULL)
    return tnk__refuse(where, "stop_texts is missing");
  if (params->n_stop_tokens > 0 && params->stop_tokens == NULL)
    return tnk__refuse(where, "stop_tokens is missing");
  for (size_t i = 0; i < params->n_stop_texts && err == TNK_OK; i++)
    err = tnk__check_text_at(where, "a stop text", params->stop_texts[i]);
  for (size_t i = 0; i < params->n_stop_tokens && err == TNK_OK; i++)
    if (params->stop_tokens[i] < 0)
      err = tnk__refuse(where, "stop token %zu is %ld", i,
                        (long)params->stop_tokens[i]);
  return err;
}

static int check_params(const tnk__where_t *where,
                        const tnk_sampling_params_t *params) {
  double temperature = params->temperature;

  /* 0 means that the struct was only zeroed. It is never a useful value. */
  if (params->max_tokens == 0)
    return tnk__refuse(where, "max_tokens is 0, expected at least 1; begin "
                              "with TNK_SAMPLING_PARAMS_INIT");
  if (params->max_tokens < 0 && params->max_tokens != TNK_ABSENT)
    return tnk__refuse(where, "max_tokens is %ld, expected at least 1",
                       (long)params->max_tokens);
  if (!isfinite(temperature) || (temperature < 0 && temperature != TNK_ABSENT))
    return tnk__refuse(
        where, "temperature is %g, expected a finite number of at least 0",
        temperature);
  if (params->top_p != TNK_ABSENT &&
      !(params->top_p >= 0 && params->top_p <= 1))
    return tnk__refuse(where, "top_p is %g, expected 0 to 1", params->top_p);
  if (params->top_k < -1 && params->top_k != TNK_ABSENT)
    return tnk__refuse(where, "top_k is %ld, expected at least -1",
                       (long)params->top_k);
  return check_stop(where, params);
}

static int check_target(const tnk__where_t *where, const tnk_tensor_t *tensor,
                        int64_t length) {
  const char *name = "target_prompt_logprobs";
  int err = tnk__check_tensor_at(where, name, tensor);

  if (err != TNK_OK)
    return err;
  if (!tnk__dtype_is_int(tensor->dtype))
    return tnk__refuse(where, "\"%s\" must be integers", name);
  if (tensor->n_dims != 2)
    return tnk__refuse(where, "\"%s\" needs two dimensions", name);
  if (length > 0 && tensor->shape[0] != length - 1)
    return tnk__refuse(where, "\"%s\" has %lld rows, expected %lld", name,
                       (long long)tensor->shape[0], (long long)length - 1);
  for (size_t i = 0; i < tensor->n_values; i++) {
    int64_t id = tnk__tensor_int(tensor, i);

    if (id < -1 || id > INT32_MAX)
      return tnk__refuse(where, "\"%s\" value %zu is %lld", name, i,
                         (long long)id);
  }
  return TNK_OK;
}

static int check_extras(const tnk__where_t *where,
                        const tnk_sample_options_t *options, int64_t length) {
  /* Servers store these as signed 32-bit integers. */
  if (options->n_samples > INT32_MAX ||
      options->topk_prompt_logprobs > INT32_MAX ||
      options->topk_sample_logprobs > INT32_MAX ||
      options->prompt_alt_tokens_k > INT32_MAX ||
      options->prompt_logprobs_last_n > INT32_MAX)
    return tnk__refuse(where, "a number of the options is too large");
  if (options->prompt_logprobs_last_n > 0 &&
      options->prompt_logprobs != TNK_YES)
    return tnk__refuse(where, "prompt_logprobs_last_n needs prompt_logprobs");
  if (options->target_prompt_logprobs == NULL)
    return TNK_OK;
  return check_target(where, options->target_prompt_logprobs, length);
}

int tnk__check_sampling(const tnk_model_input_t *prompt,
                        const tnk_sampling_params_t *params,
                        const tnk_sample_options_t *options, char *text,
                        size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = check_prompt(prompt, text, size);

  if (err == TNK_OK && params != NULL)
    err = check_params(&where, params);
  if (err == TNK_OK && options != NULL)
    err = check_extras(&where, options, tnk__input_length(prompt));
  return err;
}
