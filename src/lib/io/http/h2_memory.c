/* SPDX-License-Identifier: MIT */
#include "lib/io/http/h2.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/alloc.h"

/*
 * Every request allocates the same sizes of blocks. The blocks for its head are
 * freed at once, the others with its response. Responses arrive in groups, so
 * some blocks are kept for the next requests. Sizes are rounded up to steps;
 * each step has a free list.
 */
enum { STEP = 16, MAX_KEPT = 12 * 1024 };

/* The header of a block: its size while it is allocated, the link of its free
 * list while it is kept. */
typedef struct tnk__h2_block {
  union {
    size_t size;
    struct tnk__h2_block *next;
    max_align_t align;
  } head;
} block_t;

void tnk__h2_memory_init(tnk__h2_memory_t *memory,
                         const tnk_allocator_t *alloc) {
  *memory = (tnk__h2_memory_t){.alloc = alloc};
}

void tnk__h2_memory_deinit(tnk__h2_memory_t *memory) {
  for (size_t i = 0; i < TNK__H2_SIZES; i++) {
    while (memory->kept[i] != NULL) {
      block_t *block = memory->kept[i];
      memory->kept[i] = block->head.next;
      tnk__free(memory->alloc, block);
    }
  }
  memory->n_kept = 0;
}

/* The free list for a size. The result may be out of range. */
static size_t list_of(size_t size) {
  return size > 0 ? (size - 1) / STEP : 0;
}

static void *get(size_t size, void *user) {
  tnk__h2_memory_t *memory = user;
  const size_t i = list_of(size);
  const size_t rounded = i < TNK__H2_SIZES ? (i + 1) * STEP : size;
  block_t *block = i < TNK__H2_SIZES ? memory->kept[i] : NULL;

  if (block != NULL) {
    memory->kept[i] = block->head.next;
    memory->n_kept -= rounded;
  } else if (rounded <= SIZE_MAX - sizeof(*block)) {
    block = tnk__malloc(memory->alloc, sizeof(*block) + rounded);
  }
  if (block == NULL) {
    memory->was_refused = 1;
    return NULL;
  }
  block->head.size = rounded;
  return block + 1;
}

static void put(void *ptr, void *user) {
  tnk__h2_memory_t *memory = user;
  block_t *block = ptr;
  size_t size;
  size_t i;

  if (block == NULL)
    return;
  block--;
  size = block->head.size;
  i = list_of(size);
  tnk__wipe(block + 1, size);
  if (i >= TNK__H2_SIZES || memory->n_kept + size > MAX_KEPT) {
    tnk__free(memory->alloc, block);
    return;
  }
  block->head.next = memory->kept[i];
  memory->kept[i] = block;
  memory->n_kept += size;
}

static void *get_zeroed(size_t n, size_t size, void *user) {
  void *ptr = size == 0 || n <= SIZE_MAX / size ? get(n * size, user) : NULL;

  if (ptr != NULL)
    memset(ptr, 0, n * size);
  return ptr;
}

static void *resize(void *ptr, size_t size, void *user) {
  void *moved = get(size, user);
  const block_t *old = ptr;

  if (moved == NULL || old == NULL)
    return moved;
  old--;
  memcpy(moved, ptr, old->head.size < size ? old->head.size : size);
  put(ptr, user);
  return moved;
}

nghttp2_mem tnk__h2_memory_for_nghttp2(tnk__h2_memory_t *memory) {
  return (nghttp2_mem){memory, get, put, get_zeroed, resize};
}
