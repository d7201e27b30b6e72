/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/http_read.h"
#include "tnk/error.h"

enum { MAX_BODY = 1 << 20, STREAM_STEP = 5 };

typedef struct {
  tnk__response_t response;
  int err;
  int state;
} outcome_t;

static void read_all(outcome_t *out, const uint8_t *data, size_t size,
                     size_t step, int is_head) {
  tnk__http_reader_t reader;
  size_t n;

  tnk__response_init(&out->response, tnk__allocator_default(), MAX_BODY);
  tnk__http_reader_init(&reader, &out->response, is_head);
  out->err = TNK_OK;
  for (size_t i = 0; out->err == TNK_OK && i < size; i += n) {
    n = size - i < step ? size - i : step;
    out->err = tnk__http_reader_feed(&reader, data + i, n);
  }
  if (out->err == TNK_OK)
    out->err = tnk__http_reader_eof(&reader);
  out->state = (int)reader.state;
  FUZZ_CHECK(out->err != TNK_OK || out->state == TNK__HTTP_READ_DONE);
  FUZZ_CHECK(out->response.body.len <= MAX_BODY);
}

/* Streamed, the body is taken out as it comes: in all it is the same. Then it
 * may not be packed, and there is no ceiling of all of it. */
static void check_streamed(const outcome_t *whole, const uint8_t *data,
                           size_t size) {
  tnk__http_reader_t reader;
  tnk__response_t response;
  size_t n, n_taken = 0;
  int err = TNK_OK;

  if (tnk__response_header(&whole->response, "content-encoding") != NULL)
    return;
  tnk__response_init(&response, tnk__allocator_default(), MAX_BODY);
  tnk__http_reader_init(&reader, &response, 0);
  reader.is_streamed = 1;
  for (size_t i = 0; err == TNK_OK && i < size; i += n) {
    n = size - i < STREAM_STEP ? size - i : STREAM_STEP;
    err = tnk__http_reader_feed(&reader, data + i, n);
    if (whole->err == TNK_OK && response.body.len > 0) {
      FUZZ_CHECK(response.body.len <= whole->response.body.len - n_taken);
      FUZZ_CHECK(memcmp(whole->response.body.data + n_taken, response.body.data,
                        response.body.len) == 0);
    }
    n_taken += response.body.len;
    tnk__buf_consume(&response.body, response.body.len);
  }
  if (err == TNK_OK)
    err = tnk__http_reader_eof(&reader);
  FUZZ_CHECK(err == TNK_OK || whole->err != TNK_OK);
  FUZZ_CHECK(whole->err != TNK_OK || n_taken == whole->response.body.len);
  tnk__response_deinit(&response);
}

static void check_headers(const tnk__response_t *a, const tnk__response_t *b) {
  static const char *const names[] = {"content-length", "x-a", "retry-after"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *x = tnk__response_header(a, names[i]);
    const char *y = tnk__response_header(b, names[i]);
    FUZZ_CHECK((x == NULL) == (y == NULL));
    FUZZ_CHECK(x == NULL || strcmp(x, y) == 0);
  }
}

/* Cutting the input elsewhere changes nothing. Which error it is may depend on
 * the cut only where a ceiling and a fault meet. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  outcome_t a, b;

  for (int is_head = 0; is_head < 2; is_head++) {
    read_all(&a, data, size, SIZE_MAX, is_head);
    read_all(&b, data, size, 1, is_head);
    FUZZ_CHECK((a.err == TNK_OK) == (b.err == TNK_OK));
    if (a.err == TNK_OK) {
      FUZZ_CHECK(a.response.status == b.response.status);
      FUZZ_CHECK(a.response.is_keep_alive == b.response.is_keep_alive);
      FUZZ_CHECK(a.response.body.len == b.response.body.len);
      FUZZ_CHECK(a.response.body.len == 0 ||
                 memcmp(a.response.body.data, b.response.body.data,
                        a.response.body.len) == 0);
      check_headers(&a.response, &b.response);
    }
    if (!is_head)
      check_streamed(&a, data, size);
    tnk__response_deinit(&a.response);
    tnk__response_deinit(&b.response);
  }
  return 0;
}
