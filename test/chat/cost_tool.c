/* SPDX-License-Identifier: MIT */
/* What each operation of templates costs at its worst, by what it paid: the
 * work that was counted, and the processor's time. Build it optimized and
 * without sanitizers.
 *
 *     cost_tool [SIZE [TIMES]]
 */
#include "chat/cost.h"

typedef struct {
  char by_count[256], by_time[256];
  double counted, time;
} worst_t;

static void look(worst_t *worst, const char *text, tnk__value_t variables,
                 unsigned times) {
  const cost_t cost =
      cost_of(text, variables, times, (uint64_t)400 * 1000 * 1000);
  const double paid = (double)cost.paid + COST_ONCE;

  if ((double)cost.counted / paid > worst->counted) {
    worst->counted = (double)cost.counted / paid;
    snprintf(worst->by_count, sizeof(worst->by_count), "%.200s", text);
  }
  if (cost.cpu_ns * 10 / paid > worst->time) {
    worst->time = cost.cpu_ns * 10 / paid;
    snprintf(worst->by_time, sizeof(worst->by_time), "%.200s", text);
  }
}

int main(int argc, char **argv) {
  const size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
  const unsigned times = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
  static cost_ops_t ops;
  char text[700];
  tnk__heap_t heap;
  tnk__value_t variables;

  cost_all(&ops);
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)1 << 30);
  variables = cost_variables(&heap, size);
  for (size_t i = 0; i < ops.n; i++) {
    worst_t worst = {.counted = 0};

    for (unsigned self = 0; self < COST_VALUES; self++)
      for (unsigned way = 0; way < COST_CASES; way++)
        if (cost_case(text, sizeof(text), &ops.items[i], self, way) > 0)
          look(&worst, text, variables, times);
    printf("%6.2f %6.2f  %c %-14s %-36s %s\n", worst.counted, worst.time,
           ops.items[i].kind, ops.items[i].name, worst.by_count, worst.by_time);
  }
  tnk__heap_deinit(&heap);
  return 0;
}
