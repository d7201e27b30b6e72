#include <string.h>

#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/secret.h"
#include "tnk/error.h"

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
    return tnk__check_optimizer_json(json, where->text, where->size);
  if (optimizer != TNK_OPTIMIZER_ADAMW && optimizer != TNK_OPTIMIZER_DIMUON)
    return tnk__refuse(where, "the optimizer is of no known kind");
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
    return tnk__refuse(&where, "exported says all there is to say; the other "
                               "options are for a new sampler");
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
