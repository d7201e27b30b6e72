/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/tar/archive.h"
#include "tnk/error.h"

enum { MAX_BYTES = 1 << 20 };

typedef struct {
  uint64_t hash; /* of what was seen, in order */
  uint64_t left; /* bytes that the file still has to get */
  uint64_t total;
  int is_open;
  int err;
} seen_t;

static void add(seen_t *seen, const void *data, size_t n) {
  for (size_t i = 0; i < n; i++)
    seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

/* A file gets all of its bytes, and its name leads nowhere else. */
static void note(seen_t *seen, const tnk__tar_event_t *event) {
  if (event->kind == TNK__TAR_FILE) {
    FUZZ_CHECK(!seen->is_open && event->name[0] != '/');
    FUZZ_CHECK(strncmp(event->name, "../", 3) != 0);
    FUZZ_CHECK(strstr(event->name, "/../") == NULL);
    add(seen, event->name, strlen(event->name) + 1);
    seen->is_open = 1;
    seen->left = event->n_bytes;
    seen->total += event->n_bytes;
    FUZZ_CHECK(seen->total <= MAX_BYTES);
  } else if (event->kind == TNK__TAR_DATA) {
    FUZZ_CHECK(seen->is_open && event->n > 0 && event->n <= seen->left);
    add(seen, event->data, event->n);
    seen->left -= event->n;
  } else if (event->kind == TNK__TAR_END) {
    FUZZ_CHECK(seen->is_open && seen->left == 0);
    seen->is_open = 0;
  }
}

static seen_t unpack(const uint8_t *data, size_t size, size_t step) {
  tnk__archive_t *archive = malloc(sizeof(*archive));
  seen_t seen = {0};
  tnk__tar_event_t event;
  char text[800];
  tnk__text_t why;
  size_t n;

  FUZZ_CHECK(archive != NULL);
  tnk__archive_init(archive, tnk__allocator_default(), MAX_BYTES);
  for (size_t i = 0; i < size && seen.err == TNK_OK; i += n) {
    n = size - i < step ? size - i : step;
    tnk__archive_give(archive, data + i, n);
    do {
      seen.err = tnk__archive_next(archive, &event);
      note(&seen, &event);
    } while (seen.err == TNK_OK && event.kind != TNK__TAR_MORE);
  }
  if (seen.err == TNK_OK)
    seen.err = tnk__archive_finish(archive);
  FUZZ_CHECK(seen.err != TNK_OK || !seen.is_open);
  tnk__text_init(&why, text, sizeof(text));
  tnk__archive_explain(archive, &why);
  FUZZ_CHECK((why.len > 0) == (seen.err != TNK_OK) || seen.err == TNK_ENOMEM ||
             seen.err == TNK_ETOOBIG);
  tnk__archive_deinit(archive);
  free(archive);
  return seen;
}

/* Cutting the input elsewhere changes nothing that was complete. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const seen_t a = unpack(data, size, SIZE_MAX);
  const seen_t b = unpack(data, size, 7);

  FUZZ_CHECK((a.err == TNK_OK) == (b.err == TNK_OK));
  FUZZ_CHECK(a.err != TNK_OK || a.hash == b.hash);
  return 0;
}
