/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_DATA_JSON_H
#define TNK_LIB_WIRE_DATA_DATA_JSON_H

#include "lib/wire/format/json_write.h"
#include "tnk/data.h"

/* Writes the structs of tnk/data.h as JSON. They must be checked by
 * lib/wire/data/check.h. Protocol: reference, JSON training wire used before
 * 0.25. */

/* Write a model input as an object with the member "chunks". */
void tnk__data_json_input(tnk__json_writer_t *w,
                          const tnk_model_input_t *input);
/* Write a tensor with its type and shape. i32 is written as int64, f64 as
 * float32. */
void tnk__data_json_tensor(tnk__json_writer_t *w, const tnk_tensor_t *tensor);
/* Write an example. Its provenance spans are omitted, because this form has no
 * members for them. */
void tnk__data_json_datum(tnk__json_writer_t *w, const tnk_datum_t *datum);

#endif
