/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_PASS_H
#define TNK_TEST_CODEC_PASS_H

#include <math.h>
#include <string.h>

#include "lib/wire/message/pass_result.h"
#include "support/test.h"
#include "tnk/error.h"

static inline tnk_pass_t *from_hex(const char *hex) {
  uint8_t bytes[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), hex);
  tnk_pass_t *pass;

  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), bytes, n, 1),
            TNK_OK);
  return pass;
}

static inline tnk_pass_t *from_json(const char *text) {
  tnk_pass_t *pass;

  CHECK_INT(
      tnk__pass_result_read(&pass, test_allocator(), text, strlen(text), 0),
      TNK_OK);
  return pass;
}

static inline void end(tnk_pass_t *pass) {
  tnk__pass_result_free(test_allocator(), pass);
  CHECK_INT(test_alloc_live(), 0);
}

#endif
