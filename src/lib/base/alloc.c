/* SPDX-License-Identifier: MIT */
#include "lib/base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *libc_malloc(size_t size, void *user) {
  (void)user;
  return malloc(size);
}

static void *libc_calloc(size_t n, size_t size, void *user) {
  (void)user;
  return calloc(n, size);
}

static void *libc_realloc(void *ptr, size_t size, void *user) {
  (void)user;
  return realloc(ptr, size);
}

static void libc_free(void *ptr, void *user) {
  (void)user;
  free(ptr);
}

static const tnk_allocator_t libc_allocator = {libc_malloc, libc_calloc,
                                               libc_realloc, libc_free, NULL};

const tnk_allocator_t *tnk__allocator_default(void) {
  return &libc_allocator;
}

/* malloc(0) may return NULL, which would look like a lack of memory. The same
 * holds for the next two functions. realloc(p, 0) might also free. */
void *tnk__malloc(const tnk_allocator_t *alloc, size_t size) {
  return alloc->malloc(size > 0 ? size : 1, alloc->user);
}

void *tnk__calloc(const tnk_allocator_t *alloc, size_t n, size_t size) {
  if (n == 0 || size == 0)
    n = size = 1;
  return alloc->calloc(n, size, alloc->user);
}

void *tnk__realloc(const tnk_allocator_t *alloc, void *ptr, size_t size) {
  return alloc->realloc(ptr, size > 0 ? size : 1, alloc->user);
}

void *tnk__alloc_array(const tnk_allocator_t *alloc, size_t n, size_t size) {
  if (size != 0 && n > SIZE_MAX / size)
    return NULL;
  return tnk__malloc(alloc, n * size);
}

char *tnk__strndup(const tnk_allocator_t *alloc, const char *text, size_t n) {
  char *copy = n == SIZE_MAX ? NULL : tnk__malloc(alloc, n + 1);

  if (copy == NULL)
    return NULL;
  memcpy(copy, text, n);
  copy[n] = '\0';
  return copy;
}

char *tnk__strdup(const tnk_allocator_t *alloc, const char *text) {
  return tnk__strndup(alloc, text, strlen(text));
}

void tnk__free(const tnk_allocator_t *alloc, void *ptr) {
  if (ptr != NULL)
    alloc->free(ptr, alloc->user);
}

/* A volatile pointer, so that the compiler cannot remove the call. */
static void *(*const volatile wipe_with)(void *, int, size_t) = memset;

void tnk__wipe(void *data, size_t n) {
  if (n > 0)
    wipe_with(data, 0, n);
}

void tnk__free_secret(const tnk_allocator_t *alloc, char *text) {
  if (text == NULL)
    return;
  /* A secret contains no NUL, so strlen() covers all of it. */
  tnk__wipe(text, strlen(text));
  tnk__free(alloc, text);
}
