#include <string.h>

#include "codec/data/check.h"
#include "codec/data/check_place.h"
#include "tnk/error.h"

int tnk__check_save(const char *name, const tnk_save_options_t *options,
                    char *text, size_t size) {
  tnk__place_t place = {.text = text, .size = size};
  int err = tnk__check_text("the name", name, text, size);

  if (err != TNK_OK || options == NULL)
    return err;
  if (options->ttl_seconds > INT64_MAX)
    return tnk__place_fail(&place, "ttl_seconds is too large");
  if (options->n_recipients > 0 && options->recipients == NULL)
    return tnk__place_fail(&place, "recipients is missing");
  for (size_t i = 0; i < options->n_recipients && err == TNK_OK; i++)
    err = tnk__place_text(&place, "a recipient", options->recipients[i]);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", options->user_metadata,
                           options->n_user_metadata, text, size);
  return err;
}

static int check_optimizer(const tnk__place_t *place, tnk_optimizer_t optimizer,
                           const char *json) {
  if (optimizer == TNK_OPTIMIZER_RAW)
    return tnk__check_optimizer_json(json, place->text, place->size);
  if (optimizer != TNK_OPTIMIZER_ADAMW && optimizer != TNK_OPTIMIZER_DIMUON)
    return tnk__place_fail(place, "the optimizer is of no known kind");
  if (json != NULL)
    return tnk__place_fail(place, "optimizer_json is given, and optimizer is "
                                  "not TNK_OPTIMIZER_RAW");
  return TNK_OK;
}

/* A path that the server handed out; its form behind the scheme is not ours
 * to judge, because servers differ in it. */
static int check_path(const tnk__place_t *place, const char *path) {
  int err = tnk__place_text(place, "the path", path);

  if (err == TNK_OK && strncmp(path, "tinker://", 9) != 0)
    err = tnk__place_fail(place, "the path does not begin with tinker://");
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
  tnk__place_t place = {.text = text, .size = size};
  int err = tnk__check_text("base_model", options->base_model, text, size);

  if (err != TNK_OK)
    return err;
  if (options->rank > INT32_MAX)
    return tnk__place_fail(&place, "rank is too large");
  /* The official client demands one of them, too. */
  if (options->train_mlp == TNK_NO && options->train_attn == TNK_NO &&
      options->train_unembed == TNK_NO)
    return tnk__place_fail(&place, "no part of the model is to be trained");
  err = check_optimizer(&place, options->optimizer, options->optimizer_json);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", options->user_metadata,
                           options->n_user_metadata, text, size);
  return err;
}

int tnk__check_restore(const tnk_restore_options_t *options, char *text,
                       size_t size) {
  tnk__place_t place = {.text = text, .size = size};
  int err = check_path(&place, options->path);

  if (err != TNK_OK)
    return err;
  /* A state that brings its optimizer brings its kind. */
  if (options->with_optimizer == TNK_YES &&
      options->optimizer != TNK_OPTIMIZER_ADAMW)
    return tnk__place_fail(
        &place, "an optimizer can be chosen only without with_optimizer");
  err = check_optimizer(&place, options->optimizer, options->optimizer_json);
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
  tnk__place_t place = {.text = text, .size = size};

  if (options->model_path == NULL && options->base_model == NULL)
    return tnk__place_fail(&place, "neither model_path nor base_model is set");
  if (options->model_path != NULL &&
      check_path(&place, options->model_path) != TNK_OK)
    return TNK_EINVAL;
  return tnk__check_optional("base_model", options->base_model, text, size);
}
