/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_WIRE_H
#define TNK_TEST_CODEC_WIRE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tnk/common.h"
#include "tnk/error.h"

/* One of the decoders of results, whatever it makes. */
typedef int (*wire_read_t)(void **out, const tnk_allocator_t *alloc,
                           const void *body, size_t n);
typedef void (*wire_free_t)(const tnk_allocator_t *alloc, void *value);

/* A copy that ends where its memory ends, for the sanitizers. */
static inline void *wire_exact(const void *body, size_t n) {
  void *copy = malloc(n > 0 ? n : 1);

  if (copy != NULL && n > 0)
    memcpy(copy, body, n);
  return copy;
}

/* Cut off at every length, and with every byte changed: a result or an error,
 * and no memory left behind. */
static inline void wire_damage(wire_read_t read, wire_free_t drop,
                               const void *body, size_t n) {
  static const unsigned char masks[] = {0x01, 0x80, 0x7f, 0xff};

  for (size_t i = 0; i < n * (1 + sizeof(masks)); i++) {
    size_t at = i / (1 + sizeof(masks)), kind = i % (1 + sizeof(masks));
    size_t length = kind == 0 ? at : n;
    unsigned char *copy = wire_exact(body, length);
    void *value = NULL;
    int err;

    CHECK(copy != NULL);
    if (kind > 0)
      copy[at] ^= masks[kind - 1];
    err = read(&value, test_allocator(), copy, length);
    CHECK(err == TNK_OK || err == TNK_EPROTO);
    CHECK((err == TNK_OK) == (value != NULL));
    free(copy);
    drop(test_allocator(), value);
    CHECK_INT(test_alloc_live(), 0);
  }
}

/* Every allocation fails once. */
static inline void wire_starve(wire_read_t read, wire_free_t drop,
                               const void *body, size_t n) {
  for (long at = 0;; at++) {
    unsigned char *copy = wire_exact(body, n);
    void *value = NULL;
    int err, failed;

    test_alloc_fail_at(at);
    err = read(&value, test_allocator(), copy, n);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    free(copy);
    if (!failed) {
      CHECK_INT(err, TNK_OK);
      drop(test_allocator(), value);
      CHECK(at > 0);
      return;
    }
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(value == NULL);
    CHECK_INT(test_alloc_live(), 0);
  }
}

#endif
