/* SPDX-License-Identifier: MIT */
/*
 * One forward_backward of many tokens: CPU, time until the server had the last
 * byte and until the data was given back, memory beyond the caller's arrays,
 * and with `stall` how long the loop was busy at a stretch.
 *
 *   bench_passes [EXAMPLES [LENGTH [LOSS [stall]]]]   256 4096 cross_entropy
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is, which must be a
 * stub (see src/tools/local/stub/stub.h). Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "measure.h"

typedef struct {
  size_t n;
  size_t length;
  const char *loss;
  int want_stall;
  int32_t *tokens;
  int64_t *targets;
  float *values;
  tnk_chunk_t *chunks;
  tnk_loss_input_t *inputs;
  tnk_datum_t *data;
} batch_t;

static int make_batch(batch_t *b) {
  static const char *const names[] = {"weights", "logprobs", "advantages"};
  int is_policy = strcmp(b->loss, "cross_entropy") != 0;
  size_t n_tokens = b->n * b->length;

  b->tokens = malloc(n_tokens * sizeof(*b->tokens));
  b->targets = malloc(n_tokens * sizeof(*b->targets));
  b->values = malloc(n_tokens * sizeof(*b->values));
  b->chunks = calloc(b->n, sizeof(*b->chunks));
  b->inputs = calloc(b->n * 3, sizeof(*b->inputs));
  b->data = calloc(b->n, sizeof(*b->data));
  if (b->tokens == NULL || b->targets == NULL || b->values == NULL ||
      b->chunks == NULL || b->inputs == NULL || b->data == NULL)
    return 0;
  for (size_t i = 0; i < n_tokens; i++) {
    b->tokens[i] = (int32_t)(i * 7919 % 150000);
    b->targets[i] = (int64_t)((i + 1) * 7919 % 150000);
    b->values[i] = 1.0f / (float)(1 + i % 13);
  }
  for (size_t i = 0; i < b->n; i++) {
    tnk_loss_input_t *inputs = &b->inputs[3 * i];
    tnk_tensor_t values = tnk_tensor_f32(b->values + i * b->length, b->length);
    b->chunks[i] = tnk_chunk_text(b->tokens + i * b->length, b->length);
    inputs[0].name = "target_tokens";
    inputs[0].tensor = tnk_tensor_i64(b->targets + i * b->length, b->length);
    inputs[1].name = names[is_policy];
    inputs[1].tensor = values;
    inputs[2].name = names[2];
    inputs[2].tensor = values;
    b->data[i].input.chunks = &b->chunks[i];
    b->data[i].input.n_chunks = 1;
    b->data[i].loss_inputs = inputs;
    b->data[i].n_loss_inputs = is_policy ? 3 : 2;
  }
  return 1;
}

static uint64_t released_ns;

static void on_released(void *user) {
  (void)user;
  released_ns = uv_hrtime();
}

/* What was before the call, in the units of the result. */
typedef struct {
  uint64_t start_ns;
  double cpu_s;
  double call_ms;
  long kib;
} begin_t;

static void print_all(const batch_t *batch, const begin_t *begin,
                      const measure_stall_t *stall, double arrived_ns) {
  printf("{\"tokens\":%zu,\"loss\":\"%s\",\"cpu_ms\":%.2f,\"sent_ms\":%.2f,"
         "\"released_ms\":%.2f,\"wall_ms\":%.2f,\"peak_mib\":%.1f,"
         "\"call_ms\":%.2f",
         batch->n * batch->length, batch->loss,
         (measure_cpu_s() - begin->cpu_s) * 1e3,
         (arrived_ns - (double)begin->start_ns) / 1e6,
         (double)(released_ns - begin->start_ns) / 1e6,
         (double)(uv_hrtime() - begin->start_ns) / 1e6,
         (double)(measure_peak_kib() - begin->kib) / 1024.0, begin->call_ms);
  if (batch->want_stall)
    printf(",\"stall_ms\":%.2f,\"stall_cpu_ms\":%.2f", stall->wall_ms,
           stall->cpu_ms);
  printf("}\n");
}

static int run(const batch_t *batch, tnk_training_t *training,
               measure_stall_t *stall) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_promise_t *promise;
  begin_t begin;
  int status;

  options.loss_fn = batch->loss;
  options.release = on_released;
  measure_reset_peak();
  if (batch->want_stall)
    measure_stall_begin(stall);
  begin.kib = measure_rss_kib();
  begin.cpu_s = measure_cpu_s();
  begin.start_ns = uv_hrtime();
  promise =
      tnk_training_forward_backward(training, batch->data, batch->n, &options);
  begin.call_ms = (double)(uv_hrtime() - begin.start_ns) / 1e6;
  status = tnk_wait(promise);
  if (status == TNK_OK)
    print_all(batch, &begin, stall,
              tnk_metrics_get(tnk_pass_metrics(tnk_promise_pass(promise)),
                              "arrived_ns:max"));
  else
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return status;
}

int main(int argc, char **argv) {
  batch_t batch = {.n = 256, .length = 4096, .loss = "cross_entropy"};
  tnk_service_t *service;
  tnk_training_t *training;
  measure_stall_t stall;
  int status = TNK_EINVAL;

  if (argc > 1)
    batch.n = strtoul(argv[1], NULL, 10);
  if (argc > 2)
    batch.length = strtoul(argv[2], NULL, 10);
  if (argc > 3)
    batch.loss = argv[3];
  batch.want_stall = argc > 4 && strcmp(argv[4], "stall") == 0;
  if (batch.want_stall)
    measure_stall_init(&stall, uv_default_loop());
  service = make_batch(&batch) ? measure_open(uv_default_loop(), NULL) : NULL;
  training = service != NULL ? measure_training(service) : NULL;
  if (training != NULL)
    status = run(&batch, training, &stall);
  if (batch.want_stall)
    measure_stall_close(&stall);
  tnk_service_close(service, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  free(batch.tokens);
  free(batch.targets);
  free(batch.values);
  free(batch.chunks);
  free(batch.inputs);
  free(batch.data);
  return status != TNK_OK;
}
