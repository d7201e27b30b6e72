/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_SPY_H
#define TNK_TEST_SUPPORT_SPY_H

#include <string.h>

#include "support/test.h"

/*
 * An allocator that looks whether a secret is in what it is given back. Its
 * blocks are those of test_allocator(), zeroed, with their size in front.
 */
static const char *spy_secret;
static size_t spy_n_leaks;
static size_t spy_n_looks;

static inline void spy_look(const void *ptr) {
  const size_t n = strlen(spy_secret);
  const size_t *block = (const size_t *)ptr - 2;
  const char *text = ptr;

  spy_n_looks++;
  for (size_t i = 0; i + n <= block[0]; i++)
    spy_n_leaks += memcmp(text + i, spy_secret, n) == 0;
}

static inline void *spy_malloc(size_t size, void *user) {
  const tnk_allocator_t *real = user;
  size_t *block = real->malloc(size + 2 * sizeof(size_t), real->user);

  if (block == NULL)
    return NULL;
  block[0] = size;
  memset(block + 2, 0, size);
  return block + 2;
}

static inline void *spy_calloc(size_t n, size_t size, void *user) {
  return spy_malloc(n * size, user);
}

static inline void spy_free(void *ptr, void *user) {
  const tnk_allocator_t *real = user;

  if (ptr == NULL)
    return;
  spy_look(ptr);
  real->free((size_t *)ptr - 2, real->user);
}

static inline void *spy_realloc(void *ptr, size_t size, void *user) {
  void *to = spy_malloc(size, user);

  if (ptr != NULL && to != NULL) {
    const size_t n = ((size_t *)ptr - 2)[0];

    memcpy(to, ptr, n < size ? n : size);
    spy_free(ptr, user);
  }
  return to;
}

/* Look for this one from here on. */
static inline tnk_allocator_t spy_on(const char *secret) {
  spy_secret = secret;
  spy_n_leaks = spy_n_looks = 0;
  return (tnk_allocator_t){spy_malloc, spy_calloc, spy_realloc, spy_free,
                           (void *)(uintptr_t)test_allocator()};
}

#endif
