/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/zstd.h"

#include <stdlib.h>
#include <string.h>

#include "codec/packed.h"
#include "lib/base/buf.h"
#include "support/test.h"
#include "tnk/error.h"

enum { LARGE = 1 << 20, ROOM = 4 << 20 };

/* Half noise, half repetition, so that both ways of zstd are used. */
static uint8_t *make_data(size_t n) {
  uint8_t *data = malloc(n);
  uint64_t state = 7;
  size_t i;

  for (i = 0; i < n; i++)
    data[i] = i < n / 2 ? (uint8_t)test_random(&state) : (uint8_t)(i % 9);
  return data;
}

static void pack(tnk__buf_t *out, const void *data, size_t n) {
  tnk__buf_init(out, test_allocator(), ROOM);
  CHECK_INT(pack_frame(out, data, n), TNK_OK);
}

/* Unpack in pieces of `step` bytes, 0: of random sizes. */
static int unpack(tnk__buf_t *out, const uint8_t *packed, size_t n, size_t step,
                  size_t max) {
  tnk__unzstd_t unzstd;
  uint64_t state = 1;
  size_t i, piece;
  int err = TNK_OK;

  tnk__buf_init(out, test_allocator(), max);
  tnk__unzstd_init(&unzstd, test_allocator());
  for (i = 0; err == TNK_OK && i < n; i += piece) {
    piece = step != 0 ? step : (size_t)(test_random(&state) % 5000);
    if (piece > n - i)
      piece = n - i;
    err = tnk__unzstd_feed(&unzstd, out, packed + i, piece);
  }
  if (err == TNK_OK)
    err = tnk__unzstd_finish(&unzstd);
  else
    CHECK_INT(tnk__unzstd_finish(&unzstd), err);
  tnk__unzstd_deinit(&unzstd);
  return err;
}

TEST(unpacks_the_same_however_it_is_cut) {
  static const size_t steps[] = {1, 7, 4096, LARGE, 0};
  uint8_t *data = make_data(LARGE);
  tnk__buf_t packed, out;
  size_t i;

  pack(&packed, data, LARGE);
  CHECK(packed.len < LARGE);
  for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    CHECK_INT(unpack(&out, packed.data, packed.len, steps[i], ROOM), TNK_OK);
    CHECK_MEM(out.data, out.len, data, LARGE);
    tnk__buf_deinit(&out);
  }
  tnk__buf_deinit(&packed);
  free(data);
}

TEST(P5_1_frame_has_its_size_and_no_checksum) {
  tnk__buf_t packed;

  pack(&packed, "aaaaaaaa", 8);
  CHECK_MEM(packed.data, 4, "\x28\xb5\x2f\xfd", 4);
  /* single segment, size in one byte, no dictionary, no checksum */
  CHECK_INT(packed.data[4], 0x20);
  CHECK_INT(packed.data[5], 8);
  tnk__buf_deinit(&packed);
}

/* However it is cut, and whatever the context did before, even half a frame.
 * The pieces may lead to other blocks, so what counts is what comes out. */
TEST(a_context_serves_many_frames) {
  static const size_t steps[] = {1000, 131072, LARGE - 1, LARGE};
  uint8_t *data = make_data(LARGE);
  tnk__zstd_t zstd = {0};
  tnk__buf_t whole, packed, out;

  pack(&whole, data, LARGE);
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    tnk__buf_init(&packed, test_allocator(), ROOM);
    CHECK_INT(tnk__zstd_begin(&zstd, test_allocator(), LARGE), TNK_OK);
    CHECK_INT(tnk__zstd_feed(&zstd, &packed, data, LARGE / 2, 0), TNK_OK);
    tnk__buf_clear(&packed);
    CHECK_INT(pack_steps(&zstd, &packed, data, LARGE, steps[i]), TNK_OK);
    CHECK(packed.len < whole.len + whole.len / 100);
    CHECK_MEM(packed.data, 9, whole.data, 9); /* the head, with the size */
    CHECK_INT(unpack(&out, packed.data, packed.len, 0, ROOM), TNK_OK);
    CHECK_MEM(out.data, out.len, data, LARGE);
    tnk__buf_deinit(&out);
    tnk__buf_deinit(&packed);
  }
  tnk__zstd_deinit(&zstd);
  tnk__buf_deinit(&whole);
  free(data);
}

TEST(contexts_take_their_memory_from_the_allocator) {
  static const uint8_t byte = 1;
  const size_t before = test_alloc_live();
  tnk__zstd_t zstd = {0};
  tnk__unzstd_t unzstd;
  tnk__buf_t packed, out;
  size_t n;

  tnk__buf_init(&packed, test_allocator(), ROOM);
  CHECK_INT(tnk__zstd_begin(&zstd, test_allocator(), 1), TNK_OK);
  CHECK(test_alloc_live() > before);
  CHECK_INT(tnk__zstd_feed(&zstd, &packed, &byte, 1, 1), TNK_OK);
  tnk__zstd_deinit(&zstd);
  /* What is left is the frame. */
  n = test_alloc_live();
  CHECK_INT(n, before + 1);

  tnk__buf_init(&out, test_allocator(), ROOM);
  tnk__unzstd_init(&unzstd, test_allocator());
  CHECK_INT(tnk__unzstd_feed(&unzstd, &out, packed.data, packed.len), TNK_OK);
  CHECK(test_alloc_live() > n + 1);
  tnk__unzstd_deinit(&unzstd);
  CHECK_INT(test_alloc_live(), n + 1);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&packed);
}

TEST(empty_and_following_frames) {
  tnk__buf_t packed, out;

  pack(&packed, "", 0);
  CHECK_INT(unpack(&out, packed.data, packed.len, 1, 0), TNK_OK);
  CHECK_INT(out.len, 0);
  tnk__buf_deinit(&out);
  CHECK_INT(pack_frame(&packed, "ab", 2), TNK_OK);
  CHECK_INT(pack_frame(&packed, "c", 1), TNK_OK);
  CHECK_INT(unpack(&out, packed.data, packed.len, 1, 3), TNK_OK);
  CHECK_MEM(out.data, out.len, "abc", 3);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&packed);
}

TEST(output_has_a_ceiling) {
  static uint8_t zeros[LARGE];
  tnk__buf_t packed, out;
  size_t max;

  pack(&packed, zeros, LARGE);
  CHECK(packed.len < 200);
  CHECK_INT(unpack(&out, packed.data, packed.len, 1, LARGE), TNK_OK);
  CHECK_INT(out.len, LARGE);
  tnk__buf_deinit(&out);
  for (max = 0; max < LARGE; max = max * 3 + 1) {
    CHECK_INT(unpack(&out, packed.data, packed.len, 50, max), TNK_ETOOBIG);
    CHECK(out.len <= max);
    tnk__buf_deinit(&out);
  }
  CHECK_INT(unpack(&out, packed.data, packed.len, 50, LARGE - 1), TNK_ETOOBIG);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&packed);
}

TEST(what_is_cut_off_is_no_success) {
  tnk__buf_t packed, out;
  size_t n;

  pack(&packed, "some text, some text, some text", 31);
  for (n = 0; n < packed.len; n++) {
    CHECK_INT(unpack(&out, packed.data, n, 0x100, ROOM), TNK_EPROTO);
    tnk__buf_deinit(&out);
  }
  tnk__buf_byte(&packed, 0x28);
  CHECK_INT(unpack(&out, packed.data, packed.len, 1, ROOM), TNK_EPROTO);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&packed);
}

TEST(damaged_frames_are_refused_or_bounded) {
  uint8_t *data = make_data(4000);
  tnk__buf_t packed, out;
  size_t i;

  pack(&packed, data, 4000);
  for (i = 0; i < packed.len; i++) {
    packed.data[i] ^= 0xff;
    unpack(&out, packed.data, packed.len, 0, ROOM);
    CHECK(out.len <= ROOM);
    tnk__buf_deinit(&out);
    packed.data[i] ^= 0xff;
  }
  CHECK_INT(unpack(&out, (const uint8_t *)"{\"a\":1}", 7, 1, ROOM), TNK_EPROTO);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&packed);
  free(data);
}

TEST(a_size_that_is_a_lie_means_the_same_however_it_is_cut) {
  /* announces 7 bytes, holds none */
  static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 7, 1, 0, 0};
  size_t step;
  int first = 1;

  for (step = 1; step <= sizeof(frame); step++) {
    tnk__buf_t out;
    int err = unpack(&out, frame, sizeof(frame), step, ROOM);
    if (step == 1)
      first = err;
    CHECK_INT(err, first);
    CHECK_INT(out.len, 0);
    tnk__buf_deinit(&out);
  }
}

TEST(large_windows_are_refused) {
  /* window descriptors of 8 MiB and of 9 MiB, then an empty last block */
  uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3, 1, 0, 0};
  tnk__buf_t out;

  CHECK_INT(unpack(&out, frame, sizeof(frame), 1, ROOM), TNK_OK);
  tnk__buf_deinit(&out);
  frame[5] = 13 << 3 | 1;
  CHECK_INT(unpack(&out, frame, sizeof(frame), 1, ROOM), TNK_ETOOBIG);
  tnk__buf_deinit(&out);
}

/* The library may be built to read them; their decoders get no byte of it,
 * also not when the number stands behind the begin of a right one. */
TEST(formats_of_old_versions_are_refused) {
  uint8_t frame[] = {0x28, 0x00, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0, 0, 0};
  uint8_t version;
  tnk__buf_t out;

  for (version = 0x1e; version < 0x28; version++)
    for (size_t first = 0; first < 2; first++)
      for (size_t step = 1; step <= sizeof(frame); step++) {
        frame[1] = version;
        CHECK_INT(
            unpack(&out, frame + first, sizeof(frame) - first, step, ROOM),
            TNK_EPROTO);
        tnk__buf_deinit(&out);
      }
}

/* The rest of a header may look like the number of an old version. */
TEST(a_header_that_goes_on_like_an_old_frame_means_the_same_however_it_is_cut) {
  static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x25, 0xb5,
                                  0x2f, 0xfd, 0,    0,    0,    0};

  for (size_t step = 1; step <= sizeof(frame); step++) {
    tnk__buf_t out;

    CHECK_INT(unpack(&out, frame, sizeof(frame), step, ROOM), TNK_EPROTO);
    tnk__buf_deinit(&out);
  }
}

/* Any of sixteen magic numbers begins a frame that is to be skipped. */
TEST(skippable_frames_are_skipped) {
  uint8_t frame[] = {0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'a', 'b'};
  tnk__buf_t out;

  for (size_t step = 1; step <= sizeof(frame); step++) {
    frame[0] = (uint8_t)(0x50 + step);
    CHECK_INT(unpack(&out, frame, sizeof(frame), step, ROOM), TNK_OK);
    CHECK_INT(out.len, 0);
    tnk__buf_deinit(&out);
  }
  frame[1]++;
  CHECK_INT(unpack(&out, frame, sizeof(frame), 1, ROOM), TNK_EPROTO);
  tnk__buf_deinit(&out);
}

TEST(zstd_reports_lack_of_memory) {
  uint8_t *data = make_data(200000);
  tnk__buf_t packed, out;
  long n;
  int err;

  for (n = 0; n < 50; n++) {
    tnk__buf_init(&packed, test_allocator(), ROOM);
    test_alloc_fail_at(n);
    err = pack_frame(&packed, data, 200000);
    CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    CHECK_INT(packed.err, err);
    if (!test_alloc_did_fail())
      break;
    tnk__buf_deinit(&packed);
  }
  CHECK(n > 1 && n < 50);
  for (n = 0; n < 50; n++) {
    test_alloc_fail_at(n);
    err = unpack(&out, packed.data, packed.len, 0, ROOM);
    CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    tnk__buf_deinit(&out);
    if (!test_alloc_did_fail())
      break;
  }
  CHECK(n > 1 && n < 50);
  test_alloc_fail_at(-1);
  tnk__buf_deinit(&packed);
  tnk__buf_init(&packed, test_allocator(), 10);
  CHECK_INT(pack_frame(&packed, data, 200000), TNK_ETOOBIG);
  tnk__buf_deinit(&packed);
  free(data);
}
