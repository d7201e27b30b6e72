/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "tinker.pb-c.h"

#include "codec/order.h"
#include "codec/request.h"
#include "codec/vectors.h"
#include "lib/base/alloc.h"
#include "support/test.h"
#include "tnk/error.h"

static const int32_t ids[] = {1, 2, 3};
static const int64_t numbers[] = {2, 3, 9};

/* The same in pieces of every size, and then the end of it once more. */
static void expect_pieces(const tnk__fwdbwd_t *request, const uint8_t *expected,
                          size_t n) {
  tnk__fwdbwd_writer_t writer;

  CHECK_INT(tnk__fwdbwd_begin(&writer, request), TNK_OK);
  CHECK_INT(writer.len, n);
  for (size_t size = 1; size <= n; size++) {
    size_t len;
    for (size_t at = 0; at < n; at += len) {
      uint8_t *piece = malloc(size);
      CHECK(piece != NULL);
      len = tnk__fwdbwd_piece(&writer, at, piece, size);
      CHECK_MEM(piece, len, expected + at, n - at < size ? n - at : size);
      free(piece);
    }
    for (size_t at = n; at-- > 0;) {
      uint8_t byte = 0;
      CHECK_INT(tnk__fwdbwd_piece(&writer, at, &byte, 1), 1);
      CHECK_INT(byte, expected[at]);
    }
  }
}

static void expect(const tnk__fwdbwd_t *request, const char *hex) {
  uint8_t expected[1024];
  size_t n = test_unhex(expected, sizeof(expected), hex);
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 4096);
  write_request(&buf, request);
  CHECK_MEM(buf.data, buf.len, expected, n);
  tnk__buf_deinit(&buf);
  expect_pieces(request, expected, n);
}

/* The named parts of the vectors. */
static tnk_datum_t one_datum(const tnk_chunk_t *chunks, size_t n_chunks,
                             const tnk_loss_input_t *inputs) {
  return (tnk_datum_t){.input = {.chunks = chunks, .n_chunks = n_chunks},
                       .loss_inputs = inputs,
                       .n_loss_inputs = 1};
}

TEST(vector_A_dense_and_config) {
  tnk_chunk_t chunk = tnk_chunk_text(ids, 2);
  tnk_loss_input_t input = {"target_tokens", tnk_tensor_i64(numbers, 2)};
  tnk_datum_t datum = one_datum(&chunk, 1, &input);
  tnk_loss_setting_t beta = {"beta", 0.05, NULL};
  tnk__fwdbwd_t request = {.model_id = "m",
                           .seq_id = 1,
                           .data = &datum,
                           .n_data = 1,
                           .loss_fn = "cross_entropy",
                           .settings = &beta,
                           .n_settings = 1,
                           .forward_only = 1};
  static const int32_t narrow[] = {2, 3};

  expect(&request, VEC_A);
  /* The same values in 32 bits are widened. */
  input.tensor =
      (tnk_tensor_t){.dtype = TNK_I32, .data = narrow, .n_values = 2};
  expect(&request, VEC_A);
}

TEST(the_short_form_of_a_datum_is_the_long_one) {
  static const float weights[] = {0.5f, 0};
  const tnk_chunk_t chunk = tnk_chunk_text(ids, 2);
  const tnk_loss_input_t inputs[] = {
      {"target_tokens", tnk_tensor_i64(numbers, 2)},
      {"weights", tnk_tensor_f32(weights, 2)},
      {"advantages", tnk_tensor_f32(weights, 2)}};
  const tnk_datum_t forms[] = {{.input = {.chunks = &chunk, .n_chunks = 1},
                                .loss_inputs = inputs,
                                .n_loss_inputs = 3},
                               {.input = {.tokens = ids, .n_tokens = 2},
                                .targets = numbers,
                                .weights = weights,
                                .loss_inputs = &inputs[2],
                                .n_loss_inputs = 1}};
  tnk__buf_t bufs[2];

  for (int i = 0; i < 2; i++) {
    const tnk__fwdbwd_t request = {.model_id = "m",
                                   .seq_id = 1,
                                   .data = &forms[i],
                                   .n_data = 1,
                                   .loss_fn = "cross_entropy"};
    tnk__buf_init(&bufs[i], test_allocator(), 4096);
    write_request(&bufs[i], &request);
    expect_pieces(&request, (const uint8_t *)bufs[i].data, bufs[i].len);
  }
  CHECK_MEM(bufs[0].data, bufs[0].len, bufs[1].data, bufs[1].len);
  tnk__buf_deinit(&bufs[0]);
  tnk__buf_deinit(&bufs[1]);
}

/* A matrix of 3 rows and 4 columns. */
static tnk_loss_input_t sparse(const char *name, tnk_dtype_t dtype,
                               const void *values, size_t n_values,
                               const int64_t *crow, const int64_t *col) {
  return (tnk_loss_input_t){name,
                            {.dtype = dtype,
                             .n_dims = 2,
                             .shape = {3, 4},
                             .data = values,
                             .n_values = n_values,
                             .crow = crow,
                             .col = col}};
}

TEST(vector_B_sparse_floats) {
  static const float values[] = {1, 2};
  static const double wide[] = {1, 2};
  static const int64_t crow[] = {0, 1, 1, 2};
  static const int64_t col[] = {1, 3};
  tnk_loss_input_t input = sparse("weights", TNK_F32, values, 2, crow, col);
  tnk_datum_t datum = one_datum(NULL, 0, &input);
  tnk__fwdbwd_t request = {"m", 300, &datum, 1, .loss_fn = "x"};

  expect(&request, VEC_B);
  input = sparse("weights", TNK_F64, wide, 2, crow, col);
  expect(&request, VEC_B);
}

TEST(vector_C_sparse_ints) {
  static const int64_t values[] = {7};
  static const int64_t crow[] = {0, 0, 1, 1};
  static const int64_t col[] = {3};
  tnk_loss_input_t input =
      sparse("target_tokens", TNK_I64, values, 1, crow, col);
  tnk_datum_t datum = one_datum(NULL, 0, &input);
  tnk__fwdbwd_t request = {"m", 1, &datum, 1, .loss_fn = "x"};

  expect(&request, VEC_C);
}

TEST(vector_D_text_setting) {
  tnk_loss_setting_t setting = {"loss_id", 0, "L1"};
  tnk__fwdbwd_t request = {.model_id = "m",
                           .seq_id = 2,
                           .loss_fn = "custom",
                           .settings = &setting,
                           .n_settings = 1};

  expect(&request, VEC_D);
}

TEST(vector_E_mixed_settings) {
  tnk_loss_setting_t settings[] = {{"clip_low_threshold", 0.5, NULL},
                                   {"mode", 0, "a"}};
  tnk__fwdbwd_t request = {.model_id = "m",
                           .seq_id = 2,
                           .loss_fn = "ppo",
                           .settings = settings,
                           .n_settings = 2};

  expect(&request, VEC_E);
}

/* Vector F has an explicit zero of expected_tokens and tensors without shape,
 * which our views cannot say; the rest of it is kept here. */
TEST(vector_F_chunks) {
  static const int32_t edge[] = {-1, 2147483647};
  tnk_chunk_t chunks[] = {
      tnk_chunk_text(NULL, 0),
      {.kind = TNK_CHUNK_IMAGE,
       .bytes = "\xff\xd8",
       .n_bytes = 2,
       .format = TNK_JPEG},
      {.kind = TNK_CHUNK_DMEL, .bytes = "\x02\x02\x03\x04", .n_bytes = 4}};
  tnk_chunk_t text = tnk_chunk_text(edge, 2);
  tnk_loss_input_t empty = {"a", tnk_tensor_f32(NULL, 0)};
  tnk_datum_t data[] = {one_datum(chunks, 3, &empty),
                        {.input = {.chunks = &text, .n_chunks = 1}}};
  tnk__fwdbwd_t request = {
      .model_id = "m", .seq_id = 1, .data = data, .n_data = 2, .loss_fn = "x"};

  expect(&request, "0a016d1001"
                   "1a2a0a020a000a0c120a0a02ffd812046a706567"
                   "0a081a060a0402020304"
                   "120c0a016112070a001801220100"
                   "1a0e0a0c0a0a0a08ffffffffffffff7f"
                   "220178");
}

TEST(vector_G_spans) {
  tnk_chunk_t chunk = tnk_chunk_text(ids, 3);
  tnk_loss_input_t input = {"target_tokens", tnk_tensor_i64(numbers, 3)};
  tnk_span_t inputs[] = {{TNK_SPAN_PROMPT, "p", 0, 2},
                         {TNK_SPAN_SAMPLED, "q", 4, 1}};
  tnk_span_t losses[] = {{TNK_SPAN_PROMPT, "p", 1, 1},
                         {TNK_SPAN_SAMPLED, "q", 0, 2},
                         {TNK_SPAN_SAMPLED, "r", 0, 0}};
  tnk_datum_t datum = one_datum(&chunk, 1, &input);
  tnk__fwdbwd_t request = {"m", 1, &datum, 1, .loss_fn = "x"};

  datum.input_spans = inputs;
  datum.n_input_spans = 2;
  datum.loss_input_spans = losses;
  datum.n_loss_input_spans = 3;
  expect(&request, VEC_G);
}

TEST(sequence_number_fits_or_is_refused) {
  tnk__fwdbwd_writer_t writer;
  tnk__fwdbwd_t request = {
      .model_id = "m", .seq_id = 1LL << 31, .loss_fn = "x"};

  CHECK_INT(tnk__fwdbwd_begin(&writer, &request), TNK_EINVAL);
  request.seq_id = 0;
  CHECK_INT(tnk__fwdbwd_begin(&writer, &request), TNK_EINVAL);
  request.seq_id = INT32_MAX;
  CHECK_INT(tnk__fwdbwd_begin(&writer, &request), TNK_OK);
}

/* ---- A large request ---- */

enum { LARGE = 40, TOKENS = 300 };

typedef struct {
  int32_t tokens[TOKENS];
  int64_t targets[TOKENS];
  float weights[TOKENS];
  tnk_chunk_t chunks[LARGE];
  tnk_loss_input_t inputs[LARGE][2];
  tnk_datum_t data[LARGE];
} large_t;

static void fill_large(large_t *large, uint64_t *seed) {
  for (size_t i = 0; i < TOKENS; i++) {
    large->tokens[i] = (int32_t)(test_random(seed) >> 33);
    large->targets[i] = (int64_t)test_random(seed);
    large->weights[i] = (float)i / 3;
  }
  for (size_t i = 0; i < LARGE; i++) {
    size_t n = (size_t)(test_random(seed) % TOKENS);

    large->chunks[i] = tnk_chunk_text(large->tokens, n);
    large->inputs[i][0] =
        (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(large->targets, n)};
    large->inputs[i][1] =
        (tnk_loss_input_t){"weights", tnk_tensor_f32(large->weights, n)};
    large->data[i] = one_datum(&large->chunks[i], 1, large->inputs[i]);
    large->data[i].n_loss_inputs = 2;
  }
}

static void check_large(const TinkerPublic__ForwardBackwardRequest *read,
                        const large_t *large) {
  CHECK_INT(read->n_data, LARGE);
  for (size_t i = 0; i < LARGE; i++) {
    const TinkerPublic__Datum *datum = read->data[i];
    const ProtobufCBinaryData *bytes;
    size_t n = large->chunks[i].n_tokens;

    CHECK_INT(datum->n_model_input, 1);
    bytes = &datum->model_input[0]->encoded_text->tokens;
    order_swap(bytes->data, n, 4);
    CHECK_MEM(bytes->data, bytes->len, large->tokens, 4 * n);
    CHECK_INT(datum->n_loss_fn_inputs, 2);
    CHECK_STR(datum->loss_fn_inputs[1]->key, "weights");
    bytes = &datum->loss_fn_inputs[0]->value->dense;
    order_swap(bytes->data, n, 8);
    CHECK_MEM(bytes->data, bytes->len, large->targets, 8 * n);
    bytes = &datum->loss_fn_inputs[1]->value->dense;
    order_swap(bytes->data, n, 4);
    CHECK_MEM(bytes->data, bytes->len, large->weights, 4 * n);
    CHECK_INT(datum->loss_fn_inputs[1]->value->shape[0], n);
  }
}

/* What we write is what the generated code reads. */
TEST(generated_code_reads_random_requests) {
  static large_t large;
  uint64_t seed = 7;
  tnk__fwdbwd_t request = {.model_id = "model",
                           .seq_id = 77,
                           .data = large.data,
                           .n_data = LARGE,
                           .loss_fn = "cross_entropy"};
  TinkerPublic__ForwardBackwardRequest *read;
  tnk__fwdbwd_writer_t writer;
  size_t len;
  tnk__buf_t buf;

  fill_large(&large, &seed);
  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  write_request(&buf, &request);
  read =
      tinker_public__forward_backward_request__unpack(NULL, buf.len, buf.data);
  CHECK(read != NULL);
  CHECK_STR(read->model_id, "model");
  CHECK_INT(read->seq_id, 77);
  check_large(read, &large);
  tinker_public__forward_backward_request__free_unpacked(read, NULL);
  CHECK_INT(tnk__fwdbwd_begin(&writer, &request), TNK_OK);
  CHECK_INT(writer.len, buf.len);
  for (size_t at = 0; at < buf.len; at += len) {
    uint8_t piece[2000];
    size_t size = (size_t)(test_random(&seed) % sizeof(piece)) + 1;
    len = tnk__fwdbwd_piece(&writer, at, piece, size);
    CHECK_MEM(piece, len, buf.data + at,
              buf.len - at < size ? buf.len - at : size);
  }
  tnk__buf_deinit(&buf);
}
