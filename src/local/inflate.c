#include "local/inflate.h"

#include <zstd.h>

#include "tnk/error.h"

int local_inflate(tnk__buf_t *out, const uint8_t *data, size_t n) {
  ZSTD_inBuffer in = {data, n, 0};
  ZSTD_DCtx *dctx = ZSTD_createDCtx();
  size_t room = ZSTD_DStreamOutSize();
  size_t left = 1;
  size_t before;
  size_t n_out;

  if (dctx == NULL)
    return TNK_ENOMEM;
  do {
    ZSTD_outBuffer to = {tnk__buf_reserve(out, room), room, 0};

    if (to.dst == NULL)
      break;
    before = in.pos;
    left = ZSTD_decompressStream(dctx, &to, &in);
    if (ZSTD_isError(left))
      break;
    n_out = to.pos;
    out->len += n_out;
  } while (in.pos < in.size || (left > 0 && (n_out > 0 || in.pos > before)));
  ZSTD_freeDCtx(dctx);
  if (out->err != TNK_OK)
    return out->err;
  /* A frame that stops in the middle is as bad as a damaged one. */
  return ZSTD_isError(left) || left != 0 ? TNK_EPROTO : TNK_OK;
}
