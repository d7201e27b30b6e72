/*
 * One forward_backward of many tokens: CPU, time until the last byte was
 * accepted, memory beyond the caller's arrays, and the longest time the loop
 * was busy at a stretch.
 *
 *   bench_passes [EXAMPLES [LENGTH [LOSS]]]        256 4096 cross_entropy
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
  size_t n;
  size_t length;
  const char *loss;
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

static tnk_training_t *open_training(tnk_service_t **service) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_training_t *training = NULL;
  tnk_promise_t *promise;
  char text[256];

  if (tnk_service_open(service, uv_default_loop(), NULL, text, sizeof(text)) !=
      TNK_OK) {
    fprintf(stderr, "%s\n", text);
    return NULL;
  }
  options.base_model = "tnk/byte-lm";
  promise = tnk_service_create_lora(*service, &options);
  if (tnk_wait(promise) == TNK_OK)
    training = tnk_promise_training(promise);
  else
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return training;
}

int main(int argc, char **argv) {
  batch_t batch = {.n = 256, .length = 4096, .loss = "cross_entropy"};
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  tnk_service_t *service;
  tnk_training_t *training;
  tnk_promise_t *promise;
  measure_stall_t stall;
  long before_kib;
  uint64_t start_ns;
  double cpu_s;
  double stall_ms;
  double call_ms;
  int status;

  if (argc > 1)
    batch.n = strtoul(argv[1], NULL, 10);
  if (argc > 2)
    batch.length = strtoul(argv[2], NULL, 10);
  if (argc > 3)
    batch.loss = argv[3];
  if (!make_batch(&batch))
    return 1;
  training = open_training(&service);
  if (training == NULL)
    return 1;
  options.loss_fn = batch.loss;
  options.release = on_released;
  before_kib = measure_rss_kib();
  measure_stall_start(&stall, uv_default_loop());
  start_ns = uv_hrtime();
  cpu_s = measure_cpu_s();
  promise =
      tnk_training_forward_backward(training, batch.data, batch.n, &options);
  call_ms = (double)(uv_hrtime() - start_ns) / 1e6;
  status = tnk_wait(promise);
  cpu_s = measure_cpu_s() - cpu_s;
  stall_ms = measure_stall_stop(&stall);
  if (status != TNK_OK)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  printf("{\"tokens\":%zu,\"loss\":\"%s\",\"cpu_s\":%.4f,\"sent_s\":%.4f,"
         "\"peak_mib\":%.1f,\"call_ms\":%.2f,\"stall_ms\":%.2f}\n",
         batch.n * batch.length, batch.loss, cpu_s,
         (double)(released_ns - start_ns) / 1e9,
         (double)(measure_peak_kib() - before_kib) / 1024.0, call_ms, stall_ms);
  tnk_promise_unref(promise);
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
