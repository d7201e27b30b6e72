/* SPDX-License-Identifier: MIT */
#include "codec/pass.h"

#include "tinker.pb-c.h"

#include "codec/order.h"
#include "codec/vectors.h"
#include "codec/wire.h"

static int read_proto(void **out, const tnk_allocator_t *alloc,
                      const void *body, size_t n) {
  tnk_pass_t *pass;
  int err = tnk__pass_result_read(&pass, alloc, body, n, 1);

  *out = pass;
  return err;
}

static void expect_floats(const tnk_tensor_t *tensor, const float *values,
                          size_t n) {
  CHECK(tensor != NULL);
  CHECK_INT(tensor->dtype, TNK_F32);
  CHECK_MEM(tensor->data, 4 * tensor->n_values, values, 4 * n);
}

TEST(vector_J1_two_examples) {
  static const float first[] = {-1, -2}, second[] = {-3};
  tnk_pass_t *pass = from_hex(VEC_J1);
  const tnk_tensor_t *tensor = tnk_pass_tensor(pass, 0, "logprobs");

  CHECK_STR(tnk_pass_output_type(pass), "scalar");
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK_INT(tnk_pass_field_count(pass, 0), 1);
  CHECK_STR(tnk_pass_field_name(pass, 1, 0), "logprobs");
  expect_floats(tensor, first, 2);
  CHECK_INT(tensor->n_dims, 1);
  CHECK_INT(tensor->shape[0], 2);
  expect_floats(tnk_pass_tensor(pass, 1, "logprobs"), second, 1);
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), 1);
  CHECK_STR(tnk_metrics_key(tnk_pass_metrics(pass), 0), "loss:sum");
  CHECK_NEAR(tnk_pass_loss(pass), 6, 0);
  CHECK_INT(pass->warnings.n, 0);
  end(pass);
}

TEST(vector_J2_records_of_two_types) {
  static const float first[] = {1}, second[] = {-2, 3};
  static const int64_t third[] = {1, 2, 3, 4};
  tnk_pass_t *pass = from_hex(VEC_J2);
  const tnk_tensor_t *tensor;

  CHECK_STR(tnk_pass_output_type(pass), "C");
  CHECK_INT(tnk_pass_count(pass), 3);
  expect_floats(tnk_pass_tensor(pass, 0, "p"), first, 1);
  expect_floats(tnk_pass_tensor(pass, 1, "p"), second, 2);
  tensor = tnk_pass_tensor(pass, 2, "p");
  CHECK_INT(tensor->dtype, TNK_I64);
  CHECK_INT(tensor->n_dims, 2);
  CHECK_INT(tensor->shape[0], 2);
  CHECK_INT(tensor->shape[1], 2);
  CHECK_MEM(tensor->data, 8 * tensor->n_values, third, sizeof(third));
  CHECK(isnan(tnk_metrics_get(tnk_pass_metrics(pass), "x:max")));
  end(pass);
}

TEST(vector_J3_stripped_outputs) {
  tnk_pass_t *pass = from_hex(VEC_J3);

  CHECK_STR(tnk_pass_output_type(pass), "T");
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK_INT(tnk_pass_field_count(pass, 0), 0);
  CHECK(tnk_pass_tensor(pass, 0, "logprobs") == NULL);
  CHECK(isnan(tnk_pass_loss(pass)));
  end(pass);
}

TEST(empty_message_has_a_type_and_no_outputs) {
  tnk_pass_t *pass = from_hex("");

  CHECK_STR(tnk_pass_output_type(pass), "ArrayRecord");
  CHECK_INT(tnk_pass_count(pass), 0);
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), 0);
  end(pass);
}

TEST(S3_26a_damaged_protobuf) {
  static const char *const vectors[] = {VEC_J1, VEC_J2, VEC_J3};
  uint8_t bytes[1024];

  for (size_t i = 0; i < 3; i++) {
    size_t n = test_unhex(bytes, sizeof(bytes), vectors[i]);

    wire_damage(read_proto, tnk__pass_result_free, bytes, n);
    wire_starve(read_proto, tnk__pass_result_free, bytes, n);
  }
}

static size_t element_size(TinkerPublic__DType dtype) {
  return dtype == TINKER_PUBLIC__DTYPE__DTYPE_INT64      ? 8
         : dtype == TINKER_PUBLIC__DTYPE__DTYPE_BFLOAT16 ? 2
                                                         : 4;
}

/* A copy of numbers of this machine in the order of the wire. */
static ProtobufCBinaryData in_order(uint8_t *room, size_t room_size,
                                    ProtobufCBinaryData numbers, size_t size) {
  CHECK(numbers.len <= room_size);
  if (numbers.len > 0)
    memcpy(room, numbers.data, numbers.len);
  order_swap(room, numbers.len / size, size);
  return (ProtobufCBinaryData){numbers.len, room};
}

/* Packs one record with one field. */
static size_t pack(uint8_t *out, TinkerPublic__BatchedTensor *tensor,
                   int64_t num_datums) {
  TinkerPublic__ForwardBackwardOutput message =
      TINKER_PUBLIC__FORWARD_BACKWARD_OUTPUT__INIT;
  TinkerPublic__ArrayRecord record = TINKER_PUBLIC__ARRAY_RECORD__INIT;
  TinkerPublic__ArrayRecord *records[] = {&record};
  TinkerPublic__ArrayRecord__FieldsEntry entry =
      TINKER_PUBLIC__ARRAY_RECORD__FIELDS_ENTRY__INIT;
  TinkerPublic__ArrayRecord__FieldsEntry *entries[] = {&entry};
  TinkerPublic__BatchedTensor sent;
  uint8_t offsets[256], data[256];

  entry.key = "p";
  if (tensor != NULL) {
    sent = *tensor;
    sent.offsets = in_order(offsets, sizeof(offsets), tensor->offsets, 8);
    sent.data =
        in_order(data, sizeof(data), tensor->data, element_size(tensor->dtype));
    entry.value = &sent;
  }
  record.fields = entries;
  record.n_fields = tensor == NULL ? 0 : 1;
  record.num_datums = num_datums;
  message.loss_fn_outputs = records;
  message.n_loss_fn_outputs = 1;
  return tinker_public__forward_backward_output__pack(&message, out);
}

static int read_batch(tnk_pass_t **pass, const int64_t *offsets,
                      size_t n_offsets, size_t n_data, int64_t num_datums,
                      const int64_t *trailing, size_t n_trailing) {
  static uint8_t data[64];
  TinkerPublic__BatchedTensor tensor = TINKER_PUBLIC__BATCHED_TENSOR__INIT;
  uint8_t out[1024];

  tensor.data = (ProtobufCBinaryData){n_data, data};
  tensor.offsets =
      (ProtobufCBinaryData){n_offsets * 8, (uint8_t *)(uintptr_t)offsets};
  tensor.dtype = TINKER_PUBLIC__DTYPE__DTYPE_FLOAT32;
  tensor.trailing_shape = (int64_t *)(uintptr_t)trailing;
  tensor.n_trailing_shape = n_trailing;
  return tnk__pass_result_read(pass, test_allocator(), out,
                               pack(out, &tensor, num_datums), 1);
}

TEST(hostile_offsets) {
  static const struct {
    int64_t offsets[3];
    int err;
  } cases[] = {{{0, 8, 16}, TNK_OK},           {{0, 0, 0}, TNK_OK},
               {{8, 8, 16}, TNK_OK},           {{0, 8, 4}, TNK_EPROTO},
               {{-4, 0, 8}, TNK_EPROTO},       {{0, 3, 8}, TNK_EPROTO},
               {{0, INT64_MIN, 8}, TNK_EPROTO}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_pass_t *pass;

    CHECK_INT(read_batch(&pass, cases[i].offsets, 3, 16, 2, NULL, 0),
              cases[i].err);
    if (pass != NULL)
      end(pass);
  }
}

TEST(offsets_past_the_end_are_cut_with_a_warning) {
  static const int64_t offsets[] = {0, 8, 24, 4611686018427387904};
  tnk_pass_t *pass;

  CHECK_INT(read_batch(&pass, offsets, 4, 16, 3, NULL, 0), TNK_OK);
  CHECK_INT(tnk_pass_tensor(pass, 0, "p")->n_values, 2);
  CHECK_INT(tnk_pass_tensor(pass, 1, "p")->n_values, 2);
  CHECK_INT(tnk_pass_tensor(pass, 2, "p")->n_values, 0);
  CHECK_INT(pass->warnings.n, 1);
  end(pass);
}

TEST(number_of_examples) {
  static const int64_t offsets[] = {0, 8, 16};
  tnk_pass_t *pass;

  /* Not stated: the field tells. */
  CHECK_INT(read_batch(&pass, offsets, 3, 16, 0, NULL, 0), TNK_OK);
  CHECK_INT(tnk_pass_count(pass), 2);
  end(pass);
  /* Fewer than the field has: the rest is ignored. */
  CHECK_INT(read_batch(&pass, offsets, 3, 16, 1, NULL, 0), TNK_OK);
  CHECK_INT(tnk_pass_count(pass), 1);
  end(pass);
  CHECK_INT(read_batch(&pass, offsets, 3, 16, 3, NULL, 0), TNK_EPROTO);
  CHECK_INT(read_batch(&pass, offsets, 3, 16, -1, NULL, 0), TNK_EPROTO);
  CHECK_INT(read_batch(&pass, offsets, 3, 16, INT64_MAX, NULL, 0), TNK_EPROTO);
  CHECK_INT(read_batch(&pass, offsets, 0, 16, 1, NULL, 0), TNK_EPROTO);
  CHECK_INT(read_batch(&pass, offsets, 3, 15, 2, NULL, 0), TNK_EPROTO);
}

TEST(examples_without_fields_are_bounded_by_the_body) {
  uint8_t out[64];
  tnk_pass_t *pass;

  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, NULL, 1000), 1),
            TNK_OK);
  CHECK_INT(tnk_pass_count(pass), 1000);
  end(pass);
  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, NULL, 1 << 30), 1),
            TNK_EPROTO);
  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, NULL, INT64_MAX), 1),
            TNK_EPROTO);
}

TEST(trailing_shapes) {
  static const int64_t offsets[] = {0, 16};
  static const struct {
    int64_t shape[2];
    size_t n;
    int err;
    int64_t rows;
  } cases[] = {
      {{2}, 1, TNK_OK, 2},          {{4}, 1, TNK_OK, 1},
      {{1, 2}, 2, TNK_OK, 2},       {{3}, 1, TNK_EPROTO, 0},
      {{0}, 1, TNK_EPROTO, 0},      {{-2}, 1, TNK_EPROTO, 0},
      {{-2, -2}, 2, TNK_EPROTO, 0}, {{INT64_MAX, INT64_MAX}, 2, TNK_EPROTO, 0}};
  static const int64_t many[TNK_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
  tnk_pass_t *pass;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    CHECK_INT(read_batch(&pass, offsets, 2, 16, 1, cases[i].shape, cases[i].n),
              cases[i].err);
    if (pass == NULL)
      continue;
    CHECK_INT(tnk_pass_tensor(pass, 0, "p")->shape[0], cases[i].rows);
    CHECK_INT(tnk_pass_tensor(pass, 0, "p")->n_dims, cases[i].n + 1);
    end(pass);
  }
  CHECK_INT(read_batch(&pass, offsets, 2, 16, 1, many, 7), TNK_OK);
  end(pass);
  CHECK_INT(read_batch(&pass, offsets, 2, 16, 1, many, 8), TNK_EPROTO);
}

TEST(every_element_type) {
  static const int64_t wide[] = {-1, INT64_MIN};
  static const int32_t narrow[] = {-1, INT32_MIN};
  static const uint16_t brief[] = {0x3f80, 0xc000, 0x7fc0, 0xff80};
  static const int64_t offsets[] = {0, 4, 8};
  static const int64_t offsets8[] = {0, 8, 16};
  TinkerPublic__BatchedTensor tensor = TINKER_PUBLIC__BATCHED_TENSOR__INIT;
  uint8_t out[256];
  tnk_pass_t *pass;
  const tnk_tensor_t *got;

  tensor.offsets =
      (ProtobufCBinaryData){sizeof(offsets8), (uint8_t *)(uintptr_t)offsets8};
  tensor.data = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)wide};
  tensor.dtype = TINKER_PUBLIC__DTYPE__DTYPE_INT64;
  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, &tensor, 2), 1),
            TNK_OK);
  CHECK(((const int64_t *)tnk_pass_tensor(pass, 1, "p")->data)[0] == INT64_MIN);
  end(pass);

  tensor.offsets =
      (ProtobufCBinaryData){sizeof(offsets), (uint8_t *)(uintptr_t)offsets};
  tensor.data = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t)narrow};
  tensor.dtype = TINKER_PUBLIC__DTYPE__DTYPE_INT32;
  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, &tensor, 2), 1),
            TNK_OK);
  got = tnk_pass_tensor(pass, 1, "p");
  CHECK_INT(got->dtype, TNK_I64);
  CHECK_INT(((const int64_t *)got->data)[0], INT32_MIN);
  end(pass);

  tensor.data = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t)brief};
  tensor.dtype = TINKER_PUBLIC__DTYPE__DTYPE_BFLOAT16;
  CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                  pack(out, &tensor, 2), 1),
            TNK_OK);
  got = tnk_pass_tensor(pass, 1, "p");
  CHECK(isnan(((const float *)got->data)[0]));
  CHECK(isinf(((const float *)got->data)[1]));
  end(pass);

  for (int dtype = -1; dtype < 9; dtype++) {
    int err = dtype >= 1 && dtype <= 4 ? TNK_OK : TNK_EPROTO;

    if (dtype == 2)
      continue; /* 4 is no offset of 8-byte elements */
    tensor.dtype = (TinkerPublic__DType)dtype;
    CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out,
                                    pack(out, &tensor, 2), 1),
              err);
    if (pass != NULL)
      end(pass);
  }
}

TEST(a_metric_given_twice_counts_the_last_time) {
  TinkerPublic__ForwardBackwardOutput message =
      TINKER_PUBLIC__FORWARD_BACKWARD_OUTPUT__INIT;
  TinkerPublic__ForwardBackwardOutput__MetricsEntry entries[5];
  TinkerPublic__ForwardBackwardOutput__MetricsEntry *list[5];
  static char *const keys[] = {"b", "a", "b", "c", "b"};
  uint8_t out[256];
  tnk_pass_t *pass;

  for (int i = 0; i < 5; i++) {
    tinker_public__forward_backward_output__metrics_entry__init(&entries[i]);
    entries[i].key = keys[i];
    entries[i].value = i + 1;
    list[i] = &entries[i];
  }
  message.metrics = list;
  message.n_metrics = 5;
  CHECK_INT(tnk__pass_result_read(
                &pass, test_allocator(), out,
                tinker_public__forward_backward_output__pack(&message, out), 1),
            TNK_OK);
  CHECK_INT(tnk_metrics_count(&pass->metrics), 3);
  CHECK_STR(tnk_metrics_key(&pass->metrics, 0), "b");
  CHECK_NEAR(tnk_metrics_value(&pass->metrics, 0), 5, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "b"), 5, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "a"), 2, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "c"), 4, 0);
  CHECK(isnan(tnk_metrics_get(&pass->metrics, "d")));
  end(pass);
}

TEST(accessors_outside_of_the_range) {
  tnk_pass_t *pass = from_hex(VEC_J1);
  uint64_t hash;

  CHECK(tnk_pass_tensor(pass, 2, "logprobs") == NULL);
  CHECK(tnk_pass_tensor(pass, 0, "x") == NULL);
  CHECK(tnk_pass_tensor(pass, 0, NULL) == NULL);
  CHECK(tnk_pass_field_name(pass, 0, 1) == NULL);
  CHECK(tnk_pass_field_name(pass, 9, 0) == NULL);
  CHECK(tnk_metrics_key(&pass->metrics, 1) == NULL);
  CHECK(isnan(tnk_metrics_value(&pass->metrics, 1)));
  CHECK(isnan(tnk_metrics_get(&pass->metrics, NULL)));
  CHECK_INT(tnk_metrics_hash(&hash, &pass->metrics, "loss:sum"), 0);
  end(pass);
  CHECK_INT(tnk_pass_count(NULL), 0);
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(NULL)), 0);
  CHECK(isnan(tnk_pass_loss(NULL)));
}

static void swap_both(void *floats, size_t n_floats, void *longs,
                      size_t n_longs) {
  order_swap(floats, n_floats / 4, 4);
  order_swap(longs, n_longs / 8, 8);
}

/* What the generated code writes is what we read. */
TEST(random_batches) {
  enum { RECORDS = 5, DATUMS = 20, MOST = 40 };
  uint64_t seed = 99;

  for (int round = 0; round < 40; round++) {
    TinkerPublic__ForwardBackwardOutput message =
        TINKER_PUBLIC__FORWARD_BACKWARD_OUTPUT__INIT;
    TinkerPublic__ArrayRecord records[RECORDS], *list[RECORDS];
    TinkerPublic__ArrayRecord__FieldsEntry entries[RECORDS], *entry[RECORDS];
    TinkerPublic__BatchedTensor tensors[RECORDS];
    static float values[RECORDS][DATUMS * MOST];
    static int64_t offsets[RECORDS][DATUMS + 1];
    static uint8_t out[RECORDS * DATUMS * MOST * 4 + 8192];
    size_t total = 0, at = 0, n_out;
    tnk_pass_t *pass;

    for (int r = 0; r < RECORDS; r++) {
      size_t n = (size_t)(test_random(&seed) % DATUMS);

      tinker_public__array_record__init(&records[r]);
      tinker_public__array_record__fields_entry__init(&entries[r]);
      tinker_public__batched_tensor__init(&tensors[r]);
      offsets[r][0] = 0;
      for (size_t d = 0; d < n; d++)
        offsets[r][d + 1] =
            offsets[r][d] + 4 * (int64_t)(test_random(&seed) % MOST);
      for (size_t i = 0; i < DATUMS * MOST; i++)
        values[r][i] = (float)i / (float)(r + 1);
      tensors[r].data =
          (ProtobufCBinaryData){(size_t)offsets[r][n], (uint8_t *)values[r]};
      tensors[r].offsets =
          (ProtobufCBinaryData){8 * (n + 1), (uint8_t *)offsets[r]};
      tensors[r].dtype = TINKER_PUBLIC__DTYPE__DTYPE_FLOAT32;
      entries[r].key = "logprobs";
      entries[r].value = &tensors[r];
      entry[r] = &entries[r];
      records[r].fields = &entry[r];
      records[r].n_fields = 1;
      records[r].num_datums = (int64_t)n;
      list[r] = &records[r];
      total += n;
    }
    message.loss_fn_output_type = "x";
    message.loss_fn_outputs = list;
    message.n_loss_fn_outputs = RECORDS;
    swap_both(values, sizeof(values), offsets, sizeof(offsets));
    n_out = tinker_public__forward_backward_output__pack(&message, out);
    swap_both(values, sizeof(values), offsets, sizeof(offsets));
    CHECK_INT(tnk__pass_result_read(&pass, test_allocator(), out, n_out, 1),
              TNK_OK);
    CHECK_INT(tnk_pass_count(pass), total);
    for (int r = 0; r < RECORDS; r++)
      for (int64_t d = 0; d < records[r].num_datums; d++, at++)
        expect_floats(tnk_pass_tensor(pass, at, "logprobs"),
                      values[r] + offsets[r][d] / 4,
                      (size_t)(offsets[r][d + 1] - offsets[r][d]) / 4);
    end(pass);
  }
}
