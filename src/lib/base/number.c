/* SPDX-License-Identifier: MIT */
#include "lib/base/number.h"

#include <stddef.h>

#include "tnk/error.h"

int tnk__read_u64(const char **at, const char *end, uint64_t max,
                  uint64_t *out) {
  const char *p = *at;
  uint64_t value = 0;

  for (; p != end && *p >= '0' && *p <= '9'; p++) {
    uint64_t digit = (uint64_t)(*p - '0');

    if (value > UINT64_MAX / 10 || digit > UINT64_MAX - value * 10)
      return TNK_ETOOBIG;
    value = value * 10 + digit;
  }
  if (value > max)
    return TNK_ETOOBIG;
  if (p == *at)
    return TNK_EINVAL;
  *at = p;
  *out = value;
  return TNK_OK;
}

int tnk__text_u64(const char *text, uint64_t max, uint64_t *out) {
  uint64_t value;
  int err = tnk__read_u64(&text, NULL, max, &value);

  if (err == TNK_OK && *text != '\0')
    err = TNK_EINVAL;
  if (err == TNK_OK)
    *out = value;
  return err;
}
