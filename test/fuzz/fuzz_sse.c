/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/stream/sse.h"
#include "tnk/error.h"

enum { MAX_EVENT = 64 };

typedef struct {
  uint64_t hash; /* of what was seen, in order */
  size_t n;
  int err;
  int end;
} seen_t;

static void add(seen_t *seen, const void *data, size_t n) {
  for (size_t i = 0; i < n; i++)
    seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static seen_t read_by(const uint8_t *data, size_t size, size_t step,
                      size_t max) {
  seen_t seen = {0};
  tnk__sse_event_t event;
  tnk__sse_t sse;

  tnk__sse_init(&sse, tnk__allocator_default(), max);
  for (size_t i = 0; i < size && seen.err == TNK_OK; i += step) {
    const uint8_t *at = data + i;
    const uint8_t *end = size - i < step ? data + size : at + step;

    while ((seen.err = tnk__sse_next(&sse, &at, end, &event)) == 1) {
      FUZZ_CHECK(event.n <= max && event.data[event.n] == '\0');
      FUZZ_CHECK(event.type[0] != '\0');
      FUZZ_CHECK(memchr(event.data, '\r', event.n) == NULL);
      add(&seen, event.type, strlen(event.type) + 1);
      add(&seen, event.data, event.n + 1);
      add(&seen, event.id, strlen(event.id) + 1);
      seen.n++;
    }
    FUZZ_CHECK(seen.err != TNK_OK || at == end);
  }
  FUZZ_CHECK(seen.err == TNK_OK || seen.err == TNK_ETOOBIG);
  seen.end = tnk__sse_end(&sse);
  tnk__sse_deinit(&sse);
  return seen;
}

/* However it is cut, it is the same, unless an event is too large: of a line
 * that is cut, the name counts as well. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  seen_t whole;
  seen_t cut;

  if (size == 0)
    return 0;
  whole = read_by(data, size, size, SIZE_MAX / 2);
  for (size_t step = 1; step < 8 && step < size; step++) {
    cut = read_by(data, size, step, SIZE_MAX / 2);
    FUZZ_CHECK(whole.hash == cut.hash && whole.n == cut.n);
    FUZZ_CHECK(whole.end == cut.end);
  }
  read_by(data, size, 1 + data[0] % 16, MAX_EVENT);
  return 0;
}
