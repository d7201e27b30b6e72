#ifndef TNK_LIB_FILES_TAR_GZIP_H
#define TNK_LIB_FILES_TAR_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Decompresses gzip piece by piece, also several members in a row, as `cat`
 * joins them. Checksum and length of each member are checked.
 *
 * States: between members (initially; the input may end here), inside a member,
 * failed for good.
 */
typedef struct {
  struct z_stream_s *stream; /* allocated with the first piece */
  const tnk_allocator_t *alloc;
  int inside; /* inside a member */
  int seen;   /* at least one member is complete */
  int err;
} tnk__gunzip_t;

void tnk__gunzip_init(tnk__gunzip_t *gunzip, const tnk_allocator_t *alloc);
void tnk__gunzip_deinit(tnk__gunzip_t *gunzip);
/* Unpack a piece to `out` until `out` reaches its limit. *used receives the
 * number of bytes read. If `out` became full, call it again, even with an empty
 * piece. Returns TNK_OK, TNK_EPROTO or TNK_ENOMEM; the first error is kept. */
int tnk__gunzip_some(tnk__gunzip_t *gunzip, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used);
/* End of the input. Returns TNK_EPROTO unless it consisted of one or more whole
 * members. */
int tnk__gunzip_finish(const tnk__gunzip_t *gunzip);

#endif
