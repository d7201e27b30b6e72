/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tnk/rest.h"

/* The service deletes weights that a killed process has left. */
enum { TTL_S = 7 * 24 * 3600 };

int learn_await(cli_ask_t *ask, tnk_promise_t *promise) {
  const int err = cli_ask_wait(ask, promise);

  if (err == TNK_OK)
    return CLI_EXIT_OK;
  return err == TNK_ESESSION ? LEARN_LOST : cli_ask_failed(ask, promise);
}

int learn_await_limited(cli_ask_t *ask, tnk_promise_t *promise) {
  if (cli_ask_wait(ask, promise) != TNK_EBUDGET)
    return learn_await(ask, promise);
  cli_warn(ask->cli, "%s", tnk_promise_text(promise));
  return LEARN_BROKE;
}

/* Await the deletion of earlier weights. The service deletes them some time
 * later anyway. */
static void end_deletion(learn_sampler_t *sampler, cli_ask_t *ask) {
  if (sampler->deleting != NULL)
    (void)cli_ask_wait(ask, sampler->deleting);
  tnk_promise_unref(sampler->deleting);
  sampler->deleting = NULL;
}

tnk_promise_t *learn_sampler_begin(tnk_training_t *model, const char *name) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;

  options.ttl_seconds = TTL_S;
  return tnk_training_save_weights_for_sampler(model, name, &options);
}

int learn_sampler_take(learn_sampler_t *sampler, cli_ask_t *ask,
                       const tnk_promise_t *saved) {
  char *path = strdup(tnk_promise_path(saved));

  if (path == NULL)
    return cli_fail(ask->cli, CLI_EXIT_FAILED, "out of memory");
  learn_sampler_drop_old(sampler, ask);
  sampler->old = sampler->path;
  sampler->path = path;
  return CLI_EXIT_OK;
}

int learn_sampler_save(learn_sampler_t *sampler, cli_ask_t *ask,
                       tnk_training_t *model, const char *name) {
  tnk_promise_t *saved = learn_sampler_begin(model, name);
  int result = learn_await(ask, saved);

  if (result == CLI_EXIT_OK)
    result = learn_sampler_take(sampler, ask, saved);
  tnk_promise_unref(saved);
  return result;
}

void learn_sampler_drop_old(learn_sampler_t *sampler, cli_ask_t *ask) {
  if (sampler->old == NULL)
    return;
  end_deletion(sampler, ask);
  sampler->deleting = tnk_rest_delete_checkpoint(ask->service, sampler->old);
  free(sampler->old);
  sampler->old = NULL;
}

void learn_sampler_drop(learn_sampler_t *sampler, cli_ask_t *ask) {
  learn_sampler_drop_old(sampler, ask);
  sampler->old = sampler->path;
  sampler->path = NULL;
  learn_sampler_drop_old(sampler, ask);
}

void learn_sampler_end(learn_sampler_t *sampler, cli_ask_t *ask) {
  learn_sampler_drop(sampler, ask);
  end_deletion(sampler, ask);
}

void learn_sampler_free(learn_sampler_t *sampler) {
  tnk_promise_unref(sampler->deleting);
  free(sampler->path);
  free(sampler->old);
}
