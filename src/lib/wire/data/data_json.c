/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/data_json.h"

#include "lib/base/base64.h"
#include "lib/wire/data/data.h"

/* ---- Tensors ---- */

static void put_floats(tnk__json_writer_t *w, const tnk_tensor_t *tensor) {
  tnk__json_begin_array(w);
  for (size_t i = 0; i < tensor->n_values; i++)
    tnk__json_float(w, (float)tnk__tensor_float(tensor, i));
  tnk__json_end(w);
}

static void put_elements(tnk__json_writer_t *w, const tnk_tensor_t *tensor) {
  if (!tnk__dtype_is_int(tensor->dtype))
    put_floats(w, tensor);
  else if (tensor->dtype == TNK_I32)
    tnk__json_int32s(w, tensor->data, tensor->n_values);
  else
    tnk__json_int64s(w, tensor->data, tensor->n_values);
}

void tnk__data_json_tensor(tnk__json_writer_t *w, const tnk_tensor_t *tensor) {
  const int64_t n_values = (int64_t)tensor->n_values;

  tnk__json_begin_object(w);
  tnk__json_key(w, "data");
  put_elements(w, tensor);
  tnk__json_put_text(w, "dtype",
                     tnk__dtype_is_int(tensor->dtype) ? "int64" : "float32");
  tnk__json_key(w, "shape");
  if (tensor->n_dims == 0)
    tnk__json_int64s(w, &n_values, 1);
  else
    tnk__json_int64s(w, tensor->shape, tensor->n_dims);
  if (tensor->crow != NULL) {
    tnk__json_key(w, "sparse_crow_indices");
    tnk__json_int64s(w, tensor->crow, tnk__tensor_n_crow(tensor));
    tnk__json_key(w, "sparse_col_indices");
    tnk__json_int64s(w, tensor->col, tensor->n_values);
  }
  tnk__json_end(w);
}

/* ---- Model inputs ---- */

/* Base64 needs no escapes, so it is written directly. */
static void put_base64(tnk__json_writer_t *w, const void *data, size_t n) {
  tnk__json_raw(w, "\"", 1);
  tnk__base64_write(w->buf, data, n);
  tnk__buf_byte(w->buf, '"');
}

static void put_image(tnk__json_writer_t *w, const tnk_chunk_t *chunk) {
  const char *format = chunk->format == TNK_PNG ? "png" : "jpeg";

  if (chunk->kind == TNK_CHUNK_IMAGE) {
    tnk__json_key(w, "data");
    put_base64(w, chunk->bytes, chunk->n_bytes);
    tnk__json_put_text(w, "format", format);
  } else {
    tnk__json_put_text(w, "format", format);
    tnk__json_put_text(w, "location", chunk->location);
  }
  if (chunk->expected_tokens > 0)
    tnk__json_put_int(w, "expected_tokens", chunk->expected_tokens);
  tnk__json_put_text(w, "type",
                     chunk->kind == TNK_CHUNK_IMAGE ? "image"
                                                    : "image_asset_pointer");
}

static void put_chunk(tnk__json_writer_t *w, const tnk_chunk_t *chunk) {
  tnk__json_begin_object(w);
  if (chunk->kind == TNK_CHUNK_TEXT) {
    tnk__json_key(w, "tokens");
    tnk__json_int32s(w, chunk->tokens, chunk->n_tokens);
    tnk__json_put_text(w, "type", "encoded_text");
  } else if (chunk->kind == TNK_CHUNK_DMEL) {
    tnk__json_key(w, "dmel");
    put_base64(w, chunk->bytes, chunk->n_bytes);
    tnk__json_put_text(w, "type", "dmel");
  } else {
    put_image(w, chunk);
  }
  tnk__json_end(w);
}

void tnk__data_json_input(tnk__json_writer_t *w,
                          const tnk_model_input_t *input) {
  tnk__json_begin_object(w);
  tnk__json_key(w, "chunks");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < tnk__input_n_chunks(input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    put_chunk(w, &chunk);
  }
  tnk__json_end(w);
  tnk__json_end(w);
}

/* ---- Examples ---- */

void tnk__data_json_datum(tnk__json_writer_t *w, const tnk_datum_t *datum) {
  tnk__json_begin_object(w);
  tnk__json_key(w, "loss_fn_inputs");
  tnk__json_begin_object(w);
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_loss_input_t input = tnk__datum_input_at(datum, i);

    tnk__json_key(w, input.name);
    tnk__data_json_tensor(w, &input.tensor);
  }
  tnk__json_end(w);
  tnk__json_key(w, "model_input");
  tnk__data_json_input(w, &datum->input);
  tnk__json_end(w);
}
