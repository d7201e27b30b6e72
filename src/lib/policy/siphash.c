/* SPDX-License-Identifier: MIT */
#include "lib/policy/siphash.h"

typedef struct {
  uint64_t v0, v1, v2, v3;
} state_t;

static uint64_t rotate(uint64_t x, unsigned n) {
  return (x << n) | (x >> (64 - n));
}

static void mix(state_t *s) {
  s->v0 += s->v1;
  s->v1 = rotate(s->v1, 13) ^ s->v0;
  s->v0 = rotate(s->v0, 32);
  s->v2 += s->v3;
  s->v3 = rotate(s->v3, 16) ^ s->v2;
  s->v0 += s->v3;
  s->v3 = rotate(s->v3, 21) ^ s->v0;
  s->v2 += s->v1;
  s->v1 = rotate(s->v1, 17) ^ s->v2;
  s->v2 = rotate(s->v2, 32);
}

static void absorb(state_t *s, uint64_t word) {
  s->v3 ^= word;
  mix(s);
  mix(s);
  s->v0 ^= word;
}

uint64_t tnk__siphash(const uint64_t key[2], const void *data, size_t n) {
  const uint8_t *bytes = data;
  state_t s = {
      key[0] ^ UINT64_C(0x736f6d6570736575),
      key[1] ^ UINT64_C(0x646f72616e646f6d),
      key[0] ^ UINT64_C(0x6c7967656e657261),
      key[1] ^ UINT64_C(0x7465646279746573),
  };
  uint64_t word = 0;

  for (size_t i = 0; i < n; i++) {
    word |= (uint64_t)bytes[i] << (8 * (i % 8));
    if (i % 8 == 7) {
      absorb(&s, word);
      word = 0;
    }
  }
  absorb(&s, word | (uint64_t)(n & 0xff) << 56);
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; i++)
    mix(&s);
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
