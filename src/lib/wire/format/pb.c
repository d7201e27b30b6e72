/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/pb.h"

#include <string.h>

#include "lib/wire/format/le.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, MAX_VARINT = 10 };

/* Advance by n bytes. Returns 0 if none of them is to be written. Otherwise *lo
 * to *hi is the range to write, relative to the first of the n. */
static int advance(tnk__pb_t *pb, size_t n, size_t *lo, size_t *hi) {
  size_t start = pb->n;

  pb->n += n;
  /* Only counting, after the wanted range, or before it. */
  if (pb->at == NULL || start >= pb->to || pb->n <= pb->from)
    return 0;
  *lo = start < pb->from ? pb->from - start : 0;
  *hi = pb->n > pb->to ? pb->to - start : n;
  return *lo < *hi;
}

static void put(tnk__pb_t *pb, const void *data, size_t n) {
  size_t start = pb->n;
  size_t lo, hi;

  if (advance(pb, n, &lo, &hi))
    memcpy(pb->at + (start + lo - pb->from), (const uint8_t *)data + lo,
           hi - lo);
}

static void raw_varint(tnk__pb_t *pb, uint64_t value) {
  uint8_t bytes[MAX_VARINT];
  size_t n = 0;

  do {
    uint8_t byte = (uint8_t)(value & 0x7f);

    value >>= 7;
    bytes[n++] = (uint8_t)(value != 0 ? byte | 0x80 : byte);
  } while (value != 0);
  put(pb, bytes, n);
}

static void tag(tnk__pb_t *pb, uint32_t field, uint32_t type) {
  raw_varint(pb, field << 3 | type);
}

void tnk__pb_varint(tnk__pb_t *pb, uint32_t field, uint64_t value) {
  tag(pb, field, VARINT);
  raw_varint(pb, value);
}

void tnk__pb_double(tnk__pb_t *pb, uint32_t field, double value) {
  uint8_t bytes[8];
  uint64_t bits;

  memcpy(&bits, &value, sizeof(bits));
  tnk__le_put64(bytes, bits);
  tag(pb, field, FIXED64);
  put(pb, bytes, sizeof(bytes));
}

static void head(tnk__pb_t *pb, uint32_t field, size_t n) {
  tag(pb, field, LENGTH);
  raw_varint(pb, n);
}

uint8_t *tnk__pb_open(tnk__pb_t *pb, uint32_t field, size_t n) {
  uint8_t *at;

  head(pb, field, n);
  at = pb->at == NULL ? NULL : pb->at + (pb->n - pb->from);
  pb->n += n;
  return at;
}

void tnk__pb_bytes(tnk__pb_t *pb, uint32_t field, const void *data, size_t n) {
  head(pb, field, n);
  put(pb, data, n);
}

void tnk__pb_text(tnk__pb_t *pb, uint32_t field, const char *text) {
  tnk__pb_bytes(pb, field, text, strlen(text));
}

void tnk__pb_array(tnk__pb_t *pb, uint32_t field, const void *array, size_t n,
                   size_t size, tnk__pb_fill_t fill) {
  size_t start, at, end;

  head(pb, field, n * size);
  start = pb->n;
  if (!advance(pb, n * size, &at, &end))
    return;
  while (at < end) {
    uint8_t *to = pb->at + (start + at - pb->from);
    size_t skip = at % size;
    size_t whole = (end - at) / size;

    if (skip == 0 && whole > 0) {
      fill(to, array, at / size, whole);
      at += whole * size;
    } else {
      /* An element at an end of the wanted range is written partly. */
      uint8_t element[8];
      size_t part = size - skip < end - at ? size - skip : end - at;

      fill(element, array, at / size, 1);
      memcpy(to, element + skip, part);
      at += part;
    }
  }
}

void tnk__pb_message(tnk__pb_t *pb, uint32_t field, tnk__pb_body_t body,
                     const void *message) {
  tnk__pb_t inner = {0};
  size_t lo, hi;

  /* Count it, because its length precedes it. Then write it only if a part of
   * it is wanted. Messages outside the range cost only the count. */
  body(&inner, message);
  head(pb, field, inner.n);
  if (!advance(pb, inner.n, &lo, &hi))
    return;
  pb->n -= inner.n;
  body(pb, message);
}

void tnk__pb_packed(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                    size_t n) {
  tnk__pb_t inner = {0};

  for (size_t i = 0; i < n; i++)
    raw_varint(&inner, (uint64_t)values[i]);
  head(pb, field, inner.n);
  for (size_t i = 0; i < n; i++)
    raw_varint(pb, (uint64_t)values[i]);
}
