#ifndef TNK_LIB_WIRE_DATA_DATA_H
#define TNK_LIB_WIRE_DATA_DATA_H

#include "lib/base/arena.h"
#include "tnk/data.h"

/*
 * Helpers on the views of tnk/data.h. They expect data that
 * lib/wire/data/check.h has accepted, and do not check it again.
 */

/* The bytes of an element in memory and on the wire, where i32 is widened and
 * f64 narrowed. 0 for an unknown type. */
size_t tnk__dtype_size(tnk_dtype_t dtype);
size_t tnk__dtype_wire_size(tnk_dtype_t dtype);
/* Whether the elements are whole numbers. */
int tnk__dtype_is_int(tnk_dtype_t dtype);

/* Work out the product of the shape: 1 on success, 0 when a dimension is
 * negative or the product does not fit. Without dimensions it is n_values. */
int tnk__tensor_elements(const tnk_tensor_t *tensor, size_t *out);
/* The number of entries of crow: rows + 1, or 0 for a dense tensor. */
size_t tnk__tensor_n_crow(const tnk_tensor_t *tensor);
/* Element i of an integer tensor, and of a floating one. */
int64_t tnk__tensor_int(const tnk_tensor_t *tensor, size_t i);
double tnk__tensor_float(const tnk_tensor_t *tensor, size_t i);

/* The number of tokens that the model reads, or -1 when an image does not say
 * how many it stands for. */
int64_t tnk__input_length(const tnk_model_input_t *input);
/* The same as far as they are told; *is_whole: that is all of them. */
uint64_t tnk__input_tokens(const tnk_model_input_t *input, int *is_whole);
/* The chunks of an input in either form: text alone is one of them. */
size_t tnk__input_n_chunks(const tnk_model_input_t *input);
tnk_chunk_t tnk__input_chunk(const tnk_model_input_t *input, size_t i);

/* The loss inputs of a datum in either form: targets, then weights, then the
 * list. */
size_t tnk__datum_n_inputs(const tnk_datum_t *datum);
tnk_loss_input_t tnk__datum_input_at(const tnk_datum_t *datum, size_t i);
/* Look for a loss input by its name, and give its index; SIZE_MAX if there is
 * none. */
size_t tnk__datum_find(const tnk_datum_t *datum, const char *name);

/* The service's estimates of size, by which slices are cut and budgets counted;
 * they differ between training and sampling. */
size_t tnk__datum_bytes(const tnk_datum_t *datum);
size_t tnk__prompt_bytes(const tnk_model_input_t *prompt);

/* Make a deep copy in one piece of the arena; NULL when it gives none. */
tnk_datum_t *tnk__data_copy(tnk__arena_t *arena, const tnk_datum_t *data,
                            size_t n);

#endif
