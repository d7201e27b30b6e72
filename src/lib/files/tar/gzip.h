#ifndef TNK_LIB_FILES_TAR_GZIP_H
#define TNK_LIB_FILES_TAR_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Decompression of gzip in pieces, one member after another as `cat` joins
 * them. Checksum and length of each are checked.
 *
 * States: between members (as after init, when the input may end), inside one,
 * failed for good.
 */
typedef struct {
  struct z_stream_s *stream; /* made with the first piece */
  const tnk_allocator_t *alloc;
  int inside; /* a member has begun and not ended */
  int seen;   /* at least one member has ended */
  int err;
} tnk__gunzip_t;

void tnk__gunzip_init(tnk__gunzip_t *gunzip, const tnk_allocator_t *alloc);
void tnk__gunzip_deinit(tnk__gunzip_t *gunzip);
/* Append to `out` what the piece unpacks to, but stop when `out` has reached
 * its ceiling; *used receives how much was read. While `out` was filled there
 * may be more, even of nothing. TNK_OK, TNK_EPROTO, TNK_ENOMEM; the first
 * failure stays. */
int tnk__gunzip_some(tnk__gunzip_t *gunzip, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used);
/* The input is over: TNK_EPROTO unless it held whole members, at least one. */
int tnk__gunzip_finish(const tnk__gunzip_t *gunzip);

#endif
