/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_PACKED_H
#define TNK_TEST_CODEC_PACKED_H

#include "lib/wire/format/zstd.h"
#include "support/test.h"

/* One frame, out of pieces of `step` bytes. Its error sticks to `out`. */
static inline int pack_steps(tnk__zstd_t *zstd, tnk__buf_t *out,
                             const void *data, size_t n, size_t step) {
  size_t at = 0;
  size_t len;

  out->err = tnk__zstd_begin(zstd, test_allocator(), n);
  do {
    len = n - at < step ? n - at : step;
    tnk__zstd_feed(zstd, out, (const char *)data + at, len, at + len == n);
    at += len;
  } while (at < n);
  return out->err;
}

static inline int pack_frame(tnk__buf_t *out, const void *data, size_t n) {
  tnk__zstd_t zstd = {0};
  int err = pack_steps(&zstd, out, data, n, n);

  tnk__zstd_deinit(&zstd);
  return err;
}

#endif
