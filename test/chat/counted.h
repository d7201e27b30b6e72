/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CHAT_COUNTED_H
#define TNK_TEST_CHAT_COUNTED_H

/*
 * Included in front of every file of the interpreter that is built for counting
 * work. The compiler calls counted.c at every branch; what the C library does
 * in one call is counted here. Units are those of src/chat/jinja/cost.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern uint64_t test_counted;

enum {
  COUNTED_BRANCH = 10, /* and what stands before the next one */
  COUNTED_FORMAT = 3000
};

static inline void *counted_memcpy(void *to, const void *from, size_t n) {
  test_counted += n;
  return memcpy(to, from, n);
}

static inline void *counted_memset(void *to, int c, size_t n) {
  test_counted += n;
  return memset(to, c, n);
}

static inline int counted_memcmp(const void *a, const void *b, size_t n) {
  test_counted += n;
  return memcmp(a, b, n);
}

static inline const void *counted_memchr(const void *in, int c, size_t n) {
  const void *at = memchr(in, c, n);

  test_counted +=
      at != NULL ? (size_t)((const char *)at - (const char *)in) : n;
  return at;
}

#define memcpy(to, from, n) counted_memcpy(to, from, n)
#define memset(to, c, n) counted_memset(to, c, n)
#define memcmp(a, b, n) counted_memcmp(a, b, n)
#define memchr(in, c, n) ((void *)(uintptr_t)counted_memchr(in, c, n))
#define snprintf(...) (test_counted += COUNTED_FORMAT, snprintf(__VA_ARGS__))
#define vsnprintf(...) (test_counted += COUNTED_FORMAT, vsnprintf(__VA_ARGS__))
#define strtod(...) (test_counted += COUNTED_FORMAT, strtod(__VA_ARGS__))

#endif
