/* SPDX-License-Identifier: MIT */
/*
 * The file of a ledger, line by line. What is read is written again, and means
 * the same then; a line that is written is one line of text.
 */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/ledger/line.h"
#include "tnk/error.h"

enum { MAX_TEXTS = 1 << 20 };

static int is_same_text(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* But for what it was read from, and the word of an event that is not known. */
static void expect_same(const tnk__ledger_line_t *a,
                        const tnk__ledger_line_t *b) {
  FUZZ_CHECK(a->event == b->event);
  FUZZ_CHECK(is_same_text(a->name, b->name));
  FUZZ_CHECK(is_same_text(a->state_path, b->state_path));
  FUZZ_CHECK(is_same_text(a->sampler_path, b->sampler_path));
  FUZZ_CHECK(is_same_text(a->run, b->run));
  FUZZ_CHECK(is_same_text(a->cursor, b->cursor));
  FUZZ_CHECK(a->batch == b->batch && a->epoch == b->epoch);
  FUZZ_CHECK(a->attempt == b->attempt && a->save == b->save);
  FUZZ_CHECK(a->what == b->what && a->time_s == b->time_s);
  FUZZ_CHECK(a->n_steps == b->n_steps && a->n_passes == b->n_passes);
  FUZZ_CHECK(a->ttl_s == b->ttl_s);
  FUZZ_CHECK(a->is_final == b->is_final && a->is_rolling == b->is_rolling);
  FUZZ_CHECK(memcmp(a->used, b->used, sizeof(a->used)) == 0);
}

static void read_line(const uint8_t *data, size_t n) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  uint8_t *own = tnk__malloc(alloc, n + 1);
  tnk__ledger_line_t again;
  tnk__ledger_line_t line;
  tnk__arena_t arena;
  tnk__buf_t text;

  FUZZ_CHECK(own != NULL);
  if (n > 0)
    memcpy(own, data, n);
  tnk__arena_init(&arena, alloc, MAX_TEXTS);
  tnk__buf_init(&text, alloc, MAX_TEXTS);
  if (tnk__ledger_read(&line, &arena, own, n) == TNK_OK) {
    FUZZ_CHECK(line.name != NULL && line.name[0] != '\0');
    FUZZ_CHECK(strlen(line.json) <= n);
    for (size_t i = 0; i < TNK__LEDGER_N_USED; i++)
      FUZZ_CHECK(line.used[i] >= 0);
    FUZZ_CHECK(tnk__ledger_write(&text, &line) == TNK_OK);
    FUZZ_CHECK(tnk__utf8_valid(text.data, text.len) == text.len);
    FUZZ_CHECK(memchr(text.data, '\n', text.len) == text.data + text.len - 1);
    FUZZ_CHECK(tnk__ledger_read(&again, &arena, text.data, text.len - 1) ==
               TNK_OK);
    expect_same(&line, &again);
  }
  tnk__buf_deinit(&text);
  tnk__arena_deinit(&arena);
  tnk__free(alloc, own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  while (size > 0) {
    const uint8_t *stop = memchr(data, '\n', size);
    const size_t n = stop != NULL ? (size_t)(stop - data) : size;

    read_line(data, n);
    data += n < size ? n + 1 : n;
    size -= n < size ? n + 1 : n;
  }
  return 0;
}
