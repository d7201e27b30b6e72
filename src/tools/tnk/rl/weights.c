/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/weights.h"

#include <stdlib.h>

int rl_weights_open(rl_weights_t *w) {
  w->samplers = calloc(w->n_before + 1, sizeof(*w->samplers));
  return w->samplers != NULL
             ? CLI_EXIT_OK
             : cli_fail(w->ask->cli, CLI_EXIT_FAILED, "out of memory");
}

static uint32_t version_of(const tnk_gateway_t *gateway) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  (void)tnk_gateway_stats(&stats, gateway);
  return stats.version;
}

static int use(rl_weights_t *w, const char *path) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *used;
  int result;

  what.model_path = path;
  used = tnk_gateway_use(w->gateway, &what);
  result = learn_await(w->ask, used);
  tnk_promise_unref(used);
  /* The gateway may learn of it in the next turn of the loop. */
  while (result == CLI_EXIT_OK && version_of(w->gateway) == w->version)
    uv_run(&w->ask->loop, UV_RUN_ONCE);
  w->version = version_of(w->gateway);
  return result;
}

/* The service may have another name for the model of samples than the user.
 * Without its price all samples would be refused. */
static int check_price(rl_weights_t *w, const char *path) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *created;
  int result;

  if (w->is_priced || !(w->budget->max_usd > 0))
    return CLI_EXIT_OK;
  what.model_path = path;
  created = tnk_service_create_sampling(w->ask->service, &what);
  result = learn_await(w->ask, created);
  if (result == CLI_EXIT_OK) {
    tnk_sampling_t *sampling = tnk_promise_sampling(created);

    result = learn_check_price(w->ask->cli, w->budget,
                               tnk_sampling_base_model(sampling));
    tnk_sampling_close(sampling, NULL, NULL);
    w->is_priced = result == CLI_EXIT_OK;
  }
  tnk_promise_unref(created);
  return result;
}

int rl_weights_give(rl_weights_t *w, tnk_training_t *model, const char *name) {
  learn_sampler_t *sampler = &w->samplers[w->n_given % (w->n_before + 1)];
  int result = learn_sampler_save(sampler, w->ask, model, name);

  if (result == CLI_EXIT_OK) {
    w->n_given++;
    result = check_price(w, sampler->path);
  }
  if (result == CLI_EXIT_OK)
    result = use(w, sampler->path);
  learn_sampler_drop_old(sampler, w->ask);
  return result;
}

void rl_weights_end(rl_weights_t *w) {
  for (size_t i = 0; i <= w->n_before && w->samplers != NULL; i++)
    learn_sampler_end(&w->samplers[i], w->ask);
}

void rl_weights_free(rl_weights_t *w) {
  for (size_t i = 0; i <= w->n_before && w->samplers != NULL; i++)
    learn_sampler_free(&w->samplers[i]);
  free(w->samplers);
  w->samplers = NULL;
}
