/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "tnk/error.h"

enum { MAX_OUT = 8 << 20 };

static void check_write(const uint8_t *data, size_t size) {
  tnk__buf_t text, back;

  tnk__buf_init(&text, tnk__allocator_default(), MAX_OUT);
  tnk__buf_init(&back, tnk__allocator_default(), MAX_OUT);
  tnk__base64_write(&text, data, size);
  FUZZ_CHECK(text.err == TNK_OK);
  FUZZ_CHECK(tnk__base64_read(&back, (const char *)text.data, text.len) ==
             TNK_OK);
  FUZZ_CHECK(back.len == size);
  FUZZ_CHECK(size == 0 || memcmp(back.data, data, size) == 0);
  tnk__buf_deinit(&text);
  tnk__buf_deinit(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__buf_t out;
  int err;

  if (size > MAX_OUT / 2)
    return 0;
  tnk__buf_init(&out, tnk__allocator_default(), MAX_OUT);
  err = tnk__base64_read(&out, (const char *)data, size);
  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO);
  tnk__buf_deinit(&out);
  check_write(data, size);
  return 0;
}
