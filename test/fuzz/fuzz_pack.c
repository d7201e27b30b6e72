/* SPDX-License-Identifier: MIT */
/*
 * A file of packed data. An input is the file itself, or, if it begins with
 * another byte than the magic, its header fields and body, to which the
 * checksums are added, so that what is behind them is reached.
 */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/tnk/text/pack.h"

enum { MAX_FILE = 1 << 16 };

static uint8_t file[MAX_FILE];

static uint32_t sum_of(uint32_t sum, const void *bytes, size_t n) {
  return (uint32_t)crc32_z(sum, bytes, n);
}

static void add_example_sum(size_t i, cli_pack_entry_t *entry, size_t end) {
  const uint64_t number = i;
  const uint64_t n_bytes = (uint64_t)entry->n * 8;

  if (entry->offset > end || n_bytes > end - entry->offset)
    return;
  entry->sum = sum_of(0, &number, sizeof(number));
  entry->sum = sum_of(entry->sum, &entry->n, sizeof(entry->n));
  entry->sum = sum_of(entry->sum, file + entry->offset, (size_t)n_bytes);
}

/* Make the checksums right. */
static void add_sums(size_t n) {
  cli_pack_head_t head;
  size_t index;

  memcpy(&head, file, sizeof(head));
  memcpy(head.magic, CLI_PACK_MAGIC, sizeof(head.magic));
  head.order = CLI_PACK_ORDER;
  head.version = CLI_PACK_VERSION;
  head.n_examples %= (n - sizeof(head)) / sizeof(cli_pack_entry_t) + 1;
  index = n - (size_t)head.n_examples * sizeof(cli_pack_entry_t);
  if ((index - sizeof(head)) % 8 == 0)
    head.n_tokens = (index - sizeof(head)) / 8;
  for (size_t i = 0; i < head.n_examples; i++) {
    uint8_t *at = file + index + i * sizeof(cli_pack_entry_t);
    cli_pack_entry_t entry;

    memcpy(&entry, at, sizeof(entry));
    add_example_sum(i, &entry, n);
    memcpy(at, &entry, sizeof(entry));
  }
  head.index_sum = sum_of(0, file + index, n - index);
  head.head_sum = sum_of(0, &head, offsetof(cli_pack_head_t, head_sum));
  memcpy(file, &head, sizeof(head));
}

static void read_all(const cli_pack_t *pack, size_t size) {
  uint64_t n_ids = 0;

  FUZZ_CHECK(pack->head.n_examples <= size / sizeof(cli_pack_entry_t));
  FUZZ_CHECK(isfinite(pack->head.weight));
  for (uint64_t i = 0; i < pack->head.n_examples; i++) {
    char why[512] = "";
    int32_t *ids;
    float *weights;
    tnk__arena_t arena;
    size_t n;
    int err;

    tnk__arena_init(&arena, tnk__allocator_default(), 2 * MAX_FILE);
    err = cli_pack_read(pack, i, &arena, &ids, &weights, &n, why, sizeof(why));
    FUZZ_CHECK(err == TNK_OK || (err == TNK_EFILE && why[0] != '\0'));
    n_ids += cli_pack_length(pack, i);
    if (err == TNK_OK) {
      FUZZ_CHECK(n >= 2 && n == cli_pack_length(pack, i));
      FUZZ_CHECK(n <= pack->head.longest);
      for (size_t t = 0; t < n; t++)
        FUZZ_CHECK(ids[t] >= 0 && (uint64_t)ids[t] < pack->head.n_vocab &&
                   isfinite(weights[t]));
    }
    tnk__arena_deinit(&arena);
  }
  FUZZ_CHECK(n_ids == pack->head.n_tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static FILE *on_disk;
  const size_t n = size < MAX_FILE ? size : MAX_FILE;
  char why[512] = "";
  cli_pack_t pack;
  int err;

  if (on_disk == NULL)
    on_disk = tmpfile();
  FUZZ_CHECK(on_disk != NULL);
  if (n > 0)
    memcpy(file, data, n);
  if (n >= sizeof(cli_pack_head_t) && file[0] != CLI_PACK_MAGIC[0])
    add_sums(n);
  FUZZ_CHECK(ftruncate(fileno(on_disk), 0) == 0);
  FUZZ_CHECK(pwrite(fileno(on_disk), file, n, 0) == (ssize_t)n);
  err =
      cli_pack_open_fd(&pack, dup(fileno(on_disk)), "input", why, sizeof(why));
  FUZZ_CHECK(err == TNK_OK || err == TNK_EFILE);
  FUZZ_CHECK((err == TNK_OK) == (why[0] == '\0'));
  if (err == TNK_OK) {
    read_all(&pack, n);
    cli_pack_keep_index(&pack);
    FUZZ_CHECK(pack.entries != NULL);
    read_all(&pack, n);
  }
  cli_pack_close(&pack);
  return 0;
}
