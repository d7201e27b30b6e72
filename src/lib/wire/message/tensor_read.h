/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_TENSOR_READ_H
#define TNK_LIB_WIRE_MESSAGE_TENSOR_READ_H

#include <jansson.h>

#include "tinker.pb-c.h"

#include "lib/wire/format/room.h"
#include "tnk/data.h"

/*
 * Tensors in results. Their arrays are in the room, aligned and in the host's
 * byte order. Failures are kept in the room; functions that return an int
 * return 0 then.
 */

/* The size of an element of this type in a message, or 0 for an unknown
 * type. */
size_t tnk__wire_size(int dtype);

/* Convert an array of elements of 4 or 8 bytes to the host's byte order in
 * place. protobuf-c has allocated it in the room. Returns NULL for an empty
 * array. */
const void *tnk__wire_array(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                            size_t size, size_t *n);
/* The same for a declared type. Sets dtype, data and n_values. int32 and
 * bfloat16 are widened. */
int tnk__wire_elements(tnk__room_t *room, const ProtobufCBinaryData *bytes,
                       int dtype, tnk_tensor_t *out);
/* Read a single tensor that is not part of a batch. */
int tnk__wire_tensor(tnk__room_t *room, const TinkerPublic__Tensor *message,
                     tnk_tensor_t *out);

/* Read a tensor from JSON: {"data": [...], "dtype", "shape",
 * "sparse_crow_indices", "sparse_col_indices"}, a bare array of numbers, or a
 * bare number. */
int tnk__json_tensor(tnk__room_t *room, const json_t *value, tnk_tensor_t *out);
/* Read an array of floats; null becomes NaN. Returns NULL for an empty array
 * and after a failure. */
float *tnk__json_floats_of(tnk__room_t *room, const json_t *array, size_t *n);
/* The nearest float; infinite if it is out of range. */
float tnk__float_of(double value);

#endif
