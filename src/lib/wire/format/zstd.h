/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_ZSTD_H
#define TNK_LIB_WIRE_FORMAT_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Decompression in pieces. The peer controls neither the memory that it takes
 * (windows over 8 MiB are TNK_ETOOBIG) nor the size of the output (`out->max`).
 * Frames from before zstd 0.8 are TNK_EPROTO, even if the library can read
 * them.
 *
 * States: between frames (initially, and where the input may end), inside a
 * frame, failed permanently.
 */
typedef struct {
  struct ZSTD_DCtx_s *ctx; /* created with the first piece */
  const tnk_allocator_t *alloc;
  int inside;       /* a frame has begun and not ended */
  int is_skippable; /* the frame is a skippable one */
  size_t n_head;    /* received bytes of its beginning, up to HEAD_SIZE */
  int seen;         /* at least one frame has ended */
  int err;
} tnk__unzstd_t;

void tnk__unzstd_init(tnk__unzstd_t *unzstd, const tnk_allocator_t *alloc);
void tnk__unzstd_deinit(tnk__unzstd_t *unzstd);
/* Decompress the next piece and append the result to `out`. Returns TNK_OK,
 * TNK_EPROTO, TNK_ENOMEM, or TNK_ETOOBIG if `out` would exceed its limit. The
 * first failure is kept. */
int tnk__unzstd_feed(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n);
/* The same, but stop when `out` has reached its limit. *used receives the
 * number of bytes read. If `out` was filled, more output may follow, even
 * without more input. */
int tnk__unzstd_some(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used);
/* End the input: TNK_EPROTO unless it consisted of complete frames, at least
 * one. */
int tnk__unzstd_finish(const tnk__unzstd_t *unzstd);

/*
 * Compression in pieces, to one frame of level 3 with its size in the header.
 * It may run on another thread. Initialize it with {0}. The first frame creates
 * zstd's context of some MiB, which is reused for later frames.
 */
typedef struct {
  struct ZSTD_CCtx_s *ctx;
} tnk__zstd_t;

void tnk__zstd_deinit(tnk__zstd_t *zstd);
/* Begin a frame of n bytes, even if the previous frame was not ended. The
 * allocator must always be the same. Returns TNK_OK, TNK_ENOMEM or
 * TNK_EINTERNAL. */
int tnk__zstd_begin(tnk__zstd_t *zstd, const tnk_allocator_t *alloc, size_t n);
/* Compress the next piece of the frame and append the available output to
 * `out`. With `is_last` all output is appended. Returns TNK_OK or the error
 * kept in `out`. */
int tnk__zstd_feed(tnk__zstd_t *zstd, tnk__buf_t *out, const void *data,
                   size_t n, int is_last);

#endif
