#include "tools/local/call/scan.h"

/* Wire types: the lowest three bits of a tag. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

/* seq_id of a ForwardBackwardRequest */
enum { FIELD_SEQ = 2 };

/* Read a varint and advance. Returns 0 if it is truncated or has more than 64
 * bits. */
static int varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
  uint64_t value = 0;

  for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;

    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *out = value;
      return 1;
    }
  }
  return 0;
}

int64_t local_scan_seq(const uint8_t *bytes, size_t n) {
  const uint8_t *at = bytes;
  const uint8_t *end = n > 0 ? bytes + n : bytes; /* empty may be NULL */
  int64_t seq = -1;
  uint64_t tag;

  while (varint(&at, end, &tag)) {
    uint64_t value = 0;
    uint64_t skip = 0;

    switch (tag & 7) {
    case VARINT:
      if (!varint(&at, end, &value))
        return seq;
      /* The last occurrence counts, as in a decoder. */
      if (tag >> 3 == FIELD_SEQ)
        seq = value <= INT64_MAX ? (int64_t)value : -1;
      break;
    case LENGTH:
      if (!varint(&at, end, &skip))
        return seq;
      break;
    case FIXED64:
      skip = 8;
      break;
    case FIXED32:
      skip = 4;
      break;
    default:
      return seq;
    }
    if (skip > (uint64_t)(end - at))
      return seq;
    at += skip;
  }
  return seq;
}
