#ifndef TNK_LIB_WIRE_FORMAT_ZSTD_H
#define TNK_LIB_WIRE_FORMAT_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Decompression in pieces. A peer decides neither how much memory it takes
 * (windows over 8 MiB are TNK_ETOOBIG) nor how much comes out (`out->max`).
 * Frames of before zstd 0.8 are TNK_EPROTO, whatever the library could read.
 *
 * States: between frames (as after init, when the input may end), inside a
 * frame, failed for good.
 */
typedef struct {
  struct ZSTD_DCtx_s *ctx; /* made with the first piece */
  const tnk_allocator_t *alloc;
  int inside;       /* a frame has begun and not ended */
  int is_skippable; /* it is one to be skipped */
  size_t n_head;    /* bytes of its beginning that have come, up to HEAD_SIZE */
  int seen;         /* at least one frame has ended */
  int err;
} tnk__unzstd_t;

void tnk__unzstd_init(tnk__unzstd_t *unzstd, const tnk_allocator_t *alloc);
void tnk__unzstd_deinit(tnk__unzstd_t *unzstd);
/* Append to `out` what the next piece unpacks to. TNK_OK, TNK_EPROTO,
 * TNK_ENOMEM, or TNK_ETOOBIG when `out` would pass its ceiling; the first
 * failure stays. */
int tnk__unzstd_feed(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n);
/* The same, but stop when `out` has reached its ceiling; *used receives how
 * much was read. While `out` was filled there may be more, even of nothing. */
int tnk__unzstd_some(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used);
/* The input is over: TNK_EPROTO unless it held whole frames, at least one. */
int tnk__unzstd_finish(const tnk__unzstd_t *unzstd);

/*
 * Compression in pieces, to one frame of level 3 with its size in the header.
 * It may run on another thread. {0} at first; what zstd works with is made by
 * the first frame, some MiB, and stays for the frames that follow.
 */
typedef struct {
  struct ZSTD_CCtx_s *ctx;
} tnk__zstd_t;

void tnk__zstd_deinit(tnk__zstd_t *zstd);
/* Begin a frame of n bytes, whether one before was ended or not. The allocator
 * must be the same each time. TNK_OK, TNK_ENOMEM, TNK_EINTERNAL. */
int tnk__zstd_begin(tnk__zstd_t *zstd, const tnk_allocator_t *alloc, size_t n);
/* Append to `out` what there is of the frame after the next piece of it; all,
 * when it is the last. TNK_OK or what stuck to `out`. */
int tnk__zstd_feed(tnk__zstd_t *zstd, tnk__buf_t *out, const void *data,
                   size_t n, int is_last);

#endif
