/* SPDX-License-Identifier: MIT */
/*
 * A ledger that is opened again and again.
 *
 *   bench_ledger DIRECTORY [TIMES]                          10
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is, which is not
 * asked for anything. Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

static void on_closed(void *user) {
  *(int *)user = 1;
}

/* How many saves it has. */
static size_t open_once(tnk_service_t *service, const char *directory) {
  tnk_promise_t *promise = tnk_ledger_open(service, directory, NULL);
  size_t n = 0;
  int is_closed = 0;

  if (tnk_wait(promise) == TNK_OK) {
    tnk_ledger_t *ledger = tnk_promise_ledger(promise);
    n = tnk_ledger_count(ledger);
    tnk_ledger_close(ledger, on_closed, &is_closed);
    while (!is_closed)
      uv_run(uv_default_loop(), UV_RUN_ONCE);
  } else {
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  }
  tnk_promise_unref(promise);
  return n;
}

int main(int argc, char **argv) {
  const long times = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
  tnk_service_t *service = measure_open(uv_default_loop(), NULL);
  uint64_t from_ns;
  double from_s;
  size_t n = 0;

  if (argc < 2 || service == NULL)
    return 1;
  measure_reset_peak();
  from_s = measure_cpu_s();
  from_ns = uv_hrtime();
  for (long i = 0; i < times; i++)
    n = open_once(service, argv[1]);
  printf("{\"cpu_ms\":%.4f,\"wall_ms\":%.4f,\"peak_kib\":%ld,\"n\":%zu}\n",
         (measure_cpu_s() - from_s) * 1e3 / (double)times,
         (double)(uv_hrtime() - from_ns) / 1e6 / (double)times,
         measure_peak_kib(), n);
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  return n == 0;
}
