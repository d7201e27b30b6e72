/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_BODIES_H
#define TNK_TEST_CODEC_BODIES_H

#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "support/test.h"
#include "tnk/error.h"

/*
 * Helpers for the calls: `call` writes into a buffer that is named `out`, or
 * reads from `body`, `n` into things of `arena`, and gives a code.
 */

#define BODIES_ARENA ((size_t)1 << 20)

/* The call writes exactly `expected`; and when any allocation fails, or there
 * is no room, the buffer tells and nothing leaks. */
#define CHECK_WRITES(call, expected)                                           \
  do {                                                                         \
    tnk__buf_t out;                                                            \
    long bodies_n;                                                             \
    tnk__buf_init(&out, test_allocator(), 1 << 16);                            \
    call;                                                                      \
    CHECK_INT(out.err, TNK_OK);                                                \
    CHECK_STR(tnk__buf_cstr(&out), expected);                                  \
    tnk__buf_deinit(&out);                                                     \
    tnk__buf_init(&out, test_allocator(), strlen(expected) - 1);               \
    call;                                                                      \
    CHECK_INT(out.err, TNK_ETOOBIG);                                           \
    tnk__buf_deinit(&out);                                                     \
    for (bodies_n = 0;; bodies_n++) {                                          \
      tnk__buf_init(&out, test_allocator(), 1 << 16);                          \
      test_alloc_fail_at(bodies_n);                                            \
      call;                                                                    \
      CHECK_INT(out.err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);         \
      tnk__buf_deinit(&out);                                                   \
      if (!test_alloc_did_fail())                                              \
        break;                                                                 \
    }                                                                          \
    test_alloc_fail_at(-1);                                                    \
    CHECK(bodies_n > 0);                                                       \
  } while (0)

/* The call fails the buffer with `code`. */
#define CHECK_WRITE_FAILS(call, code)                                          \
  do {                                                                         \
    tnk__buf_t out;                                                            \
    tnk__buf_init(&out, test_allocator(), 1 << 16);                            \
    call;                                                                      \
    CHECK_INT(out.err, code);                                                  \
    tnk__buf_deinit(&out);                                                     \
  } while (0)

/* The call understands `text` when all allocations of the arena succeed, which
 * `then` looks at, and reports TNK_ENOMEM when any fails. */
#define CHECK_READS(text, call, then)                                          \
  do {                                                                         \
    const uint8_t *body = (const uint8_t *)(text);                             \
    size_t n = strlen(text);                                                   \
    tnk__arena_t arena;                                                        \
    long bodies_n;                                                             \
    for (bodies_n = -1;; bodies_n++) {                                         \
      int bodies_err;                                                          \
      tnk__arena_init(&arena, test_allocator(), BODIES_ARENA);                 \
      test_alloc_fail_at(bodies_n);                                            \
      bodies_err = call;                                                       \
      if (test_alloc_did_fail()) {                                             \
        CHECK_INT(bodies_err, TNK_ENOMEM);                                     \
      } else {                                                                 \
        CHECK_INT(bodies_err, TNK_OK);                                         \
        then;                                                                  \
      }                                                                        \
      tnk__arena_deinit(&arena);                                               \
      if (bodies_n >= 0 && !test_alloc_did_fail())                             \
        break;                                                                 \
    }                                                                          \
    test_alloc_fail_at(-1);                                                    \
  } while (0)

/* The call refuses `text` and every text that is cut off before its end. */
#define CHECK_REFUSES(text, call)                                              \
  do {                                                                         \
    const uint8_t *body = (const uint8_t *)(text);                             \
    tnk__arena_t arena;                                                        \
    size_t n;                                                                  \
    for (n = 0; n <= strlen(text); n++) {                                      \
      tnk__arena_init(&arena, test_allocator(), BODIES_ARENA);                 \
      CHECK_INT(call, TNK_EPROTO);                                             \
      tnk__arena_deinit(&arena);                                               \
    }                                                                          \
  } while (0)

#endif
