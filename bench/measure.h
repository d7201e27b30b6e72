/* SPDX-License-Identifier: MIT */
#ifndef TNK_BENCH_MEASURE_H
#define TNK_BENCH_MEASURE_H

#include <tnk/tnk.h>
#include <uv.h>

/* CPU time of the process. */
double measure_cpu_s(void);
/* Of this thread: what it did itself, however busy the machine is. */
double measure_thread_cpu_ms(void);

/* Memory in use now. */
long measure_rss_kib(void);
/* The most that was in use since the last reset. */
long measure_peak_kib(void);
void measure_reset_peak(void);

/* malloc that counts what is live. */
typedef struct {
  tnk_allocator_t allocator;
  size_t n_bytes;
  size_t n_blocks;
} measure_memory_t;

void measure_memory_init(measure_memory_t *memory);

/*
 * The longest turn of a loop, without the time that it slept: what any other
 * timer on it would have been late. In wall time, and in the thread's CPU time,
 * which does not count that another process had the core.
 */
typedef struct {
  uv_prepare_t prepare;
  uint64_t from_ns;
  uint64_t idle_ns;
  double from_cpu_ms;
  double wall_ms;
  double cpu_ms;
} measure_stall_t;

/* Before the loop is used by anybody else. */
void measure_stall_init(measure_stall_t *stall, uv_loop_t *loop);
/* Forget what was so far. */
void measure_stall_begin(measure_stall_t *stall);
void measure_stall_close(measure_stall_t *stall);

/* Clients of the server that TINKER_BASE_URL names; NULL after a message on
 * stderr. `options` may be NULL. */
tnk_service_t *measure_open(uv_loop_t *loop,
                            const tnk_service_options_t *options);
tnk_sampling_t *measure_sampling(tnk_service_t *service);
tnk_training_t *measure_training(tnk_service_t *service);

#endif
