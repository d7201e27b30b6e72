#ifndef TNK_TEST_FUZZ_FUZZ_H
#define TNK_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * A target is one function, as libFuzzer calls it. Built with
 * -Dfuzzing=libfuzzer it is a fuzzer; else it is linked with replay.c, which
 * feeds it the corpus and small changes of it, as a test.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise of the code under test, also with assertions off. */
#define FUZZ_CHECK(cond)                                                       \
  do {                                                                         \
    if (!(cond))                                                               \
      abort();                                                                 \
  } while (0)

#endif
