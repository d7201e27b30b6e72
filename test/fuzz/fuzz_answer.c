/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "lib/wire/message/answer.h"

static void check_message(const char *message) {
  size_t n = message != NULL ? strlen(message) : 0;
  size_t i, step;

  FUZZ_CHECK(n <= TNK__MAX_ERROR_TEXT);
  for (i = 0; i < n; i += step) {
    step = tnk__utf8_char(message + i, n - i);
    FUZZ_CHECK(step > 0 && (uint8_t)message[i] >= 0x20);
  }
}

/* A member more, which nobody knows, and the answer is read another way but
 * means the same. */
static void check_accepted(const tnk__accepted_t *one, int err,
                           tnk__arena_t *arena, const uint8_t *data,
                           size_t size) {
  static const char member[] = "{\"~\":0,";
  tnk__accepted_t other;
  tnk__buf_t buf;
  int other_err;

  if (size < 3 || data[0] != '{' || data[1] != '"')
    return;
  tnk__buf_init(&buf, tnk__allocator_default(), 64 * TNK__MIB);
  tnk__buf_text(&buf, member);
  tnk__buf_append(&buf, data + 1, size - 1);
  FUZZ_CHECK(buf.err == TNK_OK);
  other_err = tnk__accepted_read(&other, arena, buf.data, buf.len);
  FUZZ_CHECK(err == other_err);
  if (err == TNK_OK) {
    FUZZ_CHECK((one->request_id == NULL) == (other.request_id == NULL));
    FUZZ_CHECK(one->request_id == NULL ||
               strcmp(one->request_id, other.request_id) == 0);
    FUZZ_CHECK((one->model_id == NULL) == (other.model_id == NULL));
    FUZZ_CHECK(one->n_sequence_ids == other.n_sequence_ids);
    for (size_t i = 0; i < one->n_sequence_ids; i++)
      FUZZ_CHECK(strcmp(one->sequence_ids[i], other.sequence_ids[i]) == 0);
  }
  tnk__buf_deinit(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__failure_t failure;
  tnk__accepted_t accepted;
  tnk__answer_t answer;
  tnk__arena_t arena;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), 64 * TNK__MIB);
  if (tnk__failure_read(&failure, &arena, data, size) == TNK_OK)
    check_message(failure.message);
  err = tnk__accepted_read(&accepted, &arena, data, size);
  if (err == TNK_OK && accepted.request_id != NULL)
    FUZZ_CHECK(accepted.request_id[0] != '\0');
  check_accepted(&accepted, err, &arena, data, size);
  if (tnk__answer_read(&answer, &arena, data, size) == TNK_OK) {
    FUZZ_CHECK(answer.result != NULL && answer.result_len > 0);
    check_message(answer.kind == TNK__ANSWER_FAILED ? answer.failure.message
                                                    : NULL);
  }
  tnk__arena_deinit(&arena);
  return 0;
}
