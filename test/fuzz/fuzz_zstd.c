/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/zstd.h"
#include "tnk/error.h"

enum { MAX_OUT = 1 << 20 };

static int unpack(tnk__buf_t *out, const uint8_t *data, size_t size,
                  size_t step) {
  tnk__unzstd_t unzstd;
  size_t i, n;
  int err = TNK_OK;

  tnk__buf_init(out, tnk__allocator_default(), MAX_OUT);
  tnk__unzstd_init(&unzstd, tnk__allocator_default());
  for (i = 0; err == TNK_OK && i < size; i += n) {
    n = size - i < step ? size - i : step;
    err = tnk__unzstd_feed(&unzstd, out, data + i, n);
  }
  if (err == TNK_OK)
    err = tnk__unzstd_finish(&unzstd);
  tnk__unzstd_deinit(&unzstd);
  FUZZ_CHECK(out->len <= MAX_OUT);
  return err;
}

/* One frame, out of two pieces. */
static int pack(tnk__buf_t *out, const uint8_t *data, size_t size) {
  tnk__zstd_t zstd = {0};
  int err = tnk__zstd_begin(&zstd, out->alloc, size);

  if (err == TNK_OK)
    err = tnk__zstd_feed(&zstd, out, data, size / 3, 0);
  if (err == TNK_OK)
    err = tnk__zstd_feed(&zstd, out, data + size / 3, size - size / 3, 1);
  tnk__zstd_deinit(&zstd);
  return err;
}

/* Cutting the input elsewhere changes nothing, and anything can be packed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__buf_t a, b, packed;
  int a_err = unpack(&a, data, size, SIZE_MAX);
  int b_err = unpack(&b, data, size, 3);

  FUZZ_CHECK((a_err == TNK_OK) == (b_err == TNK_OK));
  FUZZ_CHECK(
      a_err != TNK_OK ||
      (a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0)));
  tnk__buf_deinit(&a);
  tnk__buf_deinit(&b);
  tnk__buf_init(&packed, tnk__allocator_default(), 2 * MAX_OUT);
  if (size < MAX_OUT) {
    FUZZ_CHECK(pack(&packed, data, size) == TNK_OK);
    FUZZ_CHECK(unpack(&a, packed.data, packed.len, 7) == TNK_OK);
    FUZZ_CHECK(a.len == size);
    tnk__buf_deinit(&a);
  }
  tnk__buf_deinit(&packed);
  return 0;
}
