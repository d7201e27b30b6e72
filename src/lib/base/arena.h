#ifndef TNK_LIB_BASE_ARENA_H
#define TNK_LIB_BASE_ARENA_H

#include <stddef.h>

#include "tnk/common.h"

/*
 * Memory that is freed all at once: what one operation or one result needs.
 * Blocks are aligned for any type.
 */
typedef struct tnk__arena_block tnk__arena_block_t;

typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_block_t *blocks; /* newest first */
  size_t total;               /* bytes asked of the allocator */
  size_t max;                 /* ceiling of total */
  size_t first;               /* what the first block should hold; 0: little */
} tnk__arena_t;

void tnk__arena_init(tnk__arena_t *arena, const tnk_allocator_t *alloc,
                     size_t max);
/* Say before the first piece how much all of them will take, about: one block
 * is made for that. A claim that is large is believed in part. */
void tnk__arena_expect(tnk__arena_t *arena, size_t size);
void tnk__arena_deinit(tnk__arena_t *arena);
/* The same for one that has held secrets: all of it is wiped. */
void tnk__arena_deinit_secret(tnk__arena_t *arena);
/* Allocate memory that is not zeroed; NULL when there is none or the ceiling is
 * reached. */
void *tnk__arena_alloc(tnk__arena_t *arena, size_t size);
void *tnk__arena_calloc(tnk__arena_t *arena, size_t n, size_t size);
void *tnk__arena_copy(tnk__arena_t *arena, const void *data, size_t size);
char *tnk__arena_strdup(tnk__arena_t *arena, const char *text);
char *tnk__arena_strndup(tnk__arena_t *arena, const char *text, size_t n);

#endif
