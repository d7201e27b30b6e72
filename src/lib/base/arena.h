/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_ARENA_H
#define TNK_LIB_BASE_ARENA_H

#include <stddef.h>

#include "tnk/common.h"

/*
 * Memory that is freed all at once, for one operation or one result. Pieces are
 * aligned for any type.
 */
typedef struct tnk__arena_block tnk__arena_block_t;

typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_block_t *blocks; /* newest first */
  size_t total;               /* bytes requested from the allocator */
  size_t max;                 /* limit of total */
  size_t first;               /* expected size of the first block; 0: small */
} tnk__arena_t;

void tnk__arena_init(tnk__arena_t *arena, const tnk_allocator_t *alloc,
                     size_t max);
/* Announce the approximate total size before the first piece, so that one block
 * is allocated for all. A large claim is only partly honored. */
void tnk__arena_expect(tnk__arena_t *arena, size_t size);
void tnk__arena_deinit(tnk__arena_t *arena);
/* Free an arena that has contained secrets. All of it is wiped. */
void tnk__arena_deinit_secret(tnk__arena_t *arena);
/* Allocate memory, not zeroed. NULL if memory is exhausted or the limit is
 * reached. */
void *tnk__arena_alloc(tnk__arena_t *arena, size_t size);
void *tnk__arena_calloc(tnk__arena_t *arena, size_t n, size_t size);
void *tnk__arena_copy(tnk__arena_t *arena, const void *data, size_t size);
char *tnk__arena_strdup(tnk__arena_t *arena, const char *text);
char *tnk__arena_strndup(tnk__arena_t *arena, const char *text, size_t n);

#endif
