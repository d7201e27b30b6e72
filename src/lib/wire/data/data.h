/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_DATA_H
#define TNK_LIB_WIRE_DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "tnk/data.h"

/* The number of tokens of a dMel chunk, from the head of its container. The
 * service reads the rest. Returns -1 for other data, with the end of a sentence
 * in `why`, which may be NULL. Protocol: protobuf, dmel header. */
int64_t tnk__dmel_length(const void *bytes, size_t n, const char **why);

/*
 * Functions on the structs of tnk/data.h. They expect data that
 * lib/wire/data/check.h has accepted, and do not check it again.
 */

/* The size of an element in memory and in a message, where i32 is widened and
 * f64 narrowed. 0 for an unknown type. */
size_t tnk__dtype_size(tnk_dtype_t dtype);
size_t tnk__dtype_wire_size(tnk_dtype_t dtype);
/* Returns whether the elements are integers. */
int tnk__dtype_is_int(tnk_dtype_t dtype);

/* Compute the product of the shape. Returns 1, or 0 if a dimension is negative
 * or the product overflows. Without dimensions it is n_values. */
int tnk__tensor_elements(const tnk_tensor_t *tensor, size_t *out);
/* The number of entries of crow: rows + 1, or 0 for a dense tensor. */
size_t tnk__tensor_n_crow(const tnk_tensor_t *tensor);
/* Element i of an integer tensor or of a floating-point tensor. */
int64_t tnk__tensor_int(const tnk_tensor_t *tensor, size_t i);
double tnk__tensor_float(const tnk_tensor_t *tensor, size_t i);

/* The number of tokens that the model reads, or -1 if an image does not state
 * its number of tokens. */
int64_t tnk__input_length(const tnk_model_input_t *input);
/* The sum of the known numbers of tokens. *is_whole: all of them are known. */
uint64_t tnk__input_tokens(const tnk_model_input_t *input, int *is_whole);
/* The chunks of an input in either form. Plain tokens count as one chunk. */
size_t tnk__input_n_chunks(const tnk_model_input_t *input);
tnk_chunk_t tnk__input_chunk(const tnk_model_input_t *input, size_t i);

/* The loss inputs of a datum in either form: targets, then weights, then the
 * list. */
size_t tnk__datum_n_inputs(const tnk_datum_t *datum);
tnk_loss_input_t tnk__datum_input_at(const tnk_datum_t *datum, size_t i);
/* The index of the loss input with this name, or SIZE_MAX if it is absent. */
size_t tnk__datum_find(const tnk_datum_t *datum, const char *name);
/* Add the cross entropy of an example to *sum, from its logprobs (NULL: none).
 * Returns 0 if it cannot be computed. */
int tnk__datum_add_loss(double *sum, const tnk_tensor_t *logprobs,
                        const tnk_datum_t *datum);

/* The service's estimates of size, which limit chunks and count toward byte
 * budgets. They differ between training and sampling. */
size_t tnk__datum_bytes(const tnk_datum_t *datum);
size_t tnk__prompt_bytes(const tnk_model_input_t *prompt);

/* Make a deep copy in one block of the arena. NULL if out of memory. */
tnk_datum_t *tnk__data_copy(tnk__arena_t *arena, const tnk_datum_t *data,
                            size_t n);

#endif
