/* SPDX-License-Identifier: MIT */
/* The counter of work, which is not counted itself. */
#include <stdint.h>

#include "counted.h"

uint64_t test_counted;

void __sanitizer_cov_trace_pc(void);
void __wrap___sanitizer_cov_trace_pc(void);

void __wrap___sanitizer_cov_trace_pc(void) {
  test_counted += COUNTED_BRANCH;
}

/* libFuzzer has one of this name, so that its calls are wrapped there. */
#ifndef COUNTED_WRAPS
void __sanitizer_cov_trace_pc(void) {
  test_counted += COUNTED_BRANCH;
}
#endif
