#include <math.h>
#include <string.h>

#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/data.h"
#include "lib/wire/format/http_write.h"
#include "tnk/error.h"

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
      return tnk__refuse(&where, "its name is none that a header can have");
    if (tnk__http_is_reserved(name))
      return tnk__refuse(&where, "%.40s is for the library to set", name);
    /* The value is not quoted, because it may be a credential. */
    if (headers[i].value == NULL || !tnk__http_is_field_value(headers[i].value))
      return tnk__refuse(&where, "%.40s has no value that can be sent", name);
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
