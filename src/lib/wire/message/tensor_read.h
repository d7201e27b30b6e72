#ifndef TNK_LIB_WIRE_MESSAGE_TENSOR_READ_H
#define TNK_LIB_WIRE_MESSAGE_TENSOR_READ_H

#include <jansson.h>

#include "tinker.pb-c.h"

#include "lib/wire/format/room.h"
#include "tnk/data.h"

/*
 * Tensors out of results. What they point to lies in the room, in the host's
 * byte order and aligned. Failures stick to the room; the functions that
 * return an int give 0 then.
 */

/* Bytes of an element of this type on the wire, 0 for an unknown type. */
size_t tnk__wire_size(int dtype);

/* An array of the wire, of elements of 4 or 8 bytes, turned into the host's
 * order where it lies, which is in the room: protobuf-c has put it there. NULL
 * for an empty one. */
const void *tnk__wire_array(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                            size_t size, size_t *n);
/* The same for a declared type: sets dtype, data and n_values. int32 and
 * bfloat16 are widened. */
int tnk__wire_elements(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                       int dtype, tnk_tensor_t *out);
/* A tensor that stands alone, not one of a batch. */
int tnk__wire_tensor(tnk__room_t *room, const TinkerPublic__Tensor *message,
                     tnk_tensor_t *out);

/* From JSON: {"data": [...], "dtype", "shape", "sparse_crow_indices",
 * "sparse_col_indices"}, a bare array of numbers, or a bare number. */
int tnk__json_tensor(tnk__room_t *room, const json_t *value, tnk_tensor_t *out);
/* Read an array of floats; null counts as NaN. NULL for an empty one, and after
 * a failure. */
float *tnk__json_floats_of(tnk__room_t *room, const json_t *array, size_t *n);
/* The nearest float; infinite beyond the range. */
float tnk__float_of(double value);

#endif
