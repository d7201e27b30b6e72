/* SPDX-License-Identifier: MIT */
/* Operations of templates inside of each other, with values of every kind:
 * what was counted is no more than what was paid (chat/cost.h). The first two
 * bytes are the size of the values and how often the expression is evaluated;
 * every three bytes behind them are an operation, a value and its arguments.
 * FUZZ_COST=1 prints each expression that sets a new record. */
#include "chat/cost.h"

#include "fuzz.h"

enum { MAX_NESTED = 4, MAX_TEXT = 700 };

static void report(const char *text, const cost_t *cost) {
  static double record;
  const double ratio = (double)cost->counted / ((double)cost->paid + COST_ONCE);

  if (getenv("FUZZ_COST") == NULL || ratio <= record)
    return;
  record = ratio;
  fprintf(stderr, "%.2f counted for each unit that was paid: %s\n", ratio,
          text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static cost_ops_t ops;
  char self[MAX_TEXT] = "";
  char text[MAX_TEXT] = "";
  tnk__heap_t heap;
  tnk__value_t variables;
  size_t length;
  cost_t cost;

  if (size < 5)
    return 0;
  if (ops.n == 0)
    cost_all(&ops);
  length = (size_t)data[0] * data[0] / 16;
  for (size_t i = 2; i + 2 < size && i < 2 + 3 * MAX_NESTED; i += 3) {
    const cost_op_t *op =
        &ops.items[(data[i] + (data[i + 2] > 0x7f ? 256u : 0u)) % ops.n];

    if (text[0] != '\0')
      memcpy(self, text, sizeof(self));
    else
      snprintf(self, sizeof(self), "v%u", data[i + 1] % COST_VALUES);
    if (cost_nest(text, sizeof(text), op, self, data[i + 1],
                  (data[i + 2] & 0x7f) % COST_CASES) == 0)
      return 0;
  }
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)64 << 20);
  variables = cost_variables(&heap, length);
  cost = cost_median(text, variables, &heap, length, 1 + data[1] % 64,
                     (uint64_t)100 * 1000 * 1000);
  report(text, &cost);
  if (!cost_is_paid(&cost)) {
    fprintf(stderr, "%s: %llu paid, %llu counted\n", text,
            (unsigned long long)cost.paid, (unsigned long long)cost.counted);
    abort();
  }
  tnk__heap_deinit(&heap);
  return 0;
}
