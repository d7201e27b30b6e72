/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_LE_H
#define TNK_LIB_WIRE_FORMAT_LE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Little-endian arrays, as the service packs numbers. On a little-endian host
 * an array is copied unchanged.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TNK__LITTLE_ENDIAN 1
#else
#define TNK__LITTLE_ENDIAN 0
#endif

static inline void tnk__le_put32(uint8_t *to, uint32_t value) {
  if (TNK__LITTLE_ENDIAN) {
    memcpy(to, &value, sizeof(value));
    return;
  }
  for (int i = 0; i < 4; i++)
    to[i] = (uint8_t)(value >> (8 * i));
}

static inline void tnk__le_put64(uint8_t *to, uint64_t value) {
  if (TNK__LITTLE_ENDIAN) {
    memcpy(to, &value, sizeof(value));
    return;
  }
  for (int i = 0; i < 8; i++)
    to[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t tnk__le_get16(const uint8_t *from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8;
}

static inline uint32_t tnk__le_get32(const uint8_t *from) {
  return tnk__le_get16(from) | tnk__le_get16(from + 2) << 16;
}

static inline uint64_t tnk__le_get64(const uint8_t *from) {
  return (uint64_t)tnk__le_get32(from) | (uint64_t)tnk__le_get32(from + 4)
                                             << 32;
}

/* Copy n elements of 4 or 8 bytes between the host's byte order and
 * little-endian. `to` may equal `from`. */
static inline void tnk__le_copy(void *to, const void *from, size_t n,
                                size_t size) {
  const uint8_t *f = from;
  uint8_t *t = to;

  if (TNK__LITTLE_ENDIAN) {
    if (n > 0 && to != from)
      memmove(to, from, n * size);
    return;
  }
  for (; n > 0; n--, f += size, t += size) {
    uint8_t element[8];

    memcpy(element, f, size);
    for (size_t i = 0; i < size; i++)
      t[i] = element[size - 1 - i];
  }
}

#endif
