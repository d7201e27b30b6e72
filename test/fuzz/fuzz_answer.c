#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "codec/answer.h"
#include "codec/utf8.h"

static void check_message(const char *message) {
  size_t n = message != NULL ? strlen(message) : 0;
  size_t i, step;

  FUZZ_CHECK(n <= TNK__MAX_ERROR_TEXT);
  for (i = 0; i < n; i += step) {
    step = tnk__utf8_char(message + i, n - i);
    FUZZ_CHECK(step > 0 && (uint8_t)message[i] >= 0x20);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__failure_t failure;
  tnk__accepted_t accepted;
  tnk__answer_t answer;
  tnk__arena_t arena;

  tnk__arena_init(&arena, tnk__allocator_default(), 64 * TNK__MIB);
  if (tnk__failure_read(&failure, &arena, data, size) == TNK_OK)
    check_message(failure.message);
  if (tnk__accepted_read(&accepted, &arena, data, size) == TNK_OK &&
      accepted.request_id != NULL)
    FUZZ_CHECK(accepted.request_id[0] != '\0');
  if (tnk__answer_read(&answer, &arena, data, size) == TNK_OK) {
    FUZZ_CHECK(answer.result != NULL && answer.result_len > 0);
    check_message(answer.kind == TNK__ANSWER_FAILED ? answer.failure.message
                                                    : NULL);
  }
  tnk__arena_deinit(&arena);
  return 0;
}
