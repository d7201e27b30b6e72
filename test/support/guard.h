/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_GUARD_H
#define TNK_TEST_SUPPORT_GUARD_H

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/test.h"

/*
 * A copy of a struct that ends where the memory ends: right behind it is a page
 * that nobody may touch. One byte too far ends the case, also without a
 * sanitizer. Sizes are multiples of a pointer's, so that pointers are aligned.
 */
typedef struct {
  char *pages;
  size_t n_pages;
  void *data;
  size_t size;
} guarded_t;

static inline void guarded_free(guarded_t *guarded) {
  munmap(guarded->pages, guarded->n_pages);
}

/* `size` bytes: those of `from`, as many as there are, and then zeros. */
static inline guarded_t guarded_copy(const void *from, size_t n, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  guarded_t guarded = {.n_pages = 3 * page, .size = size};

  CHECK(size <= 2 * page && n <= size && size % sizeof(void *) == 0);
  guarded.pages = mmap(NULL, guarded.n_pages, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(guarded.pages != MAP_FAILED);
  CHECK_INT(mprotect(guarded.pages + 2 * page, page, PROT_NONE), 0);
  guarded.data = guarded.pages + 2 * page - size;
  memcpy(guarded.data, from, n);
  return guarded;
}

#endif
