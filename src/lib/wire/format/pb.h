/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_PB_H
#define TNK_LIB_WIRE_FORMAT_PB_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes protobuf directly from the caller's arrays. The same code writes a
 * message twice, because its length precedes it. The first time `at` is NULL,
 * which only counts.
 *
 * Any part of a message can be written: only bytes with positions in [from, to)
 * are stored. Other bytes cost only the counting of their length.
 */
typedef struct {
  uint8_t *at; /* destination of the byte at `from`; NULL: only count */
  size_t n;    /* position of the next byte */
  size_t from;
  size_t to;
} tnk__pb_t;

/* A writer for a whole message. {0} only counts. */
static inline tnk__pb_t tnk__pb_whole(uint8_t *at) {
  return (tnk__pb_t){.at = at, .to = SIZE_MAX};
}

/* Writes the fields of a message. */
typedef void (*tnk__pb_body_t)(tnk__pb_t *pb, const void *message);
/* Writes n elements from index `first`, each at most 8 bytes in encoded
 * form. */
typedef void (*tnk__pb_fill_t)(uint8_t *to, const void *array, size_t first,
                               size_t n);

void tnk__pb_varint(tnk__pb_t *pb, uint32_t field, uint64_t value);
void tnk__pb_double(tnk__pb_t *pb, uint32_t field, double value);
void tnk__pb_text(tnk__pb_t *pb, uint32_t field, const char *text);
void tnk__pb_bytes(tnk__pb_t *pb, uint32_t field, const void *data, size_t n);
/* Write the head of a field of n bytes. Returns the destination of these bytes,
 * or NULL when only counting. The bytes are counted already. Only for whole
 * messages. */
uint8_t *tnk__pb_open(tnk__pb_t *pb, uint32_t field, size_t n);
/* Write a field of n elements of `size` bytes without an intermediate array. */
void tnk__pb_array(tnk__pb_t *pb, uint32_t field, const void *array, size_t n,
                   size_t size, tnk__pb_fill_t fill);
void tnk__pb_message(tnk__pb_t *pb, uint32_t field, tnk__pb_body_t body,
                     const void *message);
/* Write a packed array of varints from the caller's int64_t values. */
void tnk__pb_packed(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                    size_t n);

#endif
