/* SPDX-License-Identifier: MIT */
#include "lib/otlp/gzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum {
  GZIP = 16, /* added to the size of the window: write gzip's head and end */
  WINDOW_BITS = 15 + GZIP,
  MEMORY_LEVEL = 8 /* zlib's default */
};

static voidpf take_memory(voidpf user, uInt n, uInt size) {
  return tnk__alloc_array(user, n, size);
}

static void give_memory(voidpf user, voidpf ptr) {
  tnk__free(user, ptr);
}

int tnk__otlp_gzip(tnk__buf_t *buf) {
  z_stream stream;
  tnk_allocator_t alloc = *buf->alloc;
  tnk__buf_t out;
  uLong bound;
  int ret;

  if (buf->len > UINT_MAX / 2)
    return TNK_ENOMEM;
  memset(&stream, 0, sizeof(stream));
  stream.zalloc = take_memory;
  stream.zfree = give_memory;
  stream.opaque = &alloc;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return TNK_ENOMEM;
  tnk__buf_init(&out, buf->alloc, buf->max);
  bound = deflateBound(&stream, (uLong)buf->len);
  stream.next_in = buf->data;
  stream.avail_in = (uInt)buf->len;
  stream.next_out = tnk__buf_reserve(&out, bound);
  stream.avail_out = (uInt)bound;
  ret = stream.next_out != NULL ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
  out.len = stream.total_out;
  (void)deflateEnd(&stream);
  if (ret != Z_STREAM_END) {
    tnk__buf_deinit(&out);
    return TNK_ENOMEM;
  }
  tnk__buf_deinit(buf);
  *buf = out;
  return TNK_OK;
}
