/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/seed.h"

/* The finalizer of splitmix64. */
uint64_t learn_seed(uint64_t seed, uint64_t number) {
  uint64_t x = seed * 0x9E3779B97F4A7C15u + number + 1;

  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (x ^ (x >> 31)) & 0x3FFFFFFF;
}
