#include "codec/pb.h"

#include <string.h>

#include "codec/le.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static void raw_varint(tnk__pb_t *pb, uint64_t value) {
  do {
    uint8_t byte = (uint8_t)(value & 0x7f);

    value >>= 7;
    if (pb->at != NULL)
      *pb->at++ = (uint8_t)(value != 0 ? byte | 0x80 : byte);
    pb->n++;
  } while (value != 0);
}

static void tag(tnk__pb_t *pb, uint32_t field, uint32_t type) {
  raw_varint(pb, field << 3 | type);
}

void tnk__pb_varint(tnk__pb_t *pb, uint32_t field, uint64_t value) {
  tag(pb, field, VARINT);
  raw_varint(pb, value);
}

void tnk__pb_double(tnk__pb_t *pb, uint32_t field, double value) {
  uint64_t bits;

  memcpy(&bits, &value, sizeof(bits));
  tag(pb, field, FIXED64);
  if (pb->at != NULL) {
    tnk__le_put64(pb->at, bits);
    pb->at += 8;
  }
  pb->n += 8;
}

uint8_t *tnk__pb_open(tnk__pb_t *pb, uint32_t field, size_t n) {
  uint8_t *at;

  tag(pb, field, LENGTH);
  raw_varint(pb, n);
  at = pb->at;
  if (at != NULL)
    pb->at += n;
  pb->n += n;
  return at;
}

void tnk__pb_bytes(tnk__pb_t *pb, uint32_t field, const void *data, size_t n) {
  uint8_t *at = tnk__pb_open(pb, field, n);

  if (at != NULL && n > 0)
    memcpy(at, data, n);
}

void tnk__pb_text(tnk__pb_t *pb, uint32_t field, const char *text) {
  tnk__pb_bytes(pb, field, text, strlen(text));
}

void tnk__pb_message(tnk__pb_t *pb, uint32_t field, tnk__pb_body_t body,
                     const void *message) {
  tnk__pb_t inner = {0};

  body(&inner, message);
  inner.at = tnk__pb_open(pb, field, inner.n);
  if (inner.at != NULL)
    body(&inner, message);
}

void tnk__pb_packed(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                    size_t n) {
  tnk__pb_t inner = {0};

  for (size_t i = 0; i < n; i++)
    raw_varint(&inner, (uint64_t)values[i]);
  inner.at = tnk__pb_open(pb, field, inner.n);
  for (size_t i = 0; i < n && inner.at != NULL; i++)
    raw_varint(&inner, (uint64_t)values[i]);
}
