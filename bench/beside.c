/* SPDX-License-Identifier: MIT */
/*
 * A pass beside samples whose polls the server holds: when it had the pass, and
 * how late the results came meanwhile.
 *
 *   bench_beside [SAMPLES [EXAMPLES [LENGTH]]]                500 320 3840
 *
 * SAMPLES are in flight all the time; 0: the pass alone. TINKER_BASE_URL and
 * TINKER_API_KEY say where the server is, which must be a stub (see
 * src/tools/local/stub/stub.h). Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

enum { MAX_DELAYS = 100000, PROMPT = 8, WARM_UP_MS = 1000 };

typedef struct {
  tnk_sampling_t *sampling;
  int64_t n_started;
  long n_in_flight;
  int is_measuring; /* the pass is under way */
  int is_over;
  size_t n_delays;
  double delays_ms[MAX_DELAYS];
  tnk_datum_t *data;
  int32_t *tokens;
  int64_t *targets;
  float *weights;
} bench_t;

static bench_t bench;

/* ---- Samples ---- */

static void start_one(void);

/* The stub writes into the tokens when the result was there. */
static void note_delay(const tnk_promise_t *promise) {
  size_t n = 0;
  const int32_t *stamp =
      tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);

  if (n >= 3 && bench.n_delays < MAX_DELAYS)
    bench.delays_ms[bench.n_delays++] =
        (double)(uv_hrtime() - ((uint64_t)stamp[0] | (uint64_t)stamp[1] << 21 |
                                (uint64_t)stamp[2] << 42)) /
        1e6;
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  bench.n_in_flight--;
  if (status == TNK_OK && bench.is_measuring)
    note_delay(promise);
  if (status == TNK_OK && !bench.is_over)
    start_one();
}

static void start_one(void) {
  static const int32_t prompt[PROMPT] = {1, 2, 3, 4, 5, 6, 7, 8};
  const tnk_model_input_t input = {.tokens = prompt, .n_tokens = PROMPT};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = 8;
  params.seed = bench.n_started++;
  bench.n_in_flight++;
  tnk_then(tnk_sampling_sample(bench.sampling, &input, &params, NULL),
           on_sample, NULL);
}

/* ---- The pass ---- */

/* All examples are views of the same arrays. */
static int make_data(size_t n, size_t length) {
  static tnk_loss_input_t inputs[2];

  bench.data = calloc(n, sizeof(*bench.data));
  bench.tokens = calloc(length, sizeof(*bench.tokens));
  bench.targets = calloc(length, sizeof(*bench.targets));
  bench.weights = calloc(length, sizeof(*bench.weights));
  if (bench.data == NULL || bench.tokens == NULL || bench.targets == NULL ||
      bench.weights == NULL)
    return 0;
  for (size_t i = 0; i < length; i++) {
    bench.tokens[i] = (int32_t)(i * 7919 % 150000);
    bench.targets[i] = (int64_t)((i + 1) * 7919 % 150000);
    bench.weights[i] = 1;
  }
  inputs[0].name = "target_tokens";
  inputs[0].tensor = tnk_tensor_i64(bench.targets, length);
  inputs[1].name = "weights";
  inputs[1].tensor = tnk_tensor_f32(bench.weights, length);
  for (size_t i = 0; i < n; i++) {
    bench.data[i].input.tokens = bench.tokens;
    bench.data[i].input.n_tokens = length;
    bench.data[i].loss_inputs = inputs;
    bench.data[i].n_loss_inputs = 2;
  }
  return 1;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a;
  const double y = *(const double *)b;

  return (x > y) - (x < y);
}

static int run_pass(tnk_training_t *training, size_t n) {
  const uint64_t from_ns = uv_hrtime();
  tnk_promise_t *promise;
  int status;

  bench.is_measuring = 1;
  promise = tnk_training_forward_backward(training, bench.data, n, NULL);
  status = tnk_wait(promise);
  bench.is_measuring = 0;
  if (status != TNK_OK) {
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  } else {
    qsort(bench.delays_ms, bench.n_delays, sizeof(double), compare);
    printf("{\"sent_ms\":%.1f",
           (tnk_metrics_get(tnk_pass_metrics(tnk_promise_pass(promise)),
                            "arrived_ns:max") -
            (double)from_ns) /
               1e6);
    if (bench.n_delays > 0)
      printf(",\"delay_p50_ms\":%.2f,\"delay_p99_ms\":%.2f,"
             "\"delay_max_ms\":%.2f",
             bench.delays_ms[bench.n_delays / 2],
             bench.delays_ms[(bench.n_delays * 99 + 99) / 100 - 1],
             bench.delays_ms[bench.n_delays - 1]);
    printf(",\"n_delays\":%zu}\n", bench.n_delays);
  }
  tnk_promise_unref(promise);
  return status;
}

/* Until the polls of the first samples are held. */
static void warm_up(void) {
  const uint64_t until = uv_hrtime() + WARM_UP_MS * UINT64_C(1000000);

  while (uv_hrtime() < until)
    uv_run(uv_default_loop(), UV_RUN_ONCE);
}

int main(int argc, char **argv) {
  const long n_samples = argc > 1 ? strtol(argv[1], NULL, 10) : 500;
  const size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 320;
  const size_t length = argc > 3 ? strtoul(argv[3], NULL, 10) : 3840;
  tnk_service_t *service =
      make_data(n, length) ? measure_open(uv_default_loop(), NULL) : NULL;
  tnk_training_t *training = service != NULL ? measure_training(service) : NULL;
  int status = TNK_EINVAL;

  if (training != NULL)
    bench.sampling = measure_sampling(service);
  if (bench.sampling != NULL) {
    for (long i = 0; i < n_samples; i++)
      start_one();
    if (n_samples > 0)
      warm_up();
    status = run_pass(training, n);
  }
  bench.is_over = 1;
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  free(bench.data);
  free(bench.tokens);
  free(bench.targets);
  free(bench.weights);
  return status != TNK_OK;
}
