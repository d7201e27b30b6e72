/* SPDX-License-Identifier: MIT */
/*
 * Pages of checkpoints, one after the other, all of which are read.
 *
 *   bench_records [PAGES [RECORDS]]                          200 1000
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is. Prints one line
 * of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

/* So that nothing that was asked for is left unread. */
static size_t read_page(const tnk_page_t *page) {
  size_t sum = 0;

  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_checkpoint_t *record = tnk_page_checkpoint(page, i);

    sum += strlen(record->path) + (size_t)record->size_bytes +
           (size_t)record->time_us + record->n_user_metadata;
  }
  return sum;
}

static int ask(tnk_service_t *service, uint32_t n_records, size_t *sum) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  tnk_promise_t *promise;
  int status;

  options.limit = n_records;
  promise = tnk_rest_list_checkpoints(service, &options);
  status = tnk_wait(promise);
  if (status != TNK_OK)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  else
    *sum += read_page(tnk_promise_page(promise));
  tnk_promise_unref(promise);
  return status;
}

int main(int argc, char **argv) {
  const long n = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
  const uint32_t n_records =
      argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
  uv_loop_t *loop = uv_default_loop();
  tnk_service_t *service = measure_open(loop, NULL);
  size_t sum = 0;
  int status;
  double from_s;
  uint64_t from_ns;

  if (service == NULL)
    return 1;
  /* The first one connects and asks for the configuration. */
  status = ask(service, n_records, &sum);
  measure_reset_peak();
  from_s = measure_cpu_s();
  from_ns = uv_hrtime();
  for (long i = 0; i < n && status == TNK_OK; i++)
    status = ask(service, n_records, &sum);
  printf("{\"cpu_ms\":%.4f,\"wall_ms\":%.4f,\"peak_kib\":%ld,\"sum\":%zu}\n",
         (measure_cpu_s() - from_s) * 1e3 / (double)n,
         (double)(uv_hrtime() - from_ns) / 1e6 / (double)n, measure_peak_kib(),
         sum);
  tnk_service_close(service, NULL, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  return status != TNK_OK;
}
