/* SPDX-License-Identifier: MIT */
/*
 * What a collector answers, and lists in variables and a header traceparent,
 * which come from others as well. The first byte selects one.
 */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/observe/traceparent.h"
#include "lib/otlp/response.h"
#include "lib/otlp/settings.h"
#include "tnk/error.h"

static void check_response(const uint8_t *data, size_t size) {
  tnk__otlp_response_t response, again;
  uint8_t *copy = malloc(size > 0 ? size : 1);
  int err;

  FUZZ_CHECK(copy != NULL);
  if (size > 0)
    memcpy(copy, data, size);
  err = tnk__otlp_response_read(&response, copy, size);
  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO);
  if (err == TNK_OK) {
    FUZZ_CHECK(response.n_rejected >= 0);
    FUZZ_CHECK(response.n_message == 0 ||
               (response.message >= copy &&
                response.message + response.n_message <= copy + size));
    /* Reading depends on the bytes alone. */
    FUZZ_CHECK(tnk__otlp_response_read(&again, copy, size) == TNK_OK &&
               again.n_rejected == response.n_rejected);
  }
  free(copy);
}

static void check_pairs(const char *text) {
  tnk__arena_t arena;
  tnk_pair_t *pairs;
  size_t n;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  err = tnk__otlp_pairs_read(&pairs, &n, &arena, text);
  FUZZ_CHECK(err == TNK_OK || err == TNK_EINVAL || err == TNK_ENOMEM);
  for (size_t i = 0; err == TNK_OK && i < n; i++) {
    FUZZ_CHECK(pairs[i].name[0] != '\0' && pairs[i].value != NULL);
    FUZZ_CHECK(strlen(pairs[i].name) + strlen(pairs[i].value) <= strlen(text));
  }
  tnk__arena_deinit(&arena);
}

/* A header that is read can be written, and is then read as the same. */
static void check_traceparent(const char *text) {
  tnk__traceparent_t trace, again;
  char out[TNK__TRACEPARENT + 1];

  if (!tnk__traceparent_read(&trace, text))
    return;
  FUZZ_CHECK(strlen(trace.trace_id) == 32 && strlen(trace.span_id) == 16 &&
             strlen(trace.flags) == 2);
  tnk__traceparent_write(&trace, 1, out);
  FUZZ_CHECK(tnk__traceparent_read(&again, out));
  FUZZ_CHECK(strcmp(again.trace_id, trace.trace_id) == 0);
  FUZZ_CHECK(strcmp(again.span_id, "0000000000000001") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text;

  if (size == 0)
    return 0;
  text =
      tnk__strndup(tnk__allocator_default(), (const char *)data + 1, size - 1);
  FUZZ_CHECK(text != NULL);
  switch (data[0] % 3) {
  case 0:
    check_response(data + 1, size - 1);
    break;
  case 1:
    check_pairs(text);
    break;
  default:
    check_traceparent(text);
    break;
  }
  tnk__free(tnk__allocator_default(), text);
  return 0;
}
