/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/age/age.h"
#include "tnk/error.h"

enum { MAX_OUT = 1 << 20 };

/* The identity of the corpus. */
static const char identity_text[] =
    "AGE-SECRET-KEY-"
    "1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0";

static int next_bytes(void *user, unsigned char *out, size_t n) {
  for (size_t i = 0; i < n; i++)
    out[i] = (*(unsigned char *)user)++;
  return 0;
}

static int unseal(tnk__buf_t *out, const uint8_t *data, size_t size,
                  size_t step) {
  uint8_t identity[TNK__AGE_KEY];
  unsigned char seed = 1;
  tnk__age_open_t open;
  size_t i, n;
  int err = TNK_OK;

  FUZZ_CHECK(tnk__age_identity_read(identity, identity_text) == NULL);
  tnk__buf_init(out, tnk__allocator_default(), MAX_OUT);
  tnk__age_open_init(&open, tnk__allocator_default(), next_bytes, &seed);
  FUZZ_CHECK(tnk__age_open_add(&open, identity) == TNK_OK);
  for (i = 0; err == TNK_OK && i < size; i += n) {
    n = size - i < step ? size - i : step;
    err = tnk__age_open_feed(&open, out, data + i, n);
  }
  if (err == TNK_OK)
    err = tnk__age_open_finish(&open, out);
  FUZZ_CHECK(err == TNK_OK || err == TNK_ENOMEM || open.why != NULL);
  tnk__age_open_deinit(&open);
  return err;
}

static void seal(tnk__buf_t *out, const uint8_t *data, size_t size) {
  uint8_t identity[TNK__AGE_KEY], recipient[1][TNK__AGE_KEY];
  unsigned char seed = size > 0 ? data[0] : 0;
  tnk__age_seal_t sealing;

  FUZZ_CHECK(tnk__age_identity_read(identity, identity_text) == NULL);
  FUZZ_CHECK(tnk__age_publish(recipient[0], identity, next_bytes, &seed) ==
             TNK_OK);
  tnk__buf_init(out, tnk__allocator_default(), MAX_OUT);
  FUZZ_CHECK(tnk__age_seal_init(&sealing, tnk__allocator_default(),
                                (const uint8_t(*)[TNK__AGE_KEY])recipient, 1,
                                next_bytes, &seed, out) == TNK_OK);
  FUZZ_CHECK(tnk__age_seal_feed(&sealing, out, data, size / 3) == TNK_OK);
  FUZZ_CHECK(tnk__age_seal_feed(&sealing, out, data + size / 3,
                                size - size / 3) == TNK_OK);
  FUZZ_CHECK(tnk__age_seal_finish(&sealing, out) == TNK_OK);
  tnk__age_seal_deinit(&sealing);
}

/* Cutting the input elsewhere changes nothing; what is sealed is opened, and
 * not when a bit of it is another one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__buf_t a, b, sealed;
  int a_err = unseal(&a, data, size, SIZE_MAX);
  int b_err = unseal(&b, data, size, 5);

  FUZZ_CHECK(a_err == b_err && a.len == b.len);
  FUZZ_CHECK(a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
  tnk__buf_deinit(&a);
  tnk__buf_deinit(&b);
  /* It costs three multiplications, so not each time. */
  if (size > 0 && size < MAX_OUT / 2 && data[size - 1] % 8 == 0) {
    seal(&sealed, data, size);
    FUZZ_CHECK(unseal(&a, sealed.data, sealed.len, 1000) == TNK_OK);
    FUZZ_CHECK(a.len == size && memcmp(a.data, data, size) == 0);
    tnk__buf_deinit(&a);
    sealed.data[size * 31 % sealed.len] ^= 1;
    FUZZ_CHECK(unseal(&a, sealed.data, sealed.len, 1000) != TNK_OK);
    tnk__buf_deinit(&a);
    tnk__buf_deinit(&sealed);
  }
  return 0;
}
