/* SPDX-License-Identifier: MIT */
#include "lib/otlp/response.h"

#include <string.h>

#include "tnk/error.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

/* The rest of a message. */
typedef struct {
  const uint8_t *at;
  size_t n;
} span_t;

/* One field. `data` is set for LENGTH, `value` for VARINT. */
typedef struct {
  uint64_t number;
  uint32_t type;
  uint64_t value;
  span_t data;
} field_t;

/* Returns 0 if there is no whole number of at most 64 bits. */
static int read_varint(span_t *from, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte;

    if (from->n == 0)
      return 0;
    byte = *from->at;
    from->at++;
    from->n--;
    if (shift == 63 && byte > 1)
      return 0;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return 1;
  }
  return 0;
}

static int take(span_t *from, uint64_t n, span_t *out) {
  if (n > from->n)
    return 0;
  out->at = from->at;
  out->n = (size_t)n;
  from->at += n;
  from->n -= (size_t)n;
  return 1;
}

static int read_field(span_t *from, field_t *out) {
  uint64_t tag, n;

  memset(out, 0, sizeof(*out));
  if (!read_varint(from, &tag))
    return 0;
  out->number = tag >> 3;
  out->type = (uint32_t)(tag & 7);
  if (out->number == 0)
    return 0;
  switch (out->type) {
  case VARINT:
    return read_varint(from, &out->value);
  case FIXED64:
    return take(from, 8, &out->data);
  case LENGTH:
    return read_varint(from, &n) && take(from, n, &out->data);
  case FIXED32:
    return take(from, 4, &out->data);
  default: /* groups are not used since proto3 */
    return 0;
  }
}

static int read_partial(tnk__otlp_response_t *out, span_t from) {
  field_t field;

  while (from.n > 0) {
    if (!read_field(&from, &field))
      return 0;
    if (field.number == 1 && field.type == VARINT)
      memcpy(&out->n_rejected, &field.value, sizeof(out->n_rejected));
    if (field.number == 2 && field.type == LENGTH) {
      out->message = field.data.at;
      out->n_message = field.data.n;
    }
  }
  return 1;
}

int tnk__otlp_response_read(tnk__otlp_response_t *out, const uint8_t *body,
                            size_t n) {
  span_t from = {body, n};
  field_t field;

  memset(out, 0, sizeof(*out));
  while (from.n > 0) {
    if (!read_field(&from, &field))
      return TNK_EPROTO;
    if (field.number == 1 && field.type == LENGTH &&
        !read_partial(out, field.data))
      return TNK_EPROTO;
  }
  /* A number below zero means nothing. */
  if (out->n_rejected < 0)
    out->n_rejected = 0;
  return TNK_OK;
}
