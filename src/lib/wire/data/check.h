/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_CHECK_H
#define TNK_LIB_WIRE_DATA_CHECK_H

#include "tnk/sampling.h"
#include "tnk/training.h"

/*
 * Checks of a caller's arguments. Each returns TNK_OK, or TNK_EINVAL with a
 * sentence in `text` that says where the fault is. `text` may be NULL. A longer
 * sentence is truncated to `size`.
 *
 * Checked data can be encoded, copied and measured without further checks.
 */
int tnk__check_data(const tnk_datum_t *data, size_t n, const char *loss_fn,
                    char *text, size_t size);
/* Returns whether the input names of a loss are known, and therefore checked.
 */
int tnk__loss_is_known(const char *name);
int tnk__check_settings(const tnk_loss_setting_t *settings, size_t n,
                        char *text, size_t size);
/* Check a loss to be created on the service. Only the form of its graph is
 * checked. */
int tnk__check_new_loss(const tnk_loss_options_t *options, char *text,
                        size_t size);
/* Check that checked data has all inputs that a custom loss reads. */
int tnk__check_arguments(const tnk_datum_t *data, size_t n,
                         const tnk_loss_argument_t *arguments,
                         size_t n_arguments, char *text, size_t size);
int tnk__check_prompt(const tnk_model_input_t *prompt, char *text, size_t size);
/* Check a sample's arguments. NULL options or params are valid. */
int tnk__check_sampling(const tnk_model_input_t *prompt,
                        const tnk_sampling_params_t *params,
                        const tnk_sample_options_t *options, char *text,
                        size_t size);
int tnk__check_optim(const tnk_optim_t *optim, char *text, size_t size);
/* Check a required string that is sent. `what` names it in the sentence. */
int tnk__check_text(const char *what, const char *value, char *text,
                    size_t size);
/* Check a string that may be NULL. */
int tnk__check_optional(const char *what, const char *value, char *text,
                        size_t size);
int tnk__check_pairs(const char *what, const tnk_pair_t *pairs, size_t n,
                     char *text, size_t size);
/* Check headers of the caller. Headers reserved for the HTTP code are
 * rejected. */
int tnk__check_headers(const tnk_pair_t *headers, size_t n, char *text,
                       size_t size);
int tnk__check_save(const char *name, const tnk_save_options_t *options,
                    char *text, size_t size);
int tnk__check_load(const tnk_load_options_t *options, char *text, size_t size);
int tnk__check_lora(const tnk_lora_options_t *options, char *text, size_t size);
int tnk__check_restore(const tnk_restore_options_t *options, char *text,
                       size_t size);
int tnk__check_sampler(const tnk_sampling_options_t *options, char *text,
                       size_t size);

/* Returns whether a text that should be a public key contains a secret key of
 * age or of SSH. The key may be truncated or damaged. Such a text is never sent
 * and never shown. */
int tnk__is_secret_key(const char *text);

#endif
