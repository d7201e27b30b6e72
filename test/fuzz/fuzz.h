/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_FUZZ_FUZZ_H
#define TNK_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Which of `names`, up to a NULL, an input is for: the one that its byte says,
 * unless the environment has a variable that names one for all inputs. What is
 * none is the number of names. */
static inline unsigned fuzz_pick(const char *variable, const char *const *names,
                                 unsigned byte) {
  const char *pinned = getenv(variable);
  unsigned i = 0;

  while (names[i] != NULL &&
         (pinned != NULL ? strcmp(names[i], pinned) != 0 : i != byte))
    i++;
  if (pinned != NULL && names[i] == NULL) {
    fprintf(stderr, "%s=%s: no such name\n", variable, pinned);
    abort();
  }
  return i;
}

#endif
