/*
 *   IDLE --piece() misses--> READING --on_read()--> IDLE
 *   READING --free()--> given up, gone when the pool is done
 *
 * The exchange uses one of two blocks, while the pool may fill the other one.
 */
#include "lib/files/push/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { BLOCK = 512 * 1024, N_BLOCKS = 2 };

typedef struct {
  uint64_t at;
  size_t n; /* 0: empty */
  uint8_t *data;
} block_t;

struct tnk__source {
  tnk__feed_t feed;
  tnk__context_t *context;
  tnk__work_t work;
  void (*on_block)(tnk__source_t *source);
  void *user;
  const char *content;
  uint64_t base; /* start of the range */
  uint64_t end;
  block_t blocks[N_BLOCKS];
  block_t *loading; /* the block that the pool fills, or NULL */
  uint64_t place;
  int is_free; /* freed by the owner while the pool reads */
  int err;
  int cause;
  int fd; /* -1: not open yet */
  char path[];
};

static const uint8_t *give(tnk__feed_t *feed, size_t at, size_t *n);

tnk__source_t *tnk__source_new(tnk__context_t *context, const char *dir,
                               const char *name, const char *content,
                               void (*on_block)(tnk__source_t *source),
                               void *user) {
  const size_t n_path = strlen(dir) + strlen(name) + 2;
  const size_t n_blocks = content != NULL ? 0 : (size_t)BLOCK * N_BLOCKS;
  tnk__source_t *source =
      tnk__malloc(&context->alloc, sizeof(*source) + n_path + n_blocks);

  if (source == NULL)
    return NULL;
  memset(source, 0, sizeof(*source));
  source->context = context;
  source->on_block = on_block;
  source->user = user;
  source->content = content;
  source->feed.piece = give;
  source->fd = -1;
  snprintf(source->path, n_path, "%s/%s", dir, name);
  for (size_t i = 0; i < N_BLOCKS && content == NULL; i++)
    source->blocks[i].data = (uint8_t *)source->path + n_path + i * BLOCK;
  return source;
}

static void dispose(tnk__source_t *source) {
  if (source->fd >= 0)
    close(source->fd);
  tnk__free(&source->context->alloc, source);
}

void tnk__source_free(tnk__source_t *source) {
  if (source == NULL)
    return;
  source->is_free = 1;
  if (source->loading == NULL)
    dispose(source);
}

void *tnk__source_user(const tnk__source_t *source) {
  return source->user;
}

uint64_t tnk__source_place(const tnk__source_t *source) {
  return source->place;
}

int tnk__source_err(const tnk__source_t *source, int *cause) {
  *cause = source->cause;
  return source->err;
}

tnk__feed_t *tnk__source_feed(tnk__source_t *source, uint64_t at, uint64_t n) {
  source->base = at;
  source->end = at + n;
  source->feed.len = (size_t)n;
  return &source->feed;
}

/* ---- In the pool ---- */

static void fill(tnk__work_t *work) {
  tnk__source_t *source = tnk__container_of(work, tnk__source_t, work);
  block_t *block = source->loading;
  ssize_t n = 1;

  if (source->fd < 0)
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC);
  while (source->fd >= 0 && block->n < BLOCK && n > 0) {
    n = pread(source->fd, block->data + block->n, BLOCK - block->n,
              (off_t)(block->at + block->n));
    if (n > 0)
      block->n += (size_t)n;
  }
  if (source->fd < 0 || n < 0)
    source->cause = -errno;
}

/* ---- On the loop ---- */

static void on_read(tnk__work_t *work) {
  tnk__source_t *source = tnk__container_of(work, tnk__source_t, work);
  block_t *block = source->loading;

  source->loading = NULL;
  if (source->is_free) {
    dispose(source);
    return;
  }
  if (source->cause != 0 || (block->n == 0 && block->at < source->end))
    source->err = TNK_EFILE;
  source->place = block->at + block->n;
  source->on_block(source);
}

static void load(tnk__source_t *source, block_t *block, uint64_t at) {
  int err;

  if (source->loading != NULL || source->err != TNK_OK || at >= source->end)
    return;
  block->at = at;
  block->n = 0;
  source->loading = block;
  err = tnk__work_start(source->context, &source->work, fill, on_read);
  if (err != TNK_OK) {
    source->loading = NULL;
    source->err = err;
  }
}

static int has(const tnk__source_t *source, const block_t *block, uint64_t at) {
  return block != source->loading && at >= block->at &&
         at - block->at < block->n;
}

static const uint8_t *give(tnk__feed_t *feed, size_t at, size_t *n) {
  tnk__source_t *source = (tnk__source_t *)(void *)feed;
  const uint64_t place = source->base + at;
  size_t left = feed->len - at;

  if (source->content != NULL) {
    *n = left;
    return (const uint8_t *)source->content + place;
  }
  for (size_t i = 0; i < N_BLOCKS; i++) {
    block_t *block = &source->blocks[i];
    block_t *other = &source->blocks[N_BLOCKS - 1 - i];
    if (!has(source, block, place))
      continue;
    if (!has(source, other, block->at + block->n))
      load(source, other, block->at + block->n);
    *n = (size_t)(block->at + block->n - place);
    *n = *n < left ? *n : left;
    return block->data + (place - block->at);
  }
  load(source, &source->blocks[0], place);
  *n = 0;
  return source->err == TNK_OK ? source->blocks[0].data : NULL;
}
