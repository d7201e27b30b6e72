/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/fwdbwd.h"

#include "lib/wire/data/data.h"
#include "lib/wire/data/data_json.h"
#include "lib/wire/format/le.h"
#include "lib/wire/format/pb.h"
#include "tnk/error.h"

/* Values of DType that a request may contain. */
enum { DTYPE_FLOAT32 = 1, DTYPE_INT64 = 2 };

/* ---- Elements in the type of the message ---- */

static void fill32(uint8_t *to, const void *array, size_t first, size_t n) {
  tnk__le_copy(to, (const uint8_t *)array + 4 * first, n, 4);
}

static void fill64(uint8_t *to, const void *array, size_t first, size_t n) {
  tnk__le_copy(to, (const uint8_t *)array + 8 * first, n, 8);
}

static void widen(uint8_t *to, const void *array, size_t first, size_t n) {
  const int32_t *from = (const int32_t *)array + first;

  for (size_t i = 0; i < n; i++) {
    int64_t value = from[i];

    tnk__le_copy(to + 8 * i, &value, 1, 8);
  }
}

static void narrow(uint8_t *to, const void *array, size_t first, size_t n) {
  const double *from = (const double *)array + first;

  for (size_t i = 0; i < n; i++) {
    float value = (float)from[i];

    tnk__le_copy(to + 4 * i, &value, 1, 4);
  }
}

static void put_elements(tnk__pb_t *pb, uint32_t field,
                         const tnk_tensor_t *tensor) {
  tnk__pb_fill_t fill = tensor->dtype == TNK_I32   ? widen
                        : tensor->dtype == TNK_F64 ? narrow
                        : tensor->dtype == TNK_I64 ? fill64
                                                   : fill32;

  tnk__pb_array(pb, field, tensor->data, tensor->n_values,
                tnk__dtype_wire_size(tensor->dtype), fill);
}

/* ---- Messages ---- */

/* Empty arrays are absent, as always in proto3; crow is never empty. */
static void put_csr(tnk__pb_t *pb, const void *message) {
  const tnk_tensor_t *tensor = message;

  if (tensor->n_values > 0)
    put_elements(pb, 1, tensor);
  tnk__pb_array(pb, 2, tensor->crow, tnk__tensor_n_crow(tensor), 8, fill64);
  if (tensor->n_values > 0)
    tnk__pb_array(pb, 3, tensor->col, tensor->n_values, 8, fill64);
}

static void put_tensor(tnk__pb_t *pb, const void *message) {
  const tnk_tensor_t *tensor = message;
  int64_t n = (int64_t)tensor->n_values;

  if (tensor->crow != NULL)
    tnk__pb_message(pb, 2, put_csr, tensor);
  else
    put_elements(pb, 1, tensor);
  tnk__pb_varint(
      pb, 3, tnk__dtype_is_int(tensor->dtype) ? DTYPE_INT64 : DTYPE_FLOAT32);
  /* Without dimensions it is a vector. Its shape is written explicitly, because
   * an absent shape would mean a scalar. */
  if (tensor->n_dims == 0)
    tnk__pb_packed(pb, 4, &n, 1);
  else
    tnk__pb_packed(pb, 4, tensor->shape, tensor->n_dims);
}

static void put_loss_input(tnk__pb_t *pb, const void *message) {
  const tnk_loss_input_t *input = message;

  tnk__pb_text(pb, 1, input->name);
  tnk__pb_message(pb, 2, put_tensor, &input->tensor);
}

static void put_text_chunk(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  if (chunk->n_tokens > 0)
    tnk__pb_array(pb, 1, chunk->tokens, chunk->n_tokens, 4, fill32);
}

static void put_image(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  tnk__pb_bytes(pb, 1, chunk->bytes, chunk->n_bytes);
  tnk__pb_text(pb, 2, chunk->format == TNK_PNG ? "png" : "jpeg");
  /* 0 and negative values mean that the caller does not know the number. */
  if (chunk->expected_tokens > 0)
    tnk__pb_varint(pb, 3, (uint64_t)chunk->expected_tokens);
}

static void put_dmel(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  tnk__pb_bytes(pb, 1, chunk->bytes, chunk->n_bytes);
}

static void put_chunk(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  if (chunk->kind == TNK_CHUNK_TEXT)
    tnk__pb_message(pb, 1, put_text_chunk, chunk);
  else if (chunk->kind == TNK_CHUNK_DMEL)
    tnk__pb_message(pb, 3, put_dmel, chunk);
  else
    tnk__pb_message(pb, 2, put_image, chunk);
}

static void put_run(tnk__pb_t *pb, const void *message) {
  const tnk_span_t *span = message;

  tnk__pb_text(pb, 1, span->sequence_id);
  if (span->offset != 0)
    tnk__pb_varint(pb, 2, (uint64_t)span->offset);
  if (span->length != 0)
    tnk__pb_varint(pb, 3, (uint64_t)span->length);
}

static void put_span(tnk__pb_t *pb, const void *message) {
  const tnk_span_t *span = message;

  tnk__pb_message(pb, span->kind == TNK_SPAN_PROMPT ? 1 : 2, put_run, span);
}

static void put_datum(tnk__pb_t *pb, const void *message) {
  const tnk_datum_t *datum = message;

  for (size_t i = 0; i < tnk__input_n_chunks(&datum->input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(&datum->input, i);

    tnk__pb_message(pb, 1, put_chunk, &chunk);
  }
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_loss_input_t input = tnk__datum_input_at(datum, i);

    tnk__pb_message(pb, 2, put_loss_input, &input);
  }
  for (size_t i = 0; i < datum->n_input_spans; i++)
    tnk__pb_message(pb, 3, put_span, &datum->input_spans[i]);
  for (size_t i = 0; i < datum->n_loss_input_spans; i++)
    tnk__pb_message(pb, 4, put_span, &datum->loss_input_spans[i]);
}

static void put_number_setting(tnk__pb_t *pb, const void *message) {
  const tnk_loss_setting_t *setting = message;

  tnk__pb_text(pb, 1, setting->name);
  tnk__pb_double(pb, 2, setting->number);
}

static void put_setting_value(tnk__pb_t *pb, const void *message) {
  const tnk_loss_setting_t *setting = message;

  if (setting->text != NULL)
    tnk__pb_text(pb, 2, setting->text);
  else
    tnk__pb_double(pb, 1, setting->number);
}

static void put_setting(tnk__pb_t *pb, const void *message) {
  const tnk_loss_setting_t *setting = message;

  tnk__pb_text(pb, 1, setting->name);
  tnk__pb_message(pb, 2, put_setting_value, setting);
}

/* ---- The request: before the data, the data, and the rest ---- */

static void put_front(tnk__pb_t *pb, const tnk__fwdbwd_t *request) {
  if (request->model_id[0] != '\0')
    tnk__pb_text(pb, 1, request->model_id);
  tnk__pb_varint(pb, 2, (uint64_t)request->seq_id);
}

static void put_back(tnk__pb_t *pb, const tnk__fwdbwd_t *request) {
  if (request->loss_fn[0] != '\0')
    tnk__pb_text(pb, 4, request->loss_fn);
  /* Numbers are written to both maps: old servers read only field 5, new ones
   * prefer field 7. */
  for (size_t i = 0; i < request->n_settings; i++)
    if (request->settings[i].text == NULL)
      tnk__pb_message(pb, 5, put_number_setting, &request->settings[i]);
  if (request->forward_only)
    tnk__pb_varint(pb, 6, 1);
  for (size_t i = 0; i < request->n_settings; i++)
    tnk__pb_message(pb, 7, put_setting, &request->settings[i]);
}

/* The writer is at example `datum`, which begins at position `datum_at`. A
 * piece advances it over all examples that end inside the piece. Consecutive
 * pieces thus visit each example once, at no cost for earlier ones. Going back
 * restarts. */
int tnk__fwdbwd_begin(tnk__fwdbwd_writer_t *writer,
                      const tnk__fwdbwd_t *request) {
  tnk__pb_t pb = {0};

  /* 0 would be an absent field, which servers reject. */
  if (request->seq_id < 1 || request->seq_id > INT32_MAX)
    return TNK_EINVAL;
  writer->request = *request;
  put_front(&pb, request);
  writer->front = writer->datum_at = pb.n;
  writer->datum = 0;
  for (size_t i = 0; i < request->n_data; i++)
    tnk__pb_message(&pb, 3, put_datum, &request->data[i]);
  put_back(&pb, request);
  writer->len = pb.n;
  return TNK_OK;
}

size_t tnk__fwdbwd_piece(tnk__fwdbwd_writer_t *writer, size_t at, uint8_t *to,
                         size_t n) {
  const tnk__fwdbwd_t *request = &writer->request;
  tnk__pb_t pb = {.at = to, .from = at};

  pb.to = n < writer->len - at ? at + n : writer->len;
  /* Going back: the earlier examples are measured again. */
  if (at < writer->datum_at) {
    writer->datum = 0;
    writer->datum_at = writer->front;
  }
  if (at < writer->front)
    put_front(&pb, request);
  /* Everything before it was written, or is not wanted. */
  pb.n = writer->datum_at;
  while (pb.n < pb.to && writer->datum < request->n_data) {
    tnk__pb_message(&pb, 3, put_datum, &request->data[writer->datum]);
    if (pb.n > pb.to)
      break; /* the next piece continues it */
    writer->datum++;
    writer->datum_at = pb.n;
  }
  if (writer->datum == request->n_data)
    put_back(&pb, request);
  return pb.to - at;
}

/* ---- As JSON ---- */

static void put_json_settings(tnk__json_writer_t *w,
                              const tnk__fwdbwd_t *request) {
  if (request->n_settings == 0)
    return;
  tnk__json_key(w, "loss_fn_config");
  tnk__json_begin_object(w);
  for (size_t i = 0; i < request->n_settings; i++) {
    const tnk_loss_setting_t *setting = &request->settings[i];

    if (setting->text != NULL)
      tnk__json_put_text(w, setting->name, setting->text);
    else
      tnk__json_put_double(w, setting->name, setting->number);
  }
  tnk__json_end(w);
}

int tnk__fwdbwd_write_json(tnk__buf_t *out, const tnk__fwdbwd_t *request) {
  tnk__json_writer_t w;

  if (request->seq_id < 1 || request->seq_id > INT32_MAX)
    return TNK_EINVAL;
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "model_id", request->model_id);
  tnk__json_key(&w, request->forward_only ? "forward_input"
                                          : "forward_backward_input");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "data");
  tnk__json_begin_array(&w);
  for (size_t i = 0; i < request->n_data; i++)
    tnk__data_json_datum(&w, &request->data[i]);
  tnk__json_end(&w);
  tnk__json_put_text(&w, "loss_fn", request->loss_fn);
  put_json_settings(&w, request);
  tnk__json_end(&w);
  tnk__json_put_int(&w, "seq_id", request->seq_id);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}
