#ifndef TNK_LIB_WIRE_FORMAT_PB_H
#define TNK_LIB_WIRE_FORMAT_PB_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes protobuf straight from the caller's arrays. A message is written
 * twice by the same code: first with `at` NULL, which only counts, because a
 * message stands behind its own length.
 *
 * Any part of a message can be written alone: only the bytes whose positions
 * are in [from, to) are, and what lies outside costs no more than its length
 * takes to count.
 */
typedef struct {
  uint8_t *at; /* where the byte at `from` goes; NULL: only count */
  size_t n;    /* position of the next byte */
  size_t from;
  size_t to;
} tnk__pb_t;

/* A writer of a message as a whole; {0} counts it. */
static inline tnk__pb_t tnk__pb_whole(uint8_t *at) {
  return (tnk__pb_t){.at = at, .to = SIZE_MAX};
}

/* Writes the fields of one message. */
typedef void (*tnk__pb_body_t)(tnk__pb_t *pb, const void *message);
/* Writes n elements, of at most 8 bytes each on the wire, from the first-th. */
typedef void (*tnk__pb_fill_t)(uint8_t *to, const void *array, size_t first,
                               size_t n);

void tnk__pb_varint(tnk__pb_t *pb, uint32_t field, uint64_t value);
void tnk__pb_double(tnk__pb_t *pb, uint32_t field, double value);
void tnk__pb_text(tnk__pb_t *pb, uint32_t field, const char *text);
void tnk__pb_bytes(tnk__pb_t *pb, uint32_t field, const void *data, size_t n);
/* Write the head of a field of n bytes. Returns where they go, NULL when only
 * counting; the bytes themselves are counted already. For whole messages. */
uint8_t *tnk__pb_open(tnk__pb_t *pb, uint32_t field, size_t n);
/* Write a field of n elements of `size` bytes, without an array in between. */
void tnk__pb_array(tnk__pb_t *pb, uint32_t field, const void *array, size_t n,
                   size_t size, tnk__pb_fill_t fill);
void tnk__pb_message(tnk__pb_t *pb, uint32_t field, tnk__pb_body_t body,
                     const void *message);
/* Write a packed array of varints, from the caller's int64_t. */
void tnk__pb_packed(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                    size_t n);

#endif
