/* SPDX-License-Identifier: MIT */
#include "lib/client/train/cargo.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/policy/siphash.h"

/* The buffer of a fed body. Small enough for a turn of the loop and for a CPU
 * cache, large enough to make the cost of system calls negligible. */
enum { PIECE_SIZE = 128 * 1024 };

void tnk__cargo_init(tnk__cargo_t *cargo, const tnk_allocator_t *alloc) {
  *cargo = (tnk__cargo_t){.alloc = alloc};
  tnk__buf_init(&cargo->whole, alloc, TNK__MAX_REQUEST_BODY);
}

void tnk__cargo_clear(tnk__cargo_t *cargo) {
  tnk__buf_deinit(&cargo->whole);
  tnk__free(cargo->alloc, cargo->piece);
  cargo->piece = NULL;
  cargo->state = TNK__CARGO_EMPTY;
}

tnk__buf_t *tnk__cargo_write(tnk__cargo_t *cargo) {
  tnk__buf_init(&cargo->whole, cargo->alloc, TNK__MAX_REQUEST_BODY);
  cargo->is_packed = 0;
  cargo->state = TNK__CARGO_WHOLE;
  return &cargo->whole;
}

static const uint8_t *next_piece(tnk__feed_t *feed, size_t at, size_t *n) {
  tnk__cargo_t *cargo = tnk__container_of(feed, tnk__cargo_t, feed);
  size_t size = feed->len < PIECE_SIZE ? feed->len : PIECE_SIZE;

  if (cargo->piece == NULL)
    cargo->piece = tnk__malloc(cargo->alloc, size);
  if (cargo->piece == NULL)
    return NULL;
  *n = tnk__fwdbwd_piece(&cargo->writer, at, cargo->piece, size);
  return cargo->piece;
}

int tnk__cargo_feed(tnk__cargo_t *cargo, const tnk__fwdbwd_t *request) {
  int err = tnk__fwdbwd_begin(&cargo->writer, request);

  if (err == TNK_OK && cargo->writer.len > TNK__MAX_REQUEST_BODY)
    err = TNK_ETOOBIG;
  if (err != TNK_OK)
    return err;
  cargo->feed.len = cargo->writer.len;
  cargo->feed.piece = next_piece;
  cargo->state = TNK__CARGO_FED;
  return TNK_OK;
}

/* ---- Compression, on a worker thread with the caller's allocator ---- */

static int pack_pieces(tnk__cargo_t *cargo, uint8_t *piece) {
  size_t len = cargo->writer.len;
  size_t at = 0;
  size_t n;
  int err = tnk__zstd_begin(&cargo->zstd, cargo->alloc, len);

  tnk__buf_init(&cargo->whole, cargo->alloc, TNK__MAX_REQUEST_BODY);
  for (; err == TNK_OK && at < len; at += n) {
    n = tnk__fwdbwd_piece(&cargo->writer, at, piece, PIECE_SIZE);
    err = tnk__zstd_feed(&cargo->zstd, &cargo->whole, piece, n, at + n == len);
  }
  return err;
}

static void run(tnk__work_t *work) {
  tnk__cargo_t *cargo = tnk__container_of(work, tnk__cargo_t, work);
  uint8_t *piece = tnk__malloc(cargo->alloc, PIECE_SIZE);

  cargo->err = piece != NULL ? pack_pieces(cargo, piece) : TNK_ENOMEM;
  tnk__free(cargo->alloc, piece);
}

/* One context is kept for the next compression; zeroed, it costs nothing. */
static void give_context(tnk__cargo_t *cargo) {
  if (cargo->shelf->ctx != NULL)
    tnk__zstd_deinit(&cargo->zstd);
  else
    *cargo->shelf = cargo->zstd;
  cargo->zstd.ctx = NULL;
}

static void on_packed(tnk__work_t *work) {
  tnk__cargo_t *cargo = tnk__container_of(work, tnk__cargo_t, work);

  give_context(cargo);
  if (cargo->err != TNK_OK) {
    tnk__buf_deinit(&cargo->whole);
    cargo->state = TNK__CARGO_FED; /* feeding always works */
  } else {
    cargo->is_packed = 1;
    cargo->state = TNK__CARGO_WHOLE;
  }
  cargo->packed(cargo);
}

int tnk__cargo_pack(tnk__cargo_t *cargo, tnk__context_t *context,
                    tnk__zstd_t *shelf, void (*packed)(tnk__cargo_t *self)) {
  int err;

  cargo->packed = packed;
  cargo->shelf = shelf;
  cargo->zstd = *shelf;
  shelf->ctx = NULL;
  err = tnk__work_start(context, &cargo->work, run, on_packed);
  if (err == TNK_OK)
    cargo->state = TNK__CARGO_PACKING;
  else
    give_context(cargo);
  return err;
}

/* ---- Sending ---- */

uint64_t tnk__cargo_mark(tnk__cargo_t *cargo) {
  uint64_t mark[2] = {0, tnk__cargo_len(cargo)};
  size_t at;
  size_t n;

  if (cargo->state != TNK__CARGO_FED)
    return tnk__siphash(mark, cargo->whole.data, cargo->whole.len);
  for (at = 0; at < cargo->feed.len; at += n) {
    const uint8_t *piece = next_piece(&cargo->feed, at, &n);

    if (piece == NULL)
      return 0;
    mark[0] = tnk__siphash(mark, piece, n);
  }
  return mark[0];
}

size_t tnk__cargo_len(const tnk__cargo_t *cargo) {
  return cargo->state == TNK__CARGO_WHOLE ? cargo->whole.len
                                          : cargo->writer.len;
}

void tnk__cargo_load(tnk__cargo_t *cargo, tnk__call_t *call) {
  if (cargo->state == TNK__CARGO_FED) {
    call->request.feed = &cargo->feed;
    return;
  }
  call->request.body = cargo->whole.data;
  call->request.body_len = cargo->whole.len;
  call->request.is_zstd = cargo->is_packed != 0;
}
