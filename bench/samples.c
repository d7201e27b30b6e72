/*
 * Samples in flight: how many a second and a CPU-second, memory for each, and
 * the longest time the loop was busy at a stretch. The server is another
 * process.
 *
 *   bench_samples [--samples N] [--in-flight N] [--prompt N] [--tokens N]
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

typedef struct {
  long n_samples;
  long in_flight;
  long n_prompt;
  long n_tokens;
  long n_started;
  long n_done;
  long n_failed;
  tnk_sampling_t *sampling;
  int32_t *prompt;
} bench_t;

static bench_t bench = {2000, 2000, 128, 8, 0, 0, 0, NULL, NULL};

static void start_one(void);

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  bench.n_done++;
  if (status != TNK_OK && bench.n_failed++ == 0)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  if (bench.n_started < bench.n_samples)
    start_one();
}

static void start_one(void) {
  tnk_chunk_t chunk = tnk_chunk_text(bench.prompt, (size_t)bench.n_prompt);
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.present = TNK_HAS_MAX_TOKENS | TNK_HAS_SEED;
  params.max_tokens = (int32_t)bench.n_tokens;
  params.seed = bench.n_started++;
  tnk_then(tnk_sampling_sample(bench.sampling, &(tnk_model_input_t){&chunk, 1},
                               &params, NULL),
           on_sample, NULL);
}

static int read_args(int argc, char **argv) {
  static const struct {
    const char *name;
    long *value;
  } options[] = {{"--samples", &bench.n_samples},
                 {"--in-flight", &bench.in_flight},
                 {"--prompt", &bench.n_prompt},
                 {"--tokens", &bench.n_tokens}};
  size_t k;

  for (int i = 1; i + 1 < argc; i += 2) {
    for (k = 0; k < sizeof(options) / sizeof(options[0]); k++)
      if (strcmp(argv[i], options[k].name) == 0)
        break;
    if (k == sizeof(options) / sizeof(options[0]))
      return 0;
    *options[k].value = strtol(argv[i + 1], NULL, 10);
    if (*options[k].value <= 0)
      return 0;
  }
  return argc % 2 == 1;
}

static int open_sampler(tnk_service_t **service) {
  tnk_sampler_options_t options = TNK_SAMPLER_OPTIONS_INIT;
  tnk_promise_t *promise;
  char text[256];

  if (tnk_service_open(service, uv_default_loop(), NULL, text, sizeof(text)) !=
      TNK_OK) {
    fprintf(stderr, "%s\n", text);
    return 0;
  }
  options.base_model = "tnk/byte-lm";
  promise = tnk_service_create_sampling(*service, &options);
  if (tnk_wait(promise) != TNK_OK) {
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
    return 0;
  }
  bench.sampling = tnk_promise_sampling(promise);
  tnk_promise_unref(promise);
  return 1;
}

/* Run all samples; returns the memory that those in flight took. */
static long run(void) {
  long before = measure_rss_kib();
  long most = before;

  while (bench.n_started < bench.in_flight && bench.n_started < bench.n_samples)
    start_one();
  while (bench.n_done < bench.n_samples) {
    uv_run(uv_default_loop(), UV_RUN_ONCE);
    if (bench.n_done == 0 && measure_rss_kib() > most)
      most = measure_rss_kib();
  }
  return most - before;
}

int main(int argc, char **argv) {
  tnk_service_t *service;
  tnk_stats_t stats;
  measure_stall_t stall;
  double stall_ms;
  uint64_t start_ns;
  double start_cpu;
  double wall_s;
  long kib;

  if (!read_args(argc, argv)) {
    fprintf(stderr, "usage: bench_samples [--samples N] [--in-flight N] "
                    "[--prompt N] [--tokens N]\n");
    return 2;
  }
  bench.prompt = calloc((size_t)bench.n_prompt, sizeof(*bench.prompt));
  if (bench.prompt == NULL || !open_sampler(&service))
    return 1;
  for (long i = 0; i < bench.n_prompt; i++)
    bench.prompt[i] = (int32_t)(32 + i % 90);
  measure_stall_start(&stall, uv_default_loop());
  start_ns = uv_hrtime();
  start_cpu = measure_cpu_s();
  kib = run();
  start_cpu = measure_cpu_s() - start_cpu;
  stall_ms = measure_stall_stop(&stall);
  wall_s = (double)(uv_hrtime() - start_ns) / 1e9;
  tnk_service_stats(service, &stats);
  printf("{\"samples\":%ld,\"in_flight\":%ld,\"failed\":%ld,\"wall_s\":%.3f,"
         "\"cpu_s\":%.3f,\"per_s\":%.0f,\"per_cpu_s\":%.0f,\"stall_ms\":%.2f,"
         "\"kib_per_sample\":%.2f,\"connections\":%u,\"retries\":%llu}\n",
         bench.n_samples, bench.in_flight, bench.n_failed, wall_s, start_cpu,
         (double)bench.n_samples / wall_s, (double)bench.n_samples / start_cpu,
         stall_ms,
         (double)kib / (double)(bench.in_flight < bench.n_samples
                                    ? bench.in_flight
                                    : bench.n_samples),
         stats.max_connections, (unsigned long long)stats.n_retries);
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  free(bench.prompt);
  return bench.n_failed > 0;
}
