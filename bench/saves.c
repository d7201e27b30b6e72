/* SPDX-License-Identifier: MIT */
/*
 * Saves one after the other, while a probe watches how long the loop is busy
 * at a stretch.
 *
 *   bench_saves [TIMES]                                              5
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is. Prints one line
 * of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

static int save(tnk_training_t *training) {
  tnk_promise_t *promise = tnk_training_save_weights_and_get_sampling(
      training, TNK_SAMPLING_SNAPSHOT, NULL);
  int status = tnk_wait(promise);

  if (status == TNK_OK)
    tnk_sampling_close(tnk_promise_sampling(promise), NULL, NULL);
  else
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return status;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
  uv_loop_t *loop = uv_default_loop();
  measure_stall_t stall;
  tnk_service_t *service;
  tnk_training_t *training;
  int status = TNK_EINVAL;

  measure_stall_init(&stall, loop);
  service = measure_open(loop, NULL);
  training = service != NULL ? measure_training(service) : NULL;
  measure_stall_begin(&stall);
  if (training != NULL)
    for (status = TNK_OK; n > 0 && status == TNK_OK; n--)
      status = save(training);
  printf("{\"stall_ms\":%.2f,\"stall_cpu_ms\":%.2f}\n", stall.wall_ms,
         stall.cpu_ms);
  measure_stall_close(&stall);
  tnk_service_close(service, NULL, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  return status != TNK_OK;
}
