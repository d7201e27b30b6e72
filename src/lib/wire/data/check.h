#ifndef TNK_LIB_WIRE_DATA_CHECK_H
#define TNK_LIB_WIRE_DATA_CHECK_H

#include "tnk/sampling.h"
#include "tnk/training.h"

/*
 * Checks of a caller's arguments. Each returns TNK_OK, or TNK_EINVAL with one
 * sentence in `text` that says where. `text` may be NULL; a longer sentence is
 * cut at `size`.
 *
 * What has passed can be encoded, copied and measured without further checks.
 */
int tnk__check_data(const tnk_datum_t *data, size_t n, const char *loss_fn,
                    char *text, size_t size);
/* Whether the names of a loss's inputs are known, and checked. */
int tnk__loss_is_known(const char *name);
int tnk__check_settings(const tnk_loss_setting_t *settings, size_t n,
                        char *text, size_t size);
/* Check a loss to be handed to the service, its graph as far as its form. */
int tnk__check_new_loss(const tnk_loss_options_t *options, char *text,
                        size_t size);
/* Check that checked data has all that a loss of the caller's reads. */
int tnk__check_arguments(const tnk_datum_t *data, size_t n,
                         const tnk_loss_argument_t *arguments,
                         size_t n_arguments, char *text, size_t size);
int tnk__check_prompt(const tnk_model_input_t *prompt, char *text, size_t size);
/* Check a sample's arguments; NULL options or params pass. */
int tnk__check_sampling(const tnk_model_input_t *prompt,
                        const tnk_sampling_params_t *params,
                        const tnk_sample_options_t *options, char *text,
                        size_t size);
int tnk__check_optim(const tnk_optim_t *optim, char *text, size_t size);
/* Check a text that must be there and is sent: `what` names it in the
 * sentence. */
int tnk__check_text(const char *what, const char *value, char *text,
                    size_t size);
/* Check a text that may be NULL. */
int tnk__check_optional(const char *what, const char *value, char *text,
                        size_t size);
int tnk__check_pairs(const char *what, const tnk_pair_t *pairs, size_t n,
                     char *text, size_t size);
/* Check headers of the caller's own, none of which is the HTTP code's. */
int tnk__check_headers(const tnk_pair_t *headers, size_t n, char *text,
                       size_t size);
int tnk__check_save(const char *name, const tnk_save_options_t *options,
                    char *text, size_t size);
int tnk__check_load(const tnk_load_options_t *options, char *text, size_t size);
/* Check that it is one object in JSON with a text under "type". */
int tnk__check_optimizer_json(const char *json, char *text, size_t size);
int tnk__check_lora(const tnk_lora_options_t *options, char *text, size_t size);
int tnk__check_restore(const tnk_restore_options_t *options, char *text,
                       size_t size);
int tnk__check_sampler(const tnk_sampling_options_t *options, char *text,
                       size_t size);

#endif
