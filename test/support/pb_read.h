/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_PB_READ_H
#define TNK_TEST_SUPPORT_PB_READ_H

#include <string.h>

#include "support/test.h"

/*
 * Reads protobuf for tests, without the library's own code. Whatever is
 * malformed or missing fails the test.
 */
typedef struct {
  const uint8_t *at;
  size_t n;
} pb_t;

typedef struct {
  uint32_t number;
  uint32_t type;
  uint64_t value; /* of a number of any width */
  pb_t data;      /* of a string or a message */
} pb_field_t;

static inline uint64_t pb_varint(pb_t *in) {
  uint64_t value = 0;

  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte;

    CHECK(in->n > 0 && shift < 64);
    byte = *in->at++;
    in->n--;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return value;
  }
}

static inline uint64_t pb_fixed(pb_t *in, size_t n) {
  uint64_t value = 0;

  CHECK(in->n >= n);
  for (size_t i = 0; i < n; i++)
    value |= (uint64_t)in->at[i] << (8 * i);
  in->at += n;
  in->n -= n;
  return value;
}

static inline pb_field_t pb_next(pb_t *in) {
  const uint64_t tag = pb_varint(in);
  pb_field_t field = {.number = (uint32_t)(tag >> 3),
                      .type = (uint32_t)(tag & 7)};

  if (field.type == 0)
    field.value = pb_varint(in);
  else if (field.type == 1)
    field.value = pb_fixed(in, 8);
  else if (field.type == 5)
    field.value = pb_fixed(in, 4);
  else {
    CHECK_INT(field.type, 2);
    field.data.n = (size_t)pb_varint(in);
    CHECK(field.data.n <= in->n);
    field.data.at = in->at;
    in->at += field.data.n;
    in->n -= field.data.n;
  }
  return field;
}

static inline size_t pb_count(pb_t message, uint32_t number) {
  size_t n = 0;

  while (message.n > 0)
    n += pb_next(&message).number == number;
  return n;
}

static inline pb_field_t pb_field(pb_t message, uint32_t number, size_t i) {
  while (message.n > 0) {
    const pb_field_t field = pb_next(&message);

    if (field.number == number && i-- == 0)
      return field;
  }
  test_fail(__FILE__, __LINE__, "there is no field %u", number);
}

static inline pb_t pb_sub(pb_t message, uint32_t number, size_t i) {
  const pb_field_t field = pb_field(message, number, i);

  CHECK_INT(field.type, 2);
  return field.data;
}

static inline uint64_t pb_number(pb_t message, uint32_t number) {
  return pb_field(message, number, 0).value;
}

static inline double pb_double(pb_t message, uint32_t number) {
  const uint64_t bits = pb_number(message, number);
  double value;

  memcpy(&value, &bits, sizeof(value));
  return value;
}

/* A string, in memory that lasts until the next-but-seven call. */
static inline const char *pb_text(pb_t message, uint32_t number) {
  static char texts[8][512];
  static int at;
  const pb_t text = pb_sub(message, number, 0);
  char *out = texts[at++ % 8];

  CHECK(text.n < sizeof(texts[0]));
  if (text.n > 0)
    memcpy(out, text.at, text.n);
  out[text.n] = '\0';
  return out;
}

/* Whether a list of KeyValue has this key; its AnyValue. */
static inline int pb_has(pb_t message, uint32_t number, const char *key,
                         pb_t *value) {
  for (size_t i = 0; i < pb_count(message, number); i++) {
    const pb_t pair = pb_sub(message, number, i);

    if (strcmp(pb_text(pair, 1), key) != 0)
      continue;
    *value = pb_sub(pair, 2, 0);
    return 1;
  }
  return 0;
}

static inline pb_t pb_attribute(pb_t message, uint32_t number,
                                const char *key) {
  pb_t value;

  if (!pb_has(message, number, key, &value))
    test_fail(__FILE__, __LINE__, "there is no attribute %s", key);
  return value;
}

#endif
