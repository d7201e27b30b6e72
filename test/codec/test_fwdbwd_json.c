/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/fwdbwd.h"
#include "support/test.h"
#include "tnk/error.h"

/* A pass as JSON, byte for byte. */

static void expect(const tnk__fwdbwd_t *request, const char *text) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 8192);
  CHECK_INT(tnk__fwdbwd_write_json(&buf, request), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf), text);
  tnk__buf_deinit(&buf);
}

static const int32_t ids[] = {1, 2, 3};
static const int64_t numbers[] = {2, 3, 9};

TEST(a_pass_with_a_target_and_settings) {
  const tnk_datum_t datum = {.input = {.tokens = ids, .n_tokens = 3},
                             .targets = numbers};
  const tnk_loss_setting_t settings[] = {
      {"beta", 0.05, NULL}, {"kind", 0, "\"x\""}, {"whole", 2, NULL}};
  tnk__fwdbwd_t request = {.model_id = "m:1",
                           .seq_id = 7,
                           .data = &datum,
                           .n_data = 1,
                           .loss_fn = "ppo",
                           .settings = settings,
                           .n_settings = 3};

  expect(&request,
         "{\"model_id\":\"m:1\",\"forward_backward_input\":{\"data\":[{"
         "\"loss_fn_inputs\":{\"target_tokens\":{\"data\":[2,3,9],\"dtype\":"
         "\"int64\",\"shape\":[3]}},\"model_input\":{\"chunks\":[{\"tokens\":"
         "[1,2,3],\"type\":\"encoded_text\"}]}}],\"loss_fn\":\"ppo\","
         "\"loss_fn_config\":{\"beta\":0.05,\"kind\":\"\\\"x\\\"\",\"whole\":"
         "2.0}},\"seq_id\":7}");
  request.n_settings = 0;
  request.n_data = 0;
  request.forward_only = 1;
  expect(&request, "{\"model_id\":\"m:1\",\"forward_input\":{\"data\":[],"
                   "\"loss_fn\":\"ppo\"},\"seq_id\":7}");
}

/* Every type of elements, dense and sparse. */
TEST(tensors_in_a_pass) {
  static const int32_t narrow[] = {2, -3};
  static const float floats[] = {0.1f, -2.0f};
  static const double doubles[] = {0.5, 1e-3};
  static const int64_t crow[] = {0, 1, 2};
  static const int64_t col[] = {1, 0};
  const tnk_loss_input_t inputs[] = {
      {"a", {.dtype = TNK_I32, .data = narrow, .n_values = 2}},
      {"b",
       {.dtype = TNK_F32,
        .n_dims = 2,
        .shape = {2, 1},
        .data = floats,
        .n_values = 2}},
      {"c", {.dtype = TNK_F64, .data = doubles, .n_values = 2}},
      {"d",
       {.dtype = TNK_F32,
        .n_dims = 2,
        .shape = {2, 2},
        .data = floats,
        .n_values = 2,
        .crow = crow,
        .col = col}},
  };
  const tnk_datum_t data[] = {{.loss_inputs = inputs, .n_loss_inputs = 3},
                              {.loss_inputs = inputs + 3, .n_loss_inputs = 1}};
  const tnk__fwdbwd_t request = {
      .model_id = "m", .seq_id = 1, .data = data, .n_data = 2, .loss_fn = "l"};

  expect(&request,
         "{\"model_id\":\"m\",\"forward_backward_input\":{\"data\":[{"
         "\"loss_fn_inputs\":{\"a\":{\"data\":[2,-3],\"dtype\":\"int64\","
         "\"shape\":[2]},\"b\":{\"data\":[0.1,-2.0],\"dtype\":\"float32\","
         "\"shape\":[2,1]},\"c\":{\"data\":[0.5,0.001],\"dtype\":\"float32\","
         "\"shape\":[2]}},\"model_input\":{\"chunks\":[]}},{"
         "\"loss_fn_inputs\":{\"d\":{\"data\":[0.1,-2.0],\"dtype\":"
         "\"float32\",\"shape\":[2,2],\"sparse_crow_indices\":[0,1,2],"
         "\"sparse_col_indices\":[1,0]}},\"model_input\":{\"chunks\":[]}}],"
         "\"loss_fn\":\"l\"},\"seq_id\":1}");
}

TEST(chunks_in_a_pass) {
  const tnk_chunk_t chunks[] = {
      {.kind = TNK_CHUNK_IMAGE,
       .bytes = "abc",
       .n_bytes = 3,
       .format = TNK_PNG,
       .expected_tokens = 5},
      {.kind = TNK_CHUNK_IMAGE_POINTER,
       .location = "s3://x",
       .format = TNK_JPEG},
      {.kind = TNK_CHUNK_DMEL, .bytes = "abc", .n_bytes = 3},
      {.kind = TNK_CHUNK_TEXT, .tokens = ids, .n_tokens = 0},
  };
  const tnk_datum_t datum = {.input = {.chunks = chunks, .n_chunks = 4}};
  const tnk__fwdbwd_t request = {.model_id = "m",
                                 .seq_id = INT32_MAX,
                                 .data = &datum,
                                 .n_data = 1,
                                 .loss_fn = "l"};

  expect(&request,
         "{\"model_id\":\"m\",\"forward_backward_input\":{\"data\":[{"
         "\"loss_fn_inputs\":{},\"model_input\":{\"chunks\":[{\"data\":"
         "\"YWJj\",\"format\":\"png\",\"expected_tokens\":5,\"type\":"
         "\"image\"},{\"format\":\"jpeg\",\"location\":\"s3://x\",\"type\":"
         "\"image_asset_pointer\"},{\"dmel\":\"YWJj\",\"type\":\"dmel\"},{"
         "\"tokens\":[],\"type\":\"encoded_text\"}]}}],\"loss_fn\":\"l\"},"
         "\"seq_id\":2147483647}");
}

/* Numbers beyond the field of the protobuf form, and a buffer that is full. */
TEST(a_pass_that_cannot_be_written) {
  static const int64_t bad[] = {INT64_MIN, -1, 0, (int64_t)INT32_MAX + 1};
  const tnk_datum_t datum = {.input = {.tokens = ids, .n_tokens = 3}};
  tnk__fwdbwd_t request = {.model_id = "m",
                           .seq_id = 1,
                           .data = &datum,
                           .n_data = 1,
                           .loss_fn = "l"};
  tnk__buf_t buf;

  for (size_t max = 1; max < 100; max++) {
    tnk__buf_init(&buf, test_allocator(), max);
    CHECK_INT(tnk__fwdbwd_write_json(&buf, &request), TNK_ETOOBIG);
    tnk__buf_deinit(&buf);
  }
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    request.seq_id = bad[i];
    tnk__buf_init(&buf, test_allocator(), 8192);
    CHECK_INT(tnk__fwdbwd_write_json(&buf, &request), TNK_EINVAL);
    tnk__buf_deinit(&buf);
  }
}
