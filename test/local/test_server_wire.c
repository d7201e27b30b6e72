/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/train/pass.h"
#include "tools/local/future/future.h"
#include "support/test.h"

/* The protocol's own bytes: requests that are read, results that are written.
 * The letters are those of its test vectors. */

static TinkerPublic__ForwardBackwardRequest *unpack(const char *hex) {
  static uint8_t bytes[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), hex);

  return tinker_public__forward_backward_request__unpack(NULL, n, bytes);
}

static const char vector_a[] =
    "0a016d10011a380a0c0a0a0a08010000000200000012280a0d7461726765745f746f6b656e"
    "7312170a10020000000000000003000000000000001802220102220d63726f73735f656e74"
    "726f70792a0f0a0462657461119a9999999999a93f30013a110a04626574611209099a9999"
    "999999a93f";
static const char vector_b[] =
    "0a016d10ac021a5312510a07776569676874731246123e0a080000803f0000004012200000"
    "000000000000010000000000000001000000000000000200000000000000"
    "1a1001000000000000000300000000000000180122020304220178";
static const char vector_c[] =
    "0a016d10011a51124f0a0d7461726765745f746f6b656e73123e12360a0807000000000000"
    "0012200000000000000000000000000000000001000000000000000100000000000000"
    "1a080300000000000000180222020304220178";
static const char vector_j1[] =
    "0a067363616c6172123a12360a086c6f6770726f6273122a0a0c000080bf000000c0000040"
    "c01218000000000000000008000000000000000c00000000000000180118021a130a086c6f"
    "73733a73756d110000000000001840";

/* A: refused for its setting, which cross_entropy does not have; without it
 * read as it stands. */
TEST(vector_a_is_read) {
  TinkerPublic__ForwardBackwardRequest *request = unpack(vector_a);
  local_op_t op = {0};
  tnk__lm_why_t why;

  CHECK(request != NULL);
  tnk__arena_init(&op.arena, test_allocator(), 1 << 20);
  CHECK_INT(local_pass_proto(&op, request, &why), TNK_EINVAL);
  CHECK(strstr(why.text, "beta"));
  request->loss_fn = strcpy(request->loss_fn, "dro");
  CHECK_INT(local_pass_proto(&op, request, &why), TNK_OK);
  CHECK_NEAR(op.u.pass.loss.beta, 0.05, 0);
  CHECK_INT(op.u.pass.backward, 0);
  CHECK_INT(op.u.pass.n, 1);
  CHECK_INT(op.u.pass.data[0].n_tokens, 2);
  CHECK_INT(op.u.pass.data[0].tokens[1], 2);
  CHECK_INT(op.u.pass.data[0].targets[0], 2);
  CHECK_INT(op.u.pass.data[0].targets[1], 3);
  /* Well-formed, but the loss needs more than targets. */
  CHECK_INT(op.err, TNK_EINVAL);
  CHECK_STR(op.why.text, "datum 0: the loss needs \"logprobs\"");
  tnk__arena_deinit(&op.arena);
  tinker_public__forward_backward_request__free_unpacked(request, NULL);
}

static void read_tensor(local_tensor_t *out, tnk__arena_t *arena,
                        const char *hex, int64_t pad) {
  TinkerPublic__ForwardBackwardRequest *request = unpack(hex);
  tnk__lm_why_t why;

  CHECK(request != NULL);
  CHECK_INT(local_tensor_proto(out, arena,
                               request->data[0]->loss_fn_inputs[0]->value, pad,
                               &why),
            TNK_OK);
  tinker_public__forward_backward_request__free_unpacked(request, NULL);
}

/* B: CSR values [1, 2] at (0, 1) and (2, 3) of 3 x 4. */
TEST(vector_b_is_spread) {
  static const float dense[12] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  tnk__arena_t arena;
  local_tensor_t t;

  tnk__arena_init(&arena, test_allocator(), 1 << 20);
  read_tensor(&t, &arena, vector_b, 0);
  CHECK(t.floats != NULL && t.ints == NULL);
  CHECK_MEM(t.floats, t.n * sizeof(float), dense, sizeof(dense));
  CHECK_INT(t.n_listed, 2);
  tnk__arena_deinit(&arena);
}

/* C: -1 everywhere but 7 at (1, 3); the pad value is not on the wire. */
TEST(vector_c_is_spread_with_its_pad) {
  tnk__arena_t arena;
  local_tensor_t t;

  tnk__arena_init(&arena, test_allocator(), 1 << 20);
  read_tensor(&t, &arena, vector_c, -1);
  CHECK_INT(t.n, 12);
  for (size_t i = 0; i < 12; i++)
    CHECK_INT(t.ints[i], i == 7 ? 7 : -1);
  tnk__arena_deinit(&arena);
}

/* Every byte of the layout changed to every power of two is refused or reads
 * within its bounds. */
TEST(damaged_sparse_tensors) {
  static uint8_t bytes[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), vector_b);

  for (size_t at = 0; at < n; at++)
    for (int bit = 0; bit < 8; bit++) {
      TinkerPublic__ForwardBackwardRequest *request;
      local_op_t op = {0};
      tnk__lm_why_t why;

      bytes[at] ^= (uint8_t)(1 << bit);
      request = tinker_public__forward_backward_request__unpack(NULL, n, bytes);
      bytes[at] ^= (uint8_t)(1 << bit);
      if (request == NULL)
        continue;
      tnk__arena_init(&op.arena, test_allocator(), 1 << 24);
      for (size_t i = 0; i < request->n_data; i++)
        for (size_t k = 0; k < request->data[i]->n_loss_fn_inputs; k++) {
          local_tensor_t t;

          local_tensor_proto(&t, &op.arena,
                             request->data[i]->loss_fn_inputs[k]->value, 0,
                             &why);
        }
      local_pass_proto(&op, request, &why);
      tnk__arena_deinit(&op.arena);
      tinker_public__forward_backward_request__free_unpacked(request, NULL);
    }
}

/* J1: two examples with logprobs [-1, -2] and [-3]. */
static void fill_j1(local_pass_t *pass) {
  static float first[] = {-1, -2};
  static float second[] = {-3};
  static float *logprobs[] = {first, second};
  static tnk__lm_datum_t data[2];

  data[0].n_tokens = 2;
  data[1].n_tokens = 1;
  data[0].n_targets = data[1].n_targets = 1;
  *pass =
      (local_pass_t){.n = 2, .data = data, .logprobs = logprobs, .loss_sum = 6};
}

TEST(vector_j1_is_written) {
  uint8_t expected[256];
  size_t n = test_unhex(expected, sizeof(expected), vector_j1);
  local_pass_t pass;
  tnk__buf_t buf;

  fill_j1(&pass);
  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  local_pass_write(&buf, &pass);
  CHECK_MEM(buf.data, buf.len, expected, n);
  tnk__buf_deinit(&buf);
}

TEST(vector_j1_as_json) {
  uint8_t bytes[256];
  size_t n = test_unhex(bytes, sizeof(bytes), vector_j1);
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  local_result_json(&buf, 0, bytes, n);
  CHECK_INT(buf.err, TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf),
            "{\"loss_fn_output_type\":\"scalar\",\"loss_fn_outputs\":["
            "{\"logprobs\":{\"data\":[-1.0,-2.0],\"dtype\":\"float32\","
            "\"shape\":[2]}},{\"logprobs\":{\"data\":[-3.0],\"dtype\":"
            "\"float32\",\"shape\":[1]}}],\"metrics\":{\"loss:sum\":6.0}}");
  tnk__buf_deinit(&buf);
}

/* I1: a masked row becomes null, NaN becomes null. */
TEST(vector_i1_as_json) {
  uint8_t bytes[256];
  size_t n = test_unhex(bytes, sizeof(bytes),
                        "0a160801120805000000ffffffff1a08000000bf000080bf12"
                        "080000c07f000000c01a180a0800000000070000001208804f"
                        "c3c7000000c0180120022003");
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  local_result_json(&buf, 1, bytes, n);
  CHECK_STR(tnk__buf_cstr(&buf),
            "{\"sequences\":[{\"stop_reason\":\"length\",\"tokens\":[5,-1],"
            "\"logprobs\":[-0.5,-1.0]}],\"prompt_logprobs\":[null,-2.0],"
            "\"topk_prompt_logprobs\":[null,[[7,-2.0]]],\"type\":\"sample\"}");
  tnk__buf_deinit(&buf);
}

TEST(writing_without_memory) {
  local_pass_t pass;
  tnk__buf_t buf;

  fill_j1(&pass);
  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  test_alloc_fail_at(0);
  local_pass_write(&buf, &pass);
  CHECK_INT(buf.err, TNK_ENOMEM);
  tnk__buf_deinit(&buf);
}
