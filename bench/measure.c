/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- Time and memory ---- */

double measure_cpu_s(void) {
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double measure_thread_cpu_ms(void) {
  struct timespec t;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A line of /proc/self/status, in KiB. */
static long status_kib(const char *name) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[128];
  long kib = 0;

  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0)
      kib = strtol(line + strlen(name), NULL, 10);
  if (file != NULL)
    fclose(file);
  return kib;
}

long measure_rss_kib(void) {
  return status_kib("VmRSS:");
}

/* Not from getrusage(), which remembers the parent. */
long measure_peak_kib(void) {
  return status_kib("VmHWM:");
}

void measure_reset_peak(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");

  if (file != NULL) {
    fputs("5", file);
    fclose(file);
  }
}

/* ---- Memory that is counted ---- */

static void *count(measure_memory_t *memory, void *block) {
  if (block != NULL) {
    memory->n_bytes += malloc_usable_size(block);
    memory->n_blocks++;
  }
  return block;
}

static void discount(measure_memory_t *memory, void *block) {
  if (block != NULL) {
    memory->n_bytes -= malloc_usable_size(block);
    memory->n_blocks--;
  }
}

static void *count_malloc(size_t size, void *user) {
  return count(user, malloc(size));
}

static void *count_calloc(size_t n, size_t size, void *user) {
  return count(user, calloc(n, size));
}

static void *count_realloc(void *block, size_t size, void *user) {
  void *grown;

  discount(user, block);
  grown = realloc(block, size);
  count(user, grown != NULL ? grown : block);
  return grown;
}

static void count_free(void *block, void *user) {
  discount(user, block);
  free(block);
}

void measure_memory_init(measure_memory_t *memory) {
  memory->allocator = (tnk_allocator_t){count_malloc, count_calloc,
                                        count_realloc, count_free, memory};
  memory->n_bytes = memory->n_blocks = 0;
}

/* ---- Stalls ---- */

static void on_prepare(uv_prepare_t *prepare) {
  measure_stall_t *stall = prepare->data;
  uint64_t now = uv_hrtime();
  uint64_t idle_ns = uv_metrics_idle_time(prepare->loop);
  double cpu_ms = measure_thread_cpu_ms();
  double busy_ms =
      (double)(now - stall->from_ns - (idle_ns - stall->idle_ns)) / 1e6;

  if (busy_ms > stall->wall_ms)
    stall->wall_ms = busy_ms;
  if (cpu_ms - stall->from_cpu_ms > stall->cpu_ms)
    stall->cpu_ms = cpu_ms - stall->from_cpu_ms;
  stall->from_ns = now;
  stall->idle_ns = idle_ns;
  stall->from_cpu_ms = cpu_ms;
}

void measure_stall_begin(measure_stall_t *stall) {
  stall->from_ns = uv_hrtime();
  stall->idle_ns = uv_metrics_idle_time(stall->prepare.loop);
  stall->from_cpu_ms = measure_thread_cpu_ms();
  stall->wall_ms = stall->cpu_ms = 0;
}

void measure_stall_init(measure_stall_t *stall, uv_loop_t *loop) {
  uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
  uv_prepare_init(loop, &stall->prepare);
  stall->prepare.data = stall;
  measure_stall_begin(stall);
  uv_prepare_start(&stall->prepare, on_prepare);
  uv_unref((uv_handle_t *)&stall->prepare);
}

void measure_stall_close(measure_stall_t *stall) {
  uv_close((uv_handle_t *)&stall->prepare, NULL);
}

/* ---- Clients ---- */

tnk_service_t *measure_open(uv_loop_t *loop,
                            const tnk_service_options_t *options) {
  tnk_service_t *service;
  char text[256];

  if (tnk_service_open(&service, loop, options, text, sizeof(text)) != TNK_OK) {
    fprintf(stderr, "%s\n", text);
    return NULL;
  }
  return service;
}

/* The local server's, unless another server is asked. */
static const char *base_model(void) {
  const char *name = getenv("BENCH_MODEL");

  return name != NULL ? name : "tnk/byte-lm";
}

/* Handed on, settled. Its accessors give NULL when it failed. */
static tnk_promise_t *settled(tnk_promise_t *promise) {
  if (tnk_wait(promise) != TNK_OK)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  return promise;
}

tnk_sampling_t *measure_sampling(tnk_service_t *service) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_t *sampling;
  tnk_promise_t *promise;

  options.base_model = base_model();
  promise = settled(tnk_service_create_sampling(service, &options));
  sampling = tnk_promise_sampling(promise);
  tnk_promise_unref(promise);
  return sampling;
}

tnk_training_t *measure_training(tnk_service_t *service) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_training_t *training;
  tnk_promise_t *promise;

  options.base_model = base_model();
  promise = settled(tnk_service_create_lora(service, &options));
  training = tnk_promise_training(promise);
  tnk_promise_unref(promise);
  return training;
}
