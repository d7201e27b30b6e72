/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tnk/learn/folder.h"

const char *const learn_losses[] = {
    "importance_sampling", "ppo", "cispo", "gspo", "dro", NULL};

/* The settings of each loss. */
static const char *const known[][LEARN_MAX_SETTINGS + 1] = {
    {NULL},
    {"clip_low_threshold", "clip_high_threshold", NULL},
    {"clip_low_threshold", "clip_high_threshold", NULL},
    {"clip_low_threshold", "clip_high_threshold", NULL},
    {"beta", NULL},
};

/* The name of the setting that `text` sets, NAME=X; NULL if the loss has none
 * of this name. */
static const char *find(const learn_loss_t *loss, const char *text) {
  const size_t n = strcspn(text, "=");

  for (const char *const *at = known[loss->name]; *at != NULL; at++)
    if (strlen(*at) == n && strncmp(*at, text, n) == 0)
      return *at;
  return NULL;
}

static int is_set(const learn_loss_t *loss, const char *name) {
  for (size_t i = 0; i < loss->n_settings; i++)
    if (strcmp(loss->settings[i].name, name) == 0)
      return 1;
  return 0;
}

static const char *read_setting(learn_loss_t *loss, const char *text) {
  static char why[256];
  const char *name = find(loss, text);
  const char *equals = strchr(text, '=');
  const char *const *all = known[loss->name];
  char *end = NULL;
  const double value = equals != NULL ? strtod(equals + 1, &end) : NAN;

  if (equals == NULL || end == equals + 1 || *end != '\0' || !isfinite(value) ||
      value < 0)
    snprintf(
        why, sizeof(why),
        "--loss-setting \"%.60s\" is not NAME=X, where X is a number of at "
        "least 0",
        text);
  else if (name == NULL && all[0] == NULL)
    snprintf(why, sizeof(why), "--loss %s has no settings",
             learn_losses[loss->name]);
  else if (name == NULL)
    snprintf(why, sizeof(why),
             "--loss-setting \"%.60s\": the settings of --loss %s are %s%s%s",
             text, learn_losses[loss->name], all[0],
             all[1] != NULL ? " and " : "", all[1] != NULL ? all[1] : "");
  else if (is_set(loss, name))
    snprintf(why, sizeof(why), "--loss-setting %s is given twice", name);
  else {
    loss->settings[loss->n_settings++] =
        (tnk_loss_setting_t){.name = name, .number = value};
    return NULL;
  }
  return why;
}

const char *learn_loss_check(learn_loss_t *loss) {
  const char *wrong = NULL;

  loss->n_settings = 0;
  for (size_t i = 0; i < loss->texts.n && wrong == NULL; i++)
    wrong = read_setting(loss, loss->texts.items[i]);
  return wrong;
}

void learn_loss_set(const learn_loss_t *loss, tnk_pass_options_t *options) {
  options->loss_fn = learn_losses[loss->name];
  options->settings = loss->settings;
  options->n_settings = loss->n_settings;
}

json_t *learn_loss_add(json_t *options, const learn_loss_t *loss) {
  if (options == NULL ||
      json_object_set_new(options, "loss-setting",
                          loss->texts.n > 0 ? learn_folder_texts(&loss->texts)
                                            : json_null()) == 0)
    return options;
  json_decref(options);
  return NULL;
}
