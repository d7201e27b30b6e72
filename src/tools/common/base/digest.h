/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_DIGEST_H
#define TNK_TOOLS_COMMON_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define CLI_DIGEST_INIT UINT64_C(0xCBF29CE484222325)

/* FNV-1a, which detects changes, not attacks. */
static inline uint64_t cli_digest(uint64_t sum, const void *bytes, size_t n) {
  const unsigned char *at = bytes;

  for (size_t i = 0; i < n; i++)
    sum = (sum ^ at[i]) * 0x100000001B3u;
  return sum;
}

#endif
