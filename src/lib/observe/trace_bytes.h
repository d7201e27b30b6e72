#ifndef TNK_LIB_OBSERVE_TRACE_BYTES_H
#define TNK_LIB_OBSERVE_TRACE_BYTES_H

#include <string.h>

#include "lib/wire/format/le.h"

/* Protobuf encoding for traces. Each function writes to memory with enough
 * space and returns the end of the written bytes. */

enum {
  MAX_TEXT = 128, /* longer strings are cut */
  WIDE = 9,       /* size of a fixed varint */
  LOW = 4,        /* size of its first part */
  LOW_BITS = 28   /* bits in the first part */
};

static inline uint8_t *put_varint(uint8_t *at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  return at;
}

static inline uint8_t *put_uint(uint8_t *at, uint32_t field, uint64_t value) {
  return put_varint(put_varint(at, field), value);
}

static inline size_t text_len(const char *text) {
  const size_t n = strlen(text);

  return n < MAX_TEXT ? n : MAX_TEXT;
}

static inline uint8_t *put_bytes(uint8_t *at, uint32_t field, const char *text,
                                 size_t n) {
  at = put_varint(put_varint(at, field), n);
  memcpy(at, text, n);
  return at + n;
}

static inline uint8_t *put_text(uint8_t *at, uint32_t field, const char *text) {
  return put_bytes(at, field, text, text_len(text));
}

/* The lowest 28 bits in four bytes, each with the continuation bit. */
static inline uint32_t seven_each(uint64_t value) {
  uint32_t x = (uint32_t)value;

  x = (x & 0x00003fff) | (x & 0x0fffc000) << 2;
  x = (x & 0x007f007f) | (x & 0x3f803f80) << 1;
  return x | 0x80808080;
}

/* Write the part of a nine-byte varint after its lowest 28 bits. */
static inline void put_high(uint8_t *at, uint64_t high) {
  tnk__le_put32(at, seven_each(high));
  at[4] = high >> 28 & 0x7f;
}

/* Write a varint of nine bytes, which holds 63 bits. */
static inline uint8_t *put_wide(uint8_t *at, uint64_t value) {
  tnk__le_put32(at, seven_each(value));
  put_high(at + LOW, value >> LOW_BITS);
  return at + WIDE;
}

/* Write a length in two bytes. */
static inline void put_length(uint8_t *at, size_t n) {
  at[0] = (uint8_t)(n | 0x80);
  at[1] = (uint8_t)(n >> 7);
}

/* Begin a message with a length that is set later. */
static inline uint8_t *begin_message(uint8_t *at, uint32_t field,
                                     uint8_t **message) {
  *message = put_varint(at, field);
  return *message + 2;
}

static inline void end_message(uint8_t *message, const uint8_t *at) {
  put_length(message, (size_t)(at - message) - 2);
}

#endif
