#ifndef TNK_BENCH_MEASURE_H
#define TNK_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

/* CPU time, memory, and how long a loop was busy at a stretch. */

static inline double measure_cpu_s(void) {
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static inline long measure_rss_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long pages = 0;

  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
    pages = 0;
  if (file != NULL)
    fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The most it ever was. Not from getrusage(), which remembers the parent. */
static inline long measure_peak_kib(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[128];
  long kib = 0;

  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    if (strncmp(line, "VmHWM:", 6) == 0)
      kib = strtol(line + 6, NULL, 10);
  if (file != NULL)
    fclose(file);
  return kib;
}

typedef struct {
  uv_check_t check;
  uv_prepare_t prepare;
  uint64_t woke_ns;
  uint64_t stall_ns;
} measure_stall_t;

/* The loop has come back from waiting, and is about to wait again. */
static inline void measure_on_check(uv_check_t *check) {
  ((measure_stall_t *)check->data)->woke_ns = uv_hrtime();
}

static inline void measure_on_prepare(uv_prepare_t *prepare) {
  measure_stall_t *stall = prepare->data;
  uint64_t busy = uv_hrtime() - stall->woke_ns;

  if (stall->woke_ns != 0 && busy > stall->stall_ns)
    stall->stall_ns = busy;
}

static inline void measure_stall_start(measure_stall_t *stall,
                                       uv_loop_t *loop) {
  uv_check_init(loop, &stall->check);
  uv_prepare_init(loop, &stall->prepare);
  stall->check.data = stall->prepare.data = stall;
  stall->stall_ns = 0;
  stall->woke_ns = uv_hrtime();
  uv_check_start(&stall->check, measure_on_check);
  uv_prepare_start(&stall->prepare, measure_on_prepare);
}

/* In milliseconds. */
static inline double measure_stall_stop(measure_stall_t *stall) {
  uv_close((uv_handle_t *)&stall->check, NULL);
  uv_close((uv_handle_t *)&stall->prepare, NULL);
  return (double)stall->stall_ns / 1e6;
}

#endif
