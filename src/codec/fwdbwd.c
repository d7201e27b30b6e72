#include "codec/fwdbwd.h"

#include "codec/data.h"
#include "codec/le.h"
#include "codec/pb.h"
#include "tnk/error.h"

/* Numbers of DType that a request may hold. */
enum { DTYPE_FLOAT32 = 1, DTYPE_INT64 = 2 };

/* Elements in the type they have on the wire. */
static void write_elements(uint8_t *to, const tnk_tensor_t *tensor) {
  size_t n = tensor->n_values;

  if (tensor->dtype == TNK_I32) {
    for (size_t i = 0; i < n; i++)
      tnk__le_put64(to + 8 * i, (uint64_t)tnk__tensor_int(tensor, i));
  } else if (tensor->dtype == TNK_F64) {
    for (size_t i = 0; i < n; i++) {
      float value = (float)((const double *)tensor->data)[i];

      tnk__le_copy(to + 4 * i, &value, 1, sizeof(value));
    }
  } else {
    tnk__le_copy(to, tensor->data, n, tnk__dtype_wire_size(tensor->dtype));
  }
}

static void put_elements(tnk__pb_t *pb, uint32_t field,
                         const tnk_tensor_t *tensor) {
  size_t n = tensor->n_values * tnk__dtype_wire_size(tensor->dtype);
  uint8_t *at = tnk__pb_open(pb, field, n);

  if (at != NULL)
    write_elements(at, tensor);
}

static void put_index(tnk__pb_t *pb, uint32_t field, const int64_t *values,
                      size_t n) {
  uint8_t *at = tnk__pb_open(pb, field, n * sizeof(*values));

  if (at != NULL)
    tnk__le_copy(at, values, n, sizeof(*values));
}

static void put_csr(tnk__pb_t *pb, const void *message) {
  const tnk_tensor_t *tensor = message;

  if (tensor->n_values > 0)
    put_elements(pb, 1, tensor);
  put_index(pb, 2, tensor->crow, tnk__tensor_n_crow(tensor));
  if (tensor->n_values > 0)
    put_index(pb, 3, tensor->col, tensor->n_values);
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
  /* Without dimensions it is a vector, which is said explicitly: an absent
   * shape would mean a scalar. */
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
  uint8_t *at;

  if (chunk->n_tokens == 0)
    return;
  at = tnk__pb_open(pb, 1, chunk->n_tokens * sizeof(int32_t));
  if (at != NULL)
    tnk__le_copy(at, chunk->tokens, chunk->n_tokens, sizeof(int32_t));
}

static void put_image(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  tnk__pb_bytes(pb, 1, chunk->bytes, chunk->n_bytes);
  tnk__pb_text(pb, 2, chunk->format == TNK_PNG ? "png" : "jpeg");
  if (chunk->expected_tokens > 0)
    tnk__pb_varint(pb, 3, (uint64_t)chunk->expected_tokens);
}

static void put_chunk(tnk__pb_t *pb, const void *message) {
  const tnk_chunk_t *chunk = message;

  if (chunk->kind == TNK_CHUNK_TEXT)
    tnk__pb_message(pb, 1, put_text_chunk, chunk);
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

  for (size_t i = 0; i < datum->input.n_chunks; i++)
    tnk__pb_message(pb, 1, put_chunk, &datum->input.chunks[i]);
  for (size_t i = 0; i < datum->n_loss_inputs; i++)
    tnk__pb_message(pb, 2, put_loss_input, &datum->loss_inputs[i]);
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

static void put_request(tnk__pb_t *pb, const void *message) {
  const tnk__fwdbwd_t *request = message;

  if (request->model_id[0] != '\0')
    tnk__pb_text(pb, 1, request->model_id);
  tnk__pb_varint(pb, 2, (uint64_t)request->seq_id);
  for (size_t i = 0; i < request->n_data; i++)
    tnk__pb_message(pb, 3, put_datum, &request->data[i]);
  if (request->loss_fn[0] != '\0')
    tnk__pb_text(pb, 4, request->loss_fn);
  /* Numbers go into both maps: old servers read field 5 only, new ones
   * prefer field 7. */
  for (size_t i = 0; i < request->n_settings; i++)
    if (request->settings[i].text == NULL)
      tnk__pb_message(pb, 5, put_number_setting, &request->settings[i]);
  if (request->forward_only)
    tnk__pb_varint(pb, 6, 1);
  for (size_t i = 0; i < request->n_settings; i++)
    tnk__pb_message(pb, 7, put_setting, &request->settings[i]);
}

size_t tnk__fwdbwd_size(const tnk__fwdbwd_t *request) {
  tnk__pb_t pb = {0};

  put_request(&pb, request);
  return pb.n;
}

int tnk__fwdbwd_write(tnk__buf_t *out, const tnk__fwdbwd_t *request) {
  tnk__pb_t pb = {0};

  if (request->seq_id < 1 || request->seq_id > INT32_MAX)
    return TNK_EINVAL;
  pb.at = tnk__buf_reserve(out, tnk__fwdbwd_size(request));
  if (pb.at == NULL)
    return out->err;
  put_request(&pb, request);
  out->len += pb.n;
  return TNK_OK;
}
