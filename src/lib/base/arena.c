/* SPDX-License-Identifier: MIT */
/*
 * The first block of the list is the current one, from which pieces are
 * allocated. A block for a single large piece is inserted after it, because the
 * block is full from the start. Pieces never move and are never freed
 * individually.
 */
#include "lib/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Most results fit in the first block. Blocks then double up to a size that
 * needs few calls and wastes little. */
enum { FIRST_BLOCK = 512, LARGEST_STEP = 65536 };

struct tnk__arena_block {
  tnk__arena_block_t *next;
  size_t used;
  size_t cap;
  alignas(max_align_t) unsigned char data[];
};

void tnk__arena_init(tnk__arena_t *arena, const tnk_allocator_t *alloc,
                     size_t max) {
  *arena = (tnk__arena_t){.alloc = alloc, .max = max};
}

void tnk__arena_expect(tnk__arena_t *arena, size_t size) {
  arena->first = size < LARGEST_STEP ? size : LARGEST_STEP;
}

void tnk__arena_deinit(tnk__arena_t *arena) {
  tnk__arena_block_t *block = arena->blocks;

  while (block != NULL) {
    tnk__arena_block_t *next = block->next;
    tnk__free(arena->alloc, block);
    block = next;
  }
  arena->blocks = NULL;
  arena->total = 0;
}

void tnk__arena_deinit_secret(tnk__arena_t *arena) {
  for (tnk__arena_block_t *block = arena->blocks; block != NULL;
       block = block->next)
    tnk__wipe(block->data, block->used);
  tnk__arena_deinit(arena);
}

static size_t next_step(const tnk__arena_t *arena) {
  const size_t first = arena->first > FIRST_BLOCK ? arena->first : FIRST_BLOCK;
  const size_t step = arena->blocks == NULL ? first : arena->blocks->cap * 2;

  return step < LARGEST_STEP ? step : LARGEST_STEP;
}

/* Add a block for at least `size` bytes. A large request gets a separate block
 * after the current one, whose free memory stays in use. */
static tnk__arena_block_t *add_block(tnk__arena_t *arena, size_t size) {
  const size_t left = arena->max - arena->total;
  size_t cap = next_step(arena);
  const int large = size > cap;
  tnk__arena_block_t *block;

  if (large)
    cap = size;
  /* The limit applies to requested bytes, so the block may be smaller than a
   * step. */
  if (cap > left && size <= left)
    cap = left;
  if (cap > left || cap > SIZE_MAX - sizeof(*block))
    return NULL;
  block = tnk__malloc(arena->alloc, sizeof(*block) + cap);
  if (block == NULL)
    return NULL;
  block->used = 0;
  block->cap = cap;
  arena->total += cap;
  if (large && arena->blocks != NULL) {
    block->next = arena->blocks->next;
    arena->blocks->next = block;
  } else {
    block->next = arena->blocks;
    arena->blocks = block;
  }
  return block;
}

void *tnk__arena_alloc(tnk__arena_t *arena, size_t size) {
  const size_t align = alignof(max_align_t);
  tnk__arena_block_t *block = arena->blocks;
  void *ptr;

  if (size > SIZE_MAX - align)
    return NULL;
  /* Every size is a multiple of the alignment, so that the next piece is
   * aligned. */
  size = (size + align - 1) / align * align;
  if (size == 0)
    size = align;
  if (block == NULL || block->cap - block->used < size)
    block = add_block(arena, size);
  if (block == NULL)
    return NULL;
  ptr = block->data + block->used;
  block->used += size;
  return ptr;
}

void *tnk__arena_calloc(tnk__arena_t *arena, size_t n, size_t size) {
  void *ptr;

  if (size != 0 && n > SIZE_MAX / size)
    return NULL;
  ptr = tnk__arena_alloc(arena, n * size);
  if (ptr != NULL)
    memset(ptr, 0, n * size);
  return ptr;
}

void *tnk__arena_copy(tnk__arena_t *arena, const void *data, size_t size) {
  void *ptr = tnk__arena_alloc(arena, size);

  if (ptr != NULL && size > 0)
    memcpy(ptr, data, size);
  return ptr;
}

char *tnk__arena_strndup(tnk__arena_t *arena, const char *text, size_t n) {
  char *copy = n == SIZE_MAX ? NULL : tnk__arena_alloc(arena, n + 1);

  if (copy == NULL)
    return NULL;
  memcpy(copy, text, n);
  copy[n] = '\0';
  return copy;
}

char *tnk__arena_strdup(tnk__arena_t *arena, const char *text) {
  return tnk__arena_strndup(arena, text, strlen(text));
}
