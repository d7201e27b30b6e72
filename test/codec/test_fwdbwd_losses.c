/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tinker.pb-c.h"

#include "codec/order.h"
#include "codec/request.h"
#include "lib/wire/data/check.h"
#include "support/test.h"
#include "tnk/error.h"

/*
 * The inputs and settings of every loss, as the protocol's table of losses
 * names them: what the checks accept goes over the wire and comes back.
 */
enum { T = 4, K = 3, MAX_INPUTS = 6 };

static const int32_t tokens[T] = {11, 12, 13, 14};
static const int64_t targets[T * K] = {12, 13, 14, 15, 1, 2, 3, 4, 5, 6, 7, 8};
static const float values[T * K] = {0.5f,  -1, 2, 0, 1e-30f, 3e30f,
                                    -0.0f, 1,  1, 1, 1,      1};

typedef struct {
  const char *loss;
  const char *inputs[MAX_INPUTS];
  const char *settings[3];
} loss_t;

static const loss_t losses[] = {
    {"cross_entropy", {"target_tokens"}, {0}},
    {"cross_entropy", {"target_tokens", "weights"}, {0}},
    {"importance_sampling", {"target_tokens", "logprobs", "advantages"}, {0}},
    {"ppo",
     {"target_tokens", "logprobs", "advantages"},
     {"clip_low_threshold", "clip_high_threshold"}},
    {"ppo",
     {"target_tokens", "logprobs", "advantages", "clip_low_threshold",
      "clip_high_threshold"},
     {0}},
    {"cispo",
     {"target_tokens", "logprobs", "advantages"},
     {"clip_low_threshold", "clip_high_threshold"}},
    {"dro", {"target_tokens", "logprobs", "advantages"}, {"beta"}},
    {"gspo",
     {"target_tokens", "logprobs", "advantages", "sequence_ratio_mask"},
     {"clip_low_threshold", "clip_high_threshold"}},
    {"stable_reinforce", {"target_tokens", "advantages"}, {"kl_coeff"}},
    {"ppo_critic", {"target_tokens", "values", "returns"}, {"value_clip"}},
    {"custom", {"target_tokens", "my own input"}, {0}},
};

static size_t count(const char *const *names, size_t max) {
  size_t n = 0;

  while (n < max && names[n] != NULL)
    n++;
  return n;
}

static void expect_tensor(const TinkerPublic__Tensor *read,
                          const tnk_tensor_t *sent) {
  size_t size = sent->dtype == TNK_I64 ? 8 : 4;

  CHECK_INT(read->encoding_case, TINKER_PUBLIC__TENSOR__ENCODING_DENSE);
  CHECK_INT(read->dtype, sent->dtype == TNK_I64
                             ? TINKER_PUBLIC__DTYPE__DTYPE_INT64
                             : TINKER_PUBLIC__DTYPE__DTYPE_FLOAT32);
  CHECK_INT(read->dense.len, sent->n_values * size);
  order_swap(read->dense.data, sent->n_values, size);
  CHECK_MEM(read->dense.data, read->dense.len, sent->data,
            sent->n_values * size);
  CHECK_INT(read->n_shape, sent->n_dims == 0 ? 1 : sent->n_dims);
  CHECK_INT(read->shape[0], T);
}

static void round_trip(const tnk__fwdbwd_t *request) {
  const tnk_datum_t *datum = request->data;
  TinkerPublic__ForwardBackwardRequest *read;
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  write_request(&buf, request);
  read =
      tinker_public__forward_backward_request__unpack(NULL, buf.len, buf.data);
  CHECK(read != NULL);
  CHECK_STR(read->loss_fn, request->loss_fn);
  CHECK_INT(read->data[0]->n_loss_fn_inputs, datum->n_loss_inputs);
  for (size_t i = 0; i < datum->n_loss_inputs; i++) {
    CHECK_STR(read->data[0]->loss_fn_inputs[i]->key,
              datum->loss_inputs[i].name);
    expect_tensor(read->data[0]->loss_fn_inputs[i]->value,
                  &datum->loss_inputs[i].tensor);
  }
  /* Numbers stand in the old map and in the new one. */
  CHECK_INT(read->n_loss_fn_config, request->n_settings);
  CHECK_INT(read->n_loss_fn_config_v2, request->n_settings);
  for (size_t i = 0; i < request->n_settings; i++) {
    CHECK_STR(read->loss_fn_config[i]->key, request->settings[i].name);
    CHECK_NEAR(read->loss_fn_config[i]->value, request->settings[i].number, 0);
    CHECK_NEAR(read->loss_fn_config_v2[i]->value->number,
               request->settings[i].number, 0);
  }
  tinker_public__forward_backward_request__free_unpacked(read, NULL);
  tnk__buf_deinit(&buf);
}

static void run_loss(const loss_t *loss, int64_t columns) {
  tnk_chunk_t chunk = tnk_chunk_text(tokens, T);
  tnk_loss_input_t inputs[MAX_INPUTS];
  tnk_loss_setting_t settings[3];
  tnk_datum_t datum = {.input = {.chunks = &chunk, .n_chunks = 1},
                       .loss_inputs = inputs,
                       .n_loss_inputs = count(loss->inputs, MAX_INPUTS)};
  tnk__fwdbwd_t request = {.model_id = "m",
                           .seq_id = 1,
                           .data = &datum,
                           .n_data = 1,
                           .loss_fn = loss->loss,
                           .settings = settings,
                           .n_settings = count(loss->settings, 3)};
  size_t n = (size_t)(columns == 0 ? T : T * columns);
  char text[200];

  for (size_t i = 0; i < datum.n_loss_inputs; i++) {
    int is_target = strcmp(loss->inputs[i], "target_tokens") == 0;

    inputs[i].name = loss->inputs[i];
    inputs[i].tensor =
        is_target ? tnk_tensor_i64(targets, n) : tnk_tensor_f32(values, n);
    if (columns > 0) {
      inputs[i].tensor.n_dims = 2;
      inputs[i].tensor.shape[0] = T;
      inputs[i].tensor.shape[1] = columns;
    }
  }
  for (size_t i = 0; i < request.n_settings; i++)
    settings[i] =
        (tnk_loss_setting_t){loss->settings[i], 0.8 + (double)i, NULL};
  if (tnk__check_data(&datum, 1, loss->loss, text, sizeof(text)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", loss->loss, text);
  CHECK_INT(tnk__check_settings(settings, request.n_settings, text, 200),
            TNK_OK);
  round_trip(&request);
}

TEST(J7_every_loss_with_its_inputs_and_settings) {
  for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
    run_loss(&losses[i], 0);
}

/* Several targets a position. */
TEST(J7_cross_entropy_in_two_dimensions) {
  run_loss(&losses[0], K);
  run_loss(&losses[1], K);
  run_loss(&losses[1], 1);
}
