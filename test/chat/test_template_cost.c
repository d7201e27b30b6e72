/* SPDX-License-Identifier: MIT */
/* What templates pay for, and what they do. */
#include "chat/cost.h"
#include "support/test.h"

#include <stdlib.h>

static void check_all(size_t size, unsigned times) {
  static cost_ops_t ops;
  char text[700];
  tnk__heap_t heap;
  tnk__value_t variables;
  size_t n_run = 0;
  cost_t cost;

  cost_all(&ops);
  CHECK(ops.n > 150 && ops.n < COST_MAX_OPS);
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)256 << 20);
  variables = cost_variables(&heap, size);
  for (size_t i = 0; i < ops.n; i++)
    for (unsigned self = 0; self < COST_VALUES; self++)
      for (unsigned way = 0; way < COST_CASES; way++) {
        if (cost_case(text, sizeof(text), &ops.items[i], self, way) == 0)
          continue;
        cost = cost_median(text, variables, &heap, size, times,
                           (uint64_t)40 * 1000 * 1000);
        n_run += cost.paid > 0;
        if (!cost_is_paid(&cost))
          test_fail(__FILE__, __LINE__, "%s of %zu: %llu paid, %llu counted",
                    text, size, (unsigned long long)cost.paid,
                    (unsigned long long)cost.counted);
      }
  CHECK(n_run > 10000);
  tnk__heap_deinit(&heap);
}

/* Sanitizers, which have TNK_TEST_STRETCH, see with smaller values and in fewer
 * calls what they see with many. The prices are those of the plain run. */
static unsigned many(unsigned plain, unsigned sanitized) {
  const char *stretch = getenv("TNK_TEST_STRETCH");

  return stretch != NULL && atoi(stretch) > 1 ? sanitized : plain;
}

/* Most of their price is by length. */
TEST_LIMIT(operations_on_large_values_pay_for_their_work, 120) {
  check_all(many(1000, 200), 2);
}

/* Most of their price is by call. */
TEST_LIMIT(operations_on_small_values_pay_for_their_work, 120) {
  check_all(3, many(40, 4));
}
