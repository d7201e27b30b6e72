/* SPDX-License-Identifier: MIT */
/*
 * Files of a checkpoint, taken home.
 *
 *   bench_weights PATH DIRECTORY
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is. Prints one line
 * of JSON: when the last byte had come, when all was on the disk, and what
 * memory it took beyond that of the service.
 */
#include <stdio.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

static uint64_t arrived_ns;

static void on_progress(const tnk_weights_progress_t *progress, void *user) {
  (void)user;
  if (progress->n_total > 0 && progress->n_bytes == progress->n_total)
    arrived_ns = uv_hrtime();
}

static int run(tnk_service_t *service, const char *path,
               const char *directory) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  const double cpu_s = measure_cpu_s();
  const uint64_t from_ns = uv_hrtime();
  tnk_promise_t *promise;
  long kib;
  int status;

  options.on_progress = on_progress;
  options.max_parallel = 8;
  measure_reset_peak();
  kib = measure_rss_kib();
  promise = tnk_weights_download(service, path, directory, &options);
  status = tnk_wait(promise);
  if (status == TNK_OK) {
    const tnk_weights_t *weights = tnk_promise_weights(promise);
    const double seconds = (double)(arrived_ns - from_ns) / 1e9;

    printf("{\"mib_s\":%.1f,\"arrived_s\":%.3f,\"whole_s\":%.3f,"
           "\"cpu_s\":%.3f,\"peak_mib\":%.2f,\"files\":%zu}\n",
           (double)weights->n_bytes / 1048576 / seconds, seconds,
           (double)(uv_hrtime() - from_ns) / 1e9, measure_cpu_s() - cpu_s,
           (double)(measure_peak_kib() - kib) / 1024, weights->n_files);
  } else {
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  }
  tnk_promise_unref(promise);
  return status;
}

int main(int argc, char **argv) {
  tnk_service_t *service =
      argc == 3 ? measure_open(uv_default_loop(), NULL) : NULL;
  int status = TNK_EINVAL;

  if (argc != 3)
    fprintf(stderr, "usage: bench_weights PATH DIRECTORY\n");
  if (service != NULL)
    status = run(service, argv[1], argv[2]);
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  return status != TNK_OK;
}
