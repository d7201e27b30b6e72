/* SPDX-License-Identifier: MIT */
#include "lib/policy/slicer.h"

#include "support/test.h"

/* The end of the slice that begins at `begin`. */
static size_t end_of(tnk__slicer_t *slicer, const uint64_t *bytes, size_t n,
                     size_t begin) {
  size_t end = begin + 1;

  while (end < n && !tnk__slicer_add(slicer, bytes[end]))
    end++;
  return end;
}

/* Cut, and return the number of slices; ends receives the ends of the first
 * few. */
static size_t cut(const uint64_t *bytes, size_t n, size_t max_items,
                  uint64_t max_bytes, size_t *ends) {
  tnk__slicer_t slicer;
  size_t n_chunks = 0;
  size_t begin = 0;

  tnk__slicer_init(&slicer, max_items, max_bytes);
  if (n > 0)
    CHECK(tnk__slicer_add(&slicer, bytes[0]));
  while (begin < n) {
    size_t end = end_of(&slicer, bytes, n, begin);

    CHECK(end - begin <= (max_items > 0 ? max_items : 1));
    if (ends != NULL && n_chunks < 8)
      ends[n_chunks] = end;
    n_chunks++;
    begin = end;
  }
  return n_chunks;
}

static void cut_by_count(size_t max_items) {
  static uint64_t bytes[3000];
  size_t ends[8];

  CHECK_INT(cut(bytes, max_items - 1, max_items, 500, NULL), 1);
  CHECK_INT(cut(bytes, max_items, max_items, 500, NULL), 1);
  CHECK_INT(cut(bytes, max_items + 1, max_items, 500, ends), 2);
  CHECK_INT(ends[0], max_items);
  CHECK_INT(ends[1], max_items + 1);
}

TEST(S3_4_chunks_by_count) {
  cut_by_count(128);
  cut_by_count(1024);
}

static void cut_by_bytes(uint64_t max) {
  uint64_t below[] = {max / 2, max - max / 2 - 1, 1, 1};
  uint64_t exact[] = {max / 2, max - max / 2, 0, 1};
  uint64_t above[] = {max / 2, max - max / 2 + 1, 1};
  size_t ends[8];

  CHECK_INT(cut(below, 4, 1024, max, ends), 2);
  CHECK_INT(ends[0], 3);
  CHECK_INT(cut(exact, 4, 1024, max, ends), 2);
  CHECK_INT(ends[0], 3); /* an item of no bytes still fits */
  CHECK_INT(cut(above, 3, 1024, max, ends), 2);
  CHECK_INT(ends[0], 1);
}

TEST(S3_4_chunks_by_bytes) {
  cut_by_bytes(500000);
  cut_by_bytes(5000000);
}

TEST(S3_4_a_giant_goes_alone_and_leaves_no_empty_chunk) {
  uint64_t first[] = {999, 1, 1};
  uint64_t middle[] = {1, 999, 1};
  uint64_t last[] = {1, 1, 999};
  uint64_t all[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  size_t ends[8];

  CHECK_INT(cut(first, 3, 10, 100, ends), 2);
  CHECK_INT(ends[0], 1);
  CHECK_INT(cut(middle, 3, 10, 100, ends), 3);
  CHECK_INT(ends[0], 1);
  CHECK_INT(ends[1], 2);
  CHECK_INT(cut(last, 3, 10, 100, ends), 2);
  CHECK_INT(ends[0], 2);
  CHECK_INT(cut(all, 3, 10, UINT64_MAX, ends), 3);
}

TEST(S3_4_limits_of_zero_still_progress) {
  uint64_t bytes[] = {0, 5, 0, 0};
  size_t ends[8];

  CHECK_INT(cut(bytes, 4, 0, 100, NULL), 4);
  CHECK_INT(cut(bytes, 4, 10, 0, ends), 3);
  CHECK_INT(ends[0], 1);
  CHECK_INT(ends[1], 2);
}

TEST(S3_4_nothing_is_no_chunk) {
  CHECK_INT(cut(NULL, 0, 10, 100, NULL), 0);
}

TEST(S3_4_random_input_is_cut_greedily) {
  static uint64_t bytes[100000];
  tnk__slicer_t slicer;
  uint64_t seed = 5;
  size_t begin = 0;

  for (size_t i = 0; i < 100000; i++)
    bytes[i] = test_random(&seed) % 40000;
  CHECK(cut(bytes, 100000, 128, 500000, NULL) > 100000 / 128);
  tnk__slicer_init(&slicer, 128, 500000);
  CHECK(tnk__slicer_add(&slicer, bytes[0]));
  while (begin < 100000) {
    size_t end = end_of(&slicer, bytes, 100000, begin);
    uint64_t sum = 0;

    for (size_t i = begin; i < end; i++)
      sum += bytes[i];
    CHECK(sum <= 500000);
    if (end < 100000) /* one more would not have fitted */
      CHECK(end - begin == 128 || sum + bytes[end] > 500000);
    begin = end;
  }
}
