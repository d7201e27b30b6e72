/* SPDX-License-Identifier: MIT */
/*
 * Samples in flight: how many a second and a CPU-second, how soon the first
 * one came, how long the loop was busy at a stretch, how late results came.
 * The server is another process.
 *
 *   bench_samples [--samples N] [--in-flight N] [--prompt N] [--tokens N]
 *                 [--stall 1] [--delays 1] [--count 1] [--observe 1]
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is. Prints one line
 * of JSON when all clients are made, and one in the end. --stall watches the
 * loop, which costs a little; --delays needs a server that writes into the
 * tokens when the result was there (see src/tools/local/stub/stub.h); with
 * --count allocations are counted, and after SIGINT it says what is live, and
 * ends; with --observe everything of tnk/observe.h is at work, and a trace goes
 * to bench_samples.pftrace.
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
  long want_stall;
  long want_delays;
  long want_count;
  long want_observer;
  long n_started;
  long n_done;
  long n_failed;
  double *delays_ms;
  uint64_t first_ns;  /* when the first sample had come, */
  double first_cpu_s; /* and what the process had used until then */
  tnk_service_t *service;
  tnk_sampling_t *sampling;
  int32_t *prompt;
  measure_memory_t memory;
  measure_stall_t stall;
  double send_wall_ms; /* longest turns before the first result */
  double send_cpu_ms;
} bench_t;

static bench_t bench = {
    .n_samples = 2000, .in_flight = 2000, .n_prompt = 128, .n_tokens = 8};

/* ---- Samples ---- */

static void start_one(void);

/* Milliseconds since the result was there. */
static double delay_of(tnk_promise_t *promise) {
  size_t n = 0;
  const int32_t *stamp =
      tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);

  if (n < 3)
    return 0;
  return (double)(uv_hrtime() - ((uint64_t)stamp[0] | (uint64_t)stamp[1] << 21 |
                                 (uint64_t)stamp[2] << 42)) /
         1e6;
}

static void on_first(void) {
  bench.first_ns = uv_hrtime();
  bench.first_cpu_s = measure_cpu_s();
  if (!bench.want_stall)
    return;
  bench.send_wall_ms = bench.stall.wall_ms;
  bench.send_cpu_ms = bench.stall.cpu_ms;
  measure_stall_begin(&bench.stall);
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  if (bench.n_done == 0)
    on_first();
  if (bench.want_delays && status == TNK_OK)
    bench.delays_ms[bench.n_done] = delay_of(promise);
  bench.n_done++;
  if (status != TNK_OK && bench.n_failed++ == 0)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  if (bench.n_started < bench.n_samples)
    start_one();
}

static void start_one(void) {
  tnk_chunk_t chunk = tnk_chunk_text(bench.prompt, (size_t)bench.n_prompt);
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = (int32_t)bench.n_tokens;
  params.seed = bench.n_started++;
  tnk_then(
      tnk_sampling_sample(bench.sampling,
                          &(tnk_model_input_t){.chunks = &chunk, .n_chunks = 1},
                          &params, NULL),
      on_sample, NULL);
}

static void run(void) {
  while (bench.n_started < bench.in_flight && bench.n_started < bench.n_samples)
    start_one();
  while (bench.n_done < bench.n_samples)
    uv_run(uv_default_loop(), UV_RUN_ONCE);
}

/* ---- What is told ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;

  return (x > y) - (x < y);
}

static void print_delays(void) {
  size_t n = (size_t)bench.n_done;

  qsort(bench.delays_ms, n, sizeof(double), compare);
  printf(",\"delay_p50_ms\":%.3f,\"delay_p99_ms\":%.3f,\"delay_max_ms\":%.3f",
         bench.delays_ms[n / 2], bench.delays_ms[(n * 99 + 99) / 100 - 1],
         bench.delays_ms[n - 1]);
}

static void print_stalls(void) {
  printf(",\"send_stall_ms\":%.2f,\"send_stall_cpu_ms\":%.2f,"
         "\"stall_ms\":%.2f,\"stall_cpu_ms\":%.2f",
         bench.send_wall_ms, bench.send_cpu_ms, bench.stall.wall_ms,
         bench.stall.cpu_ms);
}

static void print_all(double wall_s, double cpu_s) {
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, bench.service);
  printf("{\"samples\":%ld,\"in_flight\":%ld,\"failed\":%ld,\"wall_s\":%.3f,"
         "\"cpu_s\":%.3f,\"per_s\":%.0f,\"per_cpu_s\":%.0f,"
         "\"first_ns\":%llu,\"first_cpu_ms\":%.2f",
         bench.n_samples, bench.in_flight, bench.n_failed, wall_s, cpu_s,
         (double)bench.n_samples / wall_s, (double)bench.n_samples / cpu_s,
         (unsigned long long)bench.first_ns, bench.first_cpu_s * 1e3);
  if (bench.want_delays)
    print_delays();
  if (bench.want_stall)
    print_stalls();
  printf(",\"connections\":%u,\"retries\":%llu}\n", stats.max_connections,
         (unsigned long long)stats.n_retries);
}

/* What the samples hold that the server has not answered. */
static void on_interrupt(uv_signal_t *signal, int number) {
  (void)signal;
  (void)number;
  printf("{\"live_bytes\":%zu,\"live_blocks\":%zu}\n", bench.memory.n_bytes,
         bench.memory.n_blocks);
  exit(0);
}

/* ---- Life ---- */

static int read_args(int argc, char **argv) {
  static const struct {
    const char *name;
    long *value;
  } options[] = {
      {"--samples", &bench.n_samples}, {"--in-flight", &bench.in_flight},
      {"--prompt", &bench.n_prompt},   {"--tokens", &bench.n_tokens},
      {"--stall", &bench.want_stall},  {"--delays", &bench.want_delays},
      {"--count", &bench.want_count},  {"--observe", &bench.want_observer}};
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

static tnk_trace_t *trace;
static tnk_meter_t *meter;

static void on_event(const tnk_event_t *event, void *user) {
  (void)user;
  tnk_trace_event(event, trace);
  tnk_meter_event(event, meter);
}

/* Everything that can be asked for is. */
static int observe(tnk_service_options_t *options) {
  meter = tnk_meter_new(NULL);
  if (meter == NULL ||
      tnk_trace_open(&trace, "bench_samples.pftrace", NULL) != TNK_OK)
    return 0;
  options->observer = on_event;
  options->traceparent =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  return 1;
}

static int open_all(void) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  uv_loop_t *loop = uv_default_loop();
  static uv_signal_t interrupt;

  if (bench.want_stall)
    measure_stall_init(&bench.stall, loop);
  if (bench.want_count) {
    measure_memory_init(&bench.memory);
    uv_signal_init(loop, &interrupt);
    uv_signal_start(&interrupt, on_interrupt, SIGINT);
  }
  bench.prompt = calloc((size_t)bench.n_prompt, sizeof(*bench.prompt));
  bench.delays_ms = calloc((size_t)bench.n_samples, sizeof(double));
  if (bench.want_count)
    options.allocator = &bench.memory.allocator;
  if (bench.want_observer && !observe(&options))
    return 0;
  bench.service = measure_open(loop, &options);
  if (bench.prompt == NULL || bench.delays_ms == NULL || bench.service == NULL)
    return 0;
  for (long i = 0; i < bench.n_prompt; i++)
    bench.prompt[i] = (int32_t)(32 + i % 90);
  bench.sampling = measure_sampling(bench.service);
  return bench.sampling != NULL;
}

int main(int argc, char **argv) {
  uint64_t start_ns;
  double start_cpu;

  if (!read_args(argc, argv)) {
    fprintf(stderr, "usage: bench_samples [--samples N] [--in-flight N] "
                    "[--prompt N] [--tokens N] [--stall 1] [--delays 1] "
                    "[--count 1] [--observe 1]\n");
    return 2;
  }
  if (!open_all())
    return 1;
  printf("{\"rss_kib\":%ld,\"live_bytes\":%zu,\"cpu_s\":%.4f}\n",
         measure_rss_kib(), bench.memory.n_bytes, measure_cpu_s());
  fflush(stdout);
  if (bench.want_stall)
    measure_stall_begin(&bench.stall);
  start_ns = uv_hrtime();
  start_cpu = measure_cpu_s();
  run();
  print_all((double)(uv_hrtime() - start_ns) / 1e9,
            measure_cpu_s() - start_cpu);
  if (bench.want_stall)
    measure_stall_close(&bench.stall);
  tnk_service_close(bench.service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  tnk_trace_close(trace);
  tnk_meter_free(meter);
  free(bench.prompt);
  free(bench.delays_ms);
  return bench.n_failed > 0;
}
