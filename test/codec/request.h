/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_REQUEST_H
#define TNK_TEST_CODEC_REQUEST_H

#include "lib/base/buf.h"
#include "lib/wire/message/fwdbwd.h"
#include "support/test.h"
#include "tnk/error.h"

/* The whole request of a pass, in one piece. */
static inline void write_request(tnk__buf_t *out,
                                 const tnk__fwdbwd_t *request) {
  tnk__fwdbwd_writer_t writer;
  uint8_t *to;

  CHECK_INT(tnk__fwdbwd_begin(&writer, request), TNK_OK);
  to = tnk__buf_reserve(out, writer.len);
  CHECK(to != NULL);
  CHECK_INT(tnk__fwdbwd_piece(&writer, 0, to, writer.len), writer.len);
  out->len += writer.len;
}

#endif
