/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_ALLOC_H
#define TNK_LIB_BASE_ALLOC_H

#include <stddef.h>

#include "tnk/common.h"

/* The allocator that calls malloc and its family. */
const tnk_allocator_t *tnk__allocator_default(void);

/* These functions return NULL if memory is exhausted or a size overflows. Size
 * 0 returns a pointer that can be freed. */
void *tnk__malloc(const tnk_allocator_t *alloc, size_t size);
void *tnk__calloc(const tnk_allocator_t *alloc, size_t n, size_t size);
void *tnk__realloc(const tnk_allocator_t *alloc, void *ptr, size_t size);
/* Allocate n * size bytes. The product is checked. */
void *tnk__alloc_array(const tnk_allocator_t *alloc, size_t n, size_t size);
char *tnk__strdup(const tnk_allocator_t *alloc, const char *text);
char *tnk__strndup(const tnk_allocator_t *alloc, const char *text, size_t n);
/* Free memory of this allocator. NULL does nothing. */
void tnk__free(const tnk_allocator_t *alloc, void *ptr);
/* Overwrite memory with zeros. The compiler cannot remove this. */
void tnk__wipe(void *data, size_t n);
/* Wipe a secret, then free it. */
void tnk__free_secret(const tnk_allocator_t *alloc, char *text);

#define tnk__container_of(ptr, type, member)                                   \
  ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define tnk__container_of_const(ptr, type, member)                             \
  ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

#endif
