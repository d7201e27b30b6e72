/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_LOSS_H
#define TNK_TOOLS_TNK_LEARN_LOSS_H

#include <jansson.h>

#include "tnk/training.h"
#include "tools/common/frame/cli.h"

/* The losses of sampled tokens with advantages, as the service names them. */
extern const char *const learn_losses[];

/* The most settings that a loss has. */
enum { LEARN_MAX_SETTINGS = 2 };

/* The loss of tnk train and tnk rl. */
typedef struct {
  int name;          /* in learn_losses */
  cli_texts_t texts; /* of --loss-setting */
  tnk_loss_setting_t settings[LEARN_MAX_SETTINGS];
  size_t n_settings;
} learn_loss_t;

/* A row of a table of options. */
#define LEARN_LOSS_SETTING_OPTION(loss)                                        \
  {                                                                            \
    .name = "loss-setting", .value = "NAME=X", .texts = &(loss).texts,         \
    .help = "A setting of the loss: clip_low_threshold and "                   \
            "clip_high_threshold of ppo, cispo and gspo, beta of dro. May be " \
            "repeated. Default: that of the service."                          \
  }

/* Read the settings. Returns the error in them, which is valid until the next
 * call, or NULL. */
const char *learn_loss_check(learn_loss_t *loss);
/* Set the loss of a pass, which must not outlive `loss`. */
void learn_loss_set(const learn_loss_t *loss, tnk_pass_options_t *options);
/* Add the settings to the options of config.json, or null. Takes the
 * reference of `options`, which may be NULL, and returns it or NULL. */
json_t *learn_loss_add(json_t *options, const learn_loss_t *loss);

#endif
