#ifndef TNK_CODEC_OBSERVE_TRACE_BYTES_H
#define TNK_CODEC_OBSERVE_TRACE_BYTES_H

#include <string.h>

#include "codec/format/le.h"

/* Protobuf, as a trace needs it. Each writes to where there is room, and
 * returns where the next one goes. */

enum {
  MAX_TEXT = 128, /* what is longer is cut */
  WIDE = 9        /* bytes of a varint that is written at once */
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

/* A varint of nine bytes, which take 63 bits, seven each: the first eight of
 * them, and the last one. */
typedef struct {
  uint64_t first;
  uint8_t last;
} wide_t;

static inline wide_t wide_of(uint64_t value) {
  uint64_t x = value & 0x00ffffffffffffff;

  x = (x & 0x000000000fffffff) | (x & 0x00fffffff0000000) << 4;
  x = (x & 0x00003fff00003fff) | (x & 0x0fffc0000fffc000) << 2;
  x = (x & 0x007f007f007f007f) | (x & 0x3f803f803f803f80) << 1;
  return (wide_t){x | 0x8080808080808080, value >> 56 & 0x7f};
}

static inline void put_wide(uint8_t *at, wide_t wide) {
  tnk__le_put64(at, wide.first);
  at[WIDE - 1] = wide.last;
}

/* A length in two bytes. */
static inline void put_length(uint8_t *at, size_t n) {
  at[0] = (uint8_t)(n | 0x80);
  at[1] = (uint8_t)(n >> 7);
}

/* Where a message begins whose length is not known yet. */
static inline uint8_t *begin_message(uint8_t *at, uint32_t field,
                                     uint8_t **message) {
  *message = put_varint(at, field);
  return *message + 2;
}

static inline void end_message(uint8_t *message, const uint8_t *at) {
  put_length(message, (size_t)(at - message) - 2);
}

#endif
