/* SPDX-License-Identifier: MIT */
/* Takes weights home: take URL PATH DIRECTORY [parallel]. Prints the number of
 * files, their bytes and those that were fetched. */
#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

static int take(tnk_service_t *service, char **args, uint32_t n_parallel) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  const tnk_weights_t *weights;
  tnk_promise_t *promise;
  int err;

  options.max_parallel = n_parallel;
  promise = tnk_weights_download(service, args[2], args[3], &options);
  err = tnk_wait(promise);
  weights = tnk_promise_weights(promise);
  if (weights != NULL)
    printf("%zu %llu %llu\n", weights->n_files,
           (unsigned long long)weights->n_bytes,
           (unsigned long long)weights->n_fetched);
  else
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return err;
}

int main(int argc, char **argv) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  uv_loop_t loop;
  char why[256];
  int err;

  if (argc < 4 || uv_loop_init(&loop) != 0)
    return 2;
  options.base_url = argv[1];
  options.api_key = "tml-canary-key";
  if (tnk_service_open(&service, &loop, &options, why, sizeof(why)) != TNK_OK) {
    fprintf(stderr, "%s\n", why);
    return 2;
  }
  err =
      take(service, argv, argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0);
  tnk_service_close(service, NULL, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
  return err == TNK_OK ? 0 : 1;
}
