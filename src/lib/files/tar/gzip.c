#include "lib/files/tar/gzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* The largest window, and a gzip header is required. */
enum { WINDOW_BITS = 15 + 16 };

static voidpf hook_alloc(voidpf user, uInt n, uInt size) {
  return tnk__alloc_array(user, n, size);
}

static void hook_free(voidpf user, voidpf ptr) {
  tnk__free(user, ptr);
}

void tnk__gunzip_init(tnk__gunzip_t *gunzip, const tnk_allocator_t *alloc) {
  *gunzip = (tnk__gunzip_t){.alloc = alloc};
}

void tnk__gunzip_deinit(tnk__gunzip_t *gunzip) {
  if (gunzip->stream != NULL)
    inflateEnd(gunzip->stream);
  tnk__free(gunzip->alloc, gunzip->stream);
  gunzip->stream = NULL;
}

static int make_stream(tnk__gunzip_t *gunzip) {
  /* zlib passes `opaque` through unchanged; it is never written through. */
  union {
    const tnk_allocator_t *in;
    void *out;
  } opaque = {.in = gunzip->alloc};
  z_stream *stream;
  int ret;

  if (gunzip->stream != NULL)
    return TNK_OK;
  stream = tnk__calloc(gunzip->alloc, 1, sizeof(*stream));
  if (stream == NULL)
    return TNK_ENOMEM;
  stream->zalloc = hook_alloc;
  stream->zfree = hook_free;
  stream->opaque = opaque.out;
  ret = inflateInit2(stream, WINDOW_BITS);
  if (ret != Z_OK) {
    tnk__free(gunzip->alloc, stream);
    return ret == Z_MEM_ERROR ? TNK_ENOMEM : TNK_EINTERNAL;
  }
  gunzip->stream = stream;
  return TNK_OK;
}

/* Call zlib once: it stops at the end of the piece, of the space, or of a
 * member. */
static int step(tnk__gunzip_t *gunzip, tnk__buf_t *out, const uint8_t *data,
                size_t n, size_t *used) {
  union {
    const uint8_t *in;
    uint8_t *out;
  } input = {.in = data};
  z_stream *stream = gunzip->stream;
  size_t room = out->max - out->len;
  int ret;

  room = room < UINT_MAX ? room : UINT_MAX;
  n = n < UINT_MAX ? n : UINT_MAX;
  stream->next_out = tnk__buf_reserve(out, room);
  if (stream->next_out == NULL)
    return out->err;
  stream->avail_out = (uInt)room;
  stream->next_in = input.out;
  stream->avail_in = (uInt)n;
  ret = inflate(stream, Z_NO_FLUSH);
  *used += n - stream->avail_in;
  out->len += room - stream->avail_out;
  if (ret == Z_STREAM_END) {
    gunzip->inside = 0;
    gunzip->seen = 1;
    return inflateReset(stream) == Z_OK ? TNK_OK : TNK_EINTERNAL;
  }
  gunzip->inside = 1;
  /* No progress means that the input was empty or no output was pending. */
  if (ret == Z_OK || ret == Z_BUF_ERROR)
    return TNK_OK;
  return ret == Z_MEM_ERROR ? TNK_ENOMEM : TNK_EPROTO;
}

int tnk__gunzip_some(tnk__gunzip_t *gunzip, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used) {
  size_t before;

  *used = 0;
  if (gunzip->err == TNK_OK)
    gunzip->err = out->err;
  if (gunzip->err == TNK_OK)
    gunzip->err = make_stream(gunzip);
  if (gunzip->err != TNK_OK || (n == 0 && !gunzip->inside))
    return gunzip->err;
  do {
    if (out->len == out->max)
      return TNK_OK;
    before = *used;
    gunzip->err =
        step(gunzip, out, (const uint8_t *)data + *used, n - *used, used);
  } while (gunzip->err == TNK_OK && *used<n && * used> before);
  return gunzip->err;
}

int tnk__gunzip_finish(const tnk__gunzip_t *gunzip) {
  if (gunzip->err != TNK_OK)
    return gunzip->err;
  return gunzip->seen && !gunzip->inside ? TNK_OK : TNK_EPROTO;
}
