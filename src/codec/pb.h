#ifndef TNK_CODEC_PB_H
#define TNK_CODEC_PB_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes protobuf straight from the caller's arrays. A message is written
 * twice by the same code: first with `at` NULL, which only counts, because a
 * message stands behind its own length.
 */
typedef struct {
  uint8_t *at; /* where the next byte goes; NULL: only count */
  size_t n;    /* bytes so far */
} tnk__pb_t;

/* Writes the fields of one message. */
typedef void (*tnk__pb_body_t)(tnk__pb_t *pb, const void *message);

void tnk__pb_varint(tnk__pb_t *pb, uint32_t field, uint64_t value);
void tnk__pb_double(tnk__pb_t *pb, uint32_t field, double value);
void tnk__pb_text(tnk__pb_t *pb, uint32_t field, const char *text);
void tnk__pb_bytes(tnk__pb_t *pb, uint32_t field, const void *data, size_t n);
/* The head of a field of n bytes. Returns where they go, NULL when only
 * counting; the bytes themselves are counted already. */
uint8_t *tnk__pb_open(tnk__pb_t *pb, uint32_t field, size_t n);
void tnk__pb_message(tnk__pb_t *pb, uint32_t field, tnk__pb_body_t body,
                     const void *message);
/* A packed array of varints, from the caller's int64_t. */
void tnk__pb_packed(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                    size_t n);

#endif
