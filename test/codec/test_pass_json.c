/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "codec/pass.h"
#include "codec/wire.h"

static int read_json(void **out, const tnk_allocator_t *alloc, const void *body,
                     size_t n) {
  tnk_pass_t *pass;
  int err = tnk__pass_result_read(&pass, alloc, body, n, 0);

  *out = pass;
  return err;
}

static void expect_refused(const char *text) {
  tnk_pass_t *pass;

  CHECK_INT(
      tnk__pass_result_read(&pass, test_allocator(), text, strlen(text), 0),
      TNK_EPROTO);
  CHECK(pass == NULL);
}

#define JSON_RESULT                                                            \
  "{\"loss_fn_output_type\":\"ArrayRecord\",\"loss_fn_outputs\":["             \
  "{\"logprobs\":{\"data\":[-1.5,null,-2],\"dtype\":\"float32\","              \
  "\"shape\":[3]},\"elementwise_loss\":{\"data\":[1,2],"                       \
  "\"dtype\":\"float32\",\"shape\":null}},"                                    \
  "{\"logprobs\":{\"data\":[-4],\"dtype\":\"float32\",\"shape\":[1]},"         \
  "\"picks\":{\"data\":[7,-8],\"dtype\":\"int64\",\"shape\":[3,4],"            \
  "\"sparse_crow_indices\":[0,1,1,2],\"sparse_col_indices\":[1,3]}}],"         \
  "\"metrics\":{\"total_loss:sum\":3.5,\"tokens:sum\":5,\"odd:mean\":null},"   \
  "\"type\":null,\"status\":\"x\",\"model_id\":null}"

TEST(S1_4_json_result) {
  static const int64_t crow[] = {0, 1, 1, 2}, col[] = {1, 3};
  tnk_pass_t *pass = from_json(JSON_RESULT);
  const tnk_tensor_t *tensor = tnk_pass_tensor(pass, 0, "logprobs");
  const float *values = tensor->data;

  CHECK_STR(tnk_pass_output_type(pass), "ArrayRecord");
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK_INT(tensor->n_values, 3);
  CHECK_NEAR(values[0], -1.5, 0);
  CHECK(isnan(values[1]));
  tensor = tnk_pass_tensor(pass, 0, "elementwise_loss");
  CHECK_INT(tensor->dtype, TNK_F32);
  CHECK_INT(tensor->n_dims, 1);
  CHECK_INT(tensor->shape[0], 2);
  tensor = tnk_pass_tensor(pass, 1, "picks");
  CHECK_INT(tensor->dtype, TNK_I64);
  CHECK_INT(tensor->n_values, 2);
  CHECK_MEM(tensor->crow, sizeof(crow), crow, sizeof(crow));
  CHECK_MEM(tensor->col, sizeof(col), col, sizeof(col));
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "tokens:sum"), 5, 0);
  CHECK(isnan(tnk_metrics_get(&pass->metrics, "odd:mean")));
  CHECK_INT(tnk_metrics_count(&pass->metrics), 3);
  CHECK(isnan(tnk_pass_loss(pass)));
  end(pass);
}

TEST(S3_26a_damaged_json) {
  wire_damage(read_json, tnk__pass_result_free, JSON_RESULT,
              strlen(JSON_RESULT));
  wire_starve(read_json, tnk__pass_result_free, JSON_RESULT,
              strlen(JSON_RESULT));
}

TEST(json_forms_of_self_hosted_servers) {
  tnk_pass_t *pass = from_json("{\"metrics\":{\"loss\":1}}");

  CHECK_INT(tnk_pass_count(pass), 0);
  CHECK_STR(tnk_pass_output_type(pass), "");
  CHECK_NEAR(tnk_pass_loss(pass), 1, 0);
  end(pass);

  pass = from_json("{\"loss_fn_outputs\":[],\"metrics\":null}");
  CHECK_INT(tnk_metrics_count(&pass->metrics), 0);
  end(pass);

  /* Without dtype and shape, a bare list, a bare number, no tensor at all. */
  pass = from_json("{\"loss_fn_outputs\":[{\"a\":{\"data\":[1,2]},"
                   "\"b\":[0.5,1],\"c\":2.5,\"d\":3,\"e\":\"x\",\"f\":null,"
                   "\"g\":{\"data\":[4.0],\"dtype\":\"int64\",\"shape\":[]}},"
                   "null]}");
  CHECK_INT(tnk_pass_count(pass), 2);
  CHECK_INT(tnk_pass_field_count(pass, 0), 5);
  CHECK_INT(tnk_pass_field_count(pass, 1), 0);
  CHECK_INT(tnk_pass_tensor(pass, 0, "a")->dtype, TNK_I64);
  CHECK_INT(tnk_pass_tensor(pass, 0, "b")->dtype, TNK_F32);
  CHECK_NEAR(((const float *)tnk_pass_tensor(pass, 0, "c")->data)[0], 2.5, 0);
  CHECK_INT(((const int64_t *)tnk_pass_tensor(pass, 0, "d")->data)[0], 3);
  CHECK_INT(((const int64_t *)tnk_pass_tensor(pass, 0, "g")->data)[0], 4);
  CHECK_INT(tnk_pass_tensor(pass, 0, "g")->n_dims, 0);
  CHECK_INT(pass->warnings.n, 2);
  CHECK_STR(pass->warnings.text[0], "output \"e\" is no tensor");
  end(pass);

  pass = from_json("{\"metrics\":{\"a\":\"text\",\"b\":true,\"c:sum\":1}}");
  CHECK_INT(tnk_metrics_count(&pass->metrics), 1);
  CHECK_INT(pass->warnings.n, 2);
  end(pass);
}

TEST(malformed_json_results) {
  static const char *const tensors[] = {
      "{\"data\":[1,2],\"shape\":[3]}",
      "{\"data\":[1,2],\"shape\":[-1,-2]}",
      "{\"data\":[1,2],\"shape\":[1,1,1,1,1,1,1,1,2]}",
      "{\"data\":[1,2],\"shape\":\"2\"}",
      "{\"data\":[1,2],\"dtype\":\"complex64\"}",
      "{\"data\":[1,2],\"dtype\":7}",
      "{\"data\":[1,\"2\"],\"dtype\":\"float32\"}",
      "{\"data\":[1,null],\"dtype\":\"int64\"}",
      "{\"data\":[1.5],\"dtype\":\"int64\"}",
      "{\"data\":[1e300],\"dtype\":\"int64\"}",
      "{\"data\":[1],\"shape\":[1,2],\"sparse_crow_indices\":[0,1]}",
      "{\"data\":[1],\"shape\":[1,2],\"sparse_col_indices\":[0]}",
      "{\"data\":[1],\"shape\":[1,2],\"sparse_crow_indices\":[],"
      "\"sparse_col_indices\":[0]}",
      "{\"data\":[1],\"shape\":[1,2],\"sparse_crow_indices\":[0,2],"
      "\"sparse_col_indices\":[0]}",
      "{\"data\":[1],\"shape\":[1,2],\"sparse_crow_indices\":[0,1],"
      "\"sparse_col_indices\":[2]}",
      "{\"data\":[1],\"shape\":[2,2],\"sparse_crow_indices\":[0,1],"
      "\"sparse_col_indices\":[1]}",
      "{\"data\":[1,2],\"shape\":[2,2],\"sparse_crow_indices\":[0,3,2],"
      "\"sparse_col_indices\":[1,1]}"};
  char text[512];

  for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
    snprintf(text, sizeof(text), "{\"loss_fn_outputs\":[{\"a\":%s}]}",
             tensors[i]);
    expect_refused(text);
  }
  expect_refused("[]");
  expect_refused("{}");
  expect_refused("{\"error\":\"no\"}");
  expect_refused("{\"loss_fn_outputs\":{},\"metrics\":{}}");
  expect_refused("{\"loss_fn_outputs\":[7]}");
  expect_refused("{\"metrics\":[]}");
  expect_refused("{\"metrics\":{},\"loss_fn_output_type\":1}");
}

TEST(S1_4c_which_metric_is_the_loss) {
  static const struct {
    const char *text;
    double loss;
  } cases[] = {{"{\"metrics\":{\"loss\":1}}", 1},
               {"{\"metrics\":{\"loss:mean\":2}}", 2},
               {"{\"metrics\":{\"loss:sum\":3,\"loss:mean\":2,\"loss\":1}}", 1},
               {"{\"metrics\":{\"loss:sum\":3,\"loss:mean\":2}}", 2},
               {"{\"metrics\":{\"loss:sum\":3}}", 3},
               {"{\"metrics\":{\"other\":3}}", NAN}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_pass_t *pass = from_json(cases[i].text);

    CHECK_NEAR(tnk_pass_loss(pass), cases[i].loss, 0);
    end(pass);
  }
}

TEST(E8_custom_loss_takes_the_place_of_the_servers) {
  static const tnk_custom_metric_t own[] = {
      {"kl", 0.5}, {"b", -3}, {"loss:sum", 99}, {"surrogate_loss:sum", 98}};
  tnk_pass_t *pass =
      from_json("{\"metrics\":{\"a\":1,\"loss:sum\":2,\"b\":3}}");
  int err;

  for (long at = 0;; at++) {
    test_alloc_fail_at(at);
    err = tnk__pass_result_set_custom_loss(pass, 7, own, 4);
    test_alloc_fail_at(-1);
    if (err == TNK_OK)
      break;
    CHECK_INT(err, TNK_ENOMEM);
    CHECK_NEAR(tnk_pass_loss(pass), 2, 0);
  }
  CHECK_INT(tnk_metrics_count(&pass->metrics), 5);
  CHECK_STR(tnk_metrics_key(&pass->metrics, 0), "a");
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "b"), -3, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "kl"), 0.5, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "loss:sum"), 7, 0);
  CHECK_NEAR(tnk_metrics_get(&pass->metrics, "surrogate_loss:sum"), 2, 0);
  end(pass);

  /* A server that sends none loses nothing. */
  pass = from_json("{\"metrics\":{\"a\":1}}");
  CHECK_INT(tnk__pass_result_set_custom_loss(pass, -1, NULL, 0), TNK_OK);
  CHECK_NEAR(tnk_pass_loss(pass), -1, 0);
  CHECK(isnan(tnk_metrics_get(&pass->metrics, "surrogate_loss:sum")));
  end(pass);
}
